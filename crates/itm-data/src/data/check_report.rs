//! The report of a check of a data folder.

use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

use super::images::is_picture;
use crate::Result;
use crate::error::OneLine;
use crate::files::Manifest;

/// The most lines for one kind of problem.
pub(super) const LINES: usize = 20;

/// One layout that was found.
#[derive(Debug)]
pub(crate) struct LayoutReport {
    /// Which layout.
    pub(crate) layout: &'static str,
    /// Its file or folder.
    pub(crate) place: PathBuf,
    /// The splits that it holds, one line each.
    pub(crate) splits: Vec<String>,
    /// Further notes, one line each.
    pub(crate) notes: Vec<String>,
}

impl LayoutReport {
    pub(crate) fn new(layout: &'static str, place: &Path) -> Self {
        Self { layout, place: place.into(), splits: vec![], notes: vec![] }
    }

    pub(crate) fn count(&mut self, name: impl ToString, images: usize, captions: usize) {
        let name = name.to_string();
        self.splits.push(format!("{name:<12} {images:>8} images {captions:>9} captions"));
    }
}

/// What a check found; its text is the report for a person.
#[derive(Debug)]
pub struct CheckReport {
    pub(crate) dir: PathBuf,
    pub(crate) layouts: Vec<LayoutReport>,
    /// Every file that was read.
    pub(crate) manifest: Manifest,
    /// Every mismatch, one line each.
    pub problems: Vec<String>,
}

impl CheckReport {
    /// The value; an error becomes a problem.
    pub(crate) fn ok<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.problems.push(error.to_string())).ok()
    }

    /// Adds problems of one kind, the first few in full.
    pub(crate) fn extend(&mut self, problems: Vec<impl ToString>) {
        let more = problems.len().saturating_sub(LINES);
        self.problems.extend(problems.iter().take(LINES).map(ToString::to_string));
        if more > 0 {
            self.problems.push(format!("… and {more} more of this kind"));
        }
    }
}

impl fmt::Display for CheckReport {
    /// Names and captions are a stranger's: none of them ends a line or writes a line of this report.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |start: &str, text: fmt::Arguments<'_>| {
            f.write_str(start)?;
            OneLine(f).write_fmt(text)
        };
        line("", format_args!("{}", self.dir.display()))?;
        for found in &self.layouts {
            line("\n\n", format_args!("{}: {}", found.layout, found.place.display()))?;
            for text in found.splits.iter().chain(&found.notes) {
                line("\n  ", format_args!("{text}"))?;
            }
        }
        line("\n\n", format_args!("files (SHA-256)"))?;
        for (hash, name, bytes) in listing(&self.manifest) {
            line("\n  ", format_args!("{hash}  {name} ({})", size(bytes)))?;
        }
        line("\n  ", format_args!("{}  all of them", self.manifest.combined()))?;
        match self.problems.len() {
            0 => line("\n\n", format_args!("no problem found")),
            n => {
                let end = if n == 1 { "" } else { "s" };
                line("\n\n", format_args!("{n} problem{end}"))?;
                self.problems.iter().try_for_each(|problem| line("\n  ", format_args!("{problem}")))
            }
        }
    }
}

pub(super) fn size(bytes: u64) -> String {
    if bytes < 100_000 { format!("{bytes} bytes") } else { format!("{:.1} MB", bytes as f64 / 1e6) }
}

/// Hash, name and length of each file; the pictures of a folder are one entry.
fn listing(manifest: &Manifest) -> Vec<(String, String, u64)> {
    let mut folders: Vec<(&str, Manifest)> = Vec::new();
    let mut lines = Vec::new();
    for file in &manifest.files {
        match file.name.rsplit_once('/').filter(|(_, name)| is_picture(name)) {
            None => lines.push((file.sha256.clone(), file.name.clone(), file.bytes)),
            Some((folder, _)) => match folders.iter_mut().find(|(other, _)| *other == folder) {
                Some((_, files)) => files.files.push(file.clone()),
                None => folders.push((folder, Manifest { files: vec![file.clone()] })),
            },
        }
    }
    lines.extend(folders.into_iter().map(|(name, files)| {
        let name = format!("{name}/ with {} pictures", files.files.len());
        (files.combined(), name, files.bytes())
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_writes_no_line_of_the_report() {
        let mut found = LayoutReport::new("Karpathy JSON", Path::new("a\nno problem found"));
        found.count("test\x1b[2J", 1, 5);
        found.notes.push("named \u{202e}8k\n".into());
        let report = CheckReport {
            dir: "d".into(),
            layouts: vec![found],
            manifest: Manifest::default(),
            problems: vec!["one\r".into()],
        };
        let text = report.to_string();
        assert!(!text.contains(['\x1b', '\u{202e}', '\r']), "{text:?}");
        let lines: Vec<_> = text.lines().filter(|line| !line.contains("all of them")).collect();
        let want = [
            "d",
            "",
            r"Karpathy JSON: a\nno problem found",
            r"  test\u{1b}[2J            1 images         5 captions",
            r"  named \u{202e}8k\n",
            "",
            "files (SHA-256)",
            "",
            "1 problem",
            r"  one\r",
        ];
        assert_eq!(lines, want);
    }
}

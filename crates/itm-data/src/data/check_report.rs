//! The report of a check of a data folder.

use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

use super::images::is_picture;
use crate::Result;
use crate::error::OneLine;
use crate::files::Manifest;

/// The most lines for one kind of problem.
pub(super) const LINES: usize = 20;

/// The layouts of data folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `dataset_*.json` and pictures.
    Karpathy,
    /// `<split>_ims.npy`, `<split>_caps.txt`.
    Precomp,
    /// JSON lists of the FNE program.
    FneAnnotations,
    /// Captions and lists of splits as the publishers gave them.
    Originals,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Karpathy => "Karpathy JSON",
            Self::Precomp => "precomputed features",
            Self::FneAnnotations => "FNE annotations",
            Self::Originals => "captions and lists of the splits",
        })
    }
}

/// Counts of a split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitCount {
    /// `train`, `val`, …
    pub name: String,
    /// Images.
    pub images: usize,
    /// Captions.
    pub captions: usize,
}

/// One layout that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutReport {
    /// Which layout.
    pub layout: Layout,
    /// Its file or folder.
    pub place: PathBuf,
    /// The splits that it holds.
    pub splits: Vec<SplitCount>,
    /// Further notes, one line each.
    pub notes: Vec<String>,
    /// Bytes of memory for its features and captions.
    pub memory: u64,
}

impl LayoutReport {
    pub(crate) fn new(layout: Layout, place: &Path) -> Self {
        let place = place.to_path_buf();
        Self { layout, place, splits: Vec::new(), notes: Vec::new(), memory: 0 }
    }

    pub(crate) fn count(&mut self, name: impl ToString, images: usize, captions: usize) {
        self.splits.push(SplitCount { name: name.to_string(), images, captions });
    }
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// The folder.
    pub dir: PathBuf,
    /// The layouts that it holds.
    pub layouts: Vec<LayoutReport>,
    /// Every file that was read.
    pub manifest: Manifest,
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
            for SplitCount { name, images, captions } in &found.splits {
                line("\n  ", format_args!("{name:<12} {images:>8} images {captions:>9} captions"))?;
            }
            for note in &found.notes {
                line("\n  ", format_args!("{note}"))?;
            }
            if found.memory > 0 {
                line("\n  ", format_args!("in memory: {}", size(found.memory)))?;
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

fn size(bytes: u64) -> String {
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
        let mut found = LayoutReport::new(Layout::Karpathy, Path::new("a\nno problem found"));
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

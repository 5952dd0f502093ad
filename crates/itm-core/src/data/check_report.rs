//! The report of a check of a data folder.

use std::fmt;
use std::path::{Path, PathBuf};

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
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
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
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.dir.display())?;
        for found in &self.layouts {
            writeln!(f, "\n{}: {}", found.layout, found.place.display())?;
            for SplitCount { name, images, captions } in &found.splits {
                writeln!(f, "  {name:<12} {images:>8} images {captions:>9} captions")?;
            }
            for note in &found.notes {
                writeln!(f, "  {note}")?;
            }
            if found.memory > 0 {
                writeln!(f, "  in memory: {}", size(found.memory))?;
            }
        }
        writeln!(f, "\nfiles (SHA-256)")?;
        for (hash, name, bytes) in listing(&self.manifest) {
            writeln!(f, "  {hash}  {name} ({})", size(bytes))?;
        }
        writeln!(f, "  {}  all of them", self.manifest.combined())?;
        match self.problems.len() {
            0 => write!(f, "\nno problem found"),
            n => {
                write!(f, "\n{n} problem{}", if n == 1 { "" } else { "s" })?;
                self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}

fn size(bytes: u64) -> String {
    if bytes < 100_000 { format!("{bytes} bytes") } else { format!("{:.1} MB", bytes as f64 / 1e6) }
}

/// Hash, name and length of each file; the pictures of a folder are one entry.
fn listing(manifest: &Manifest) -> Vec<(String, String, u64)> {
    let folder = |name: &str| match name.rsplit_once('/') {
        Some((folder, file)) if is_picture(file) => Some(folder.to_string()),
        _ => None,
    };
    let mut folders: Vec<(String, Manifest)> = Vec::new();
    let mut lines = Vec::new();
    for file in &manifest.files {
        match folder(&file.name) {
            None => lines.push((file.sha256.clone(), file.name.clone(), file.bytes)),
            Some(name) => match folders.iter_mut().find(|(n, _)| *n == name) {
                Some((_, files)) => files.files.push(file.clone()),
                None => folders.push((name, Manifest { files: vec![file.clone()] })),
            },
        }
    }
    lines.extend(folders.into_iter().map(|(name, files)| {
        let name = format!("{name}/ with {} pictures", files.files.len());
        (files.combined(), name, files.bytes())
    }));
    lines
}

pub(crate) fn is_picture(name: &str) -> bool {
    let end = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    ["jpg", "jpeg", "png", "webp"].contains(&end.as_str())
}

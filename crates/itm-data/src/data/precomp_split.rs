//! One split of a `*_precomp` folder: features, captions, names.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::npy_header::Dtype;
use super::{CaptionRule, Features, Npy, Repeats};
use crate::files::{self, Manifest, excerpt};
use crate::{Error, Pairs, Result};

/// One split of the files `<name>_ims.npy`, `<name>_caps.txt` and, if they exist, `<name>_ids.txt` and `<name>_of.txt`.
///
/// `<name>_of.txt` says whose caption each line of `<name>_caps.txt` is: a row of the features (from 0), or a name of
/// `<name>_ids.txt`. Without it all images have the same number of captions, one after another.
///
/// Features stay in the mapped file: `features.row_into(split.row_of(image), …)` reads the features of one image.
#[derive(Debug)]
pub(crate) struct PrecompSplit {
    /// `train`, `dev`, …: the start of the file names.
    pub name: String,
    /// The paths of the files.
    pub files: SplitFiles,
    /// Global features `[rows, dim]` or regions `[rows, regions, dim]`.
    pub features: Npy,
    /// The repeats, if each caption has a row; the first row of an image counts. `None` if each image has one.
    pub repeats: Option<Repeats>,
    /// Which caption belongs to which image.
    pub pairs: Pairs,
    /// The captions, raw.
    pub captions: Vec<String>,
    /// One name per image, if the file exists.
    pub ids: Option<Vec<String>>,
}

/// The paths of the files of a split.
#[derive(Debug)]
pub(crate) struct SplitFiles {
    pub(crate) ims: PathBuf,
    pub(crate) caps: PathBuf,
    pub(crate) ids: PathBuf,
    pub(crate) of: PathBuf,
    pub(crate) scale: PathBuf,
}

impl SplitFiles {
    pub(crate) fn of(folder: &Path, name: &str) -> Self {
        let file = |end: &str| folder.join(format!("{name}_{end}"));
        let (ims, caps, ids) = (file("ims.npy"), file("caps.txt"), file("ids.txt"));
        Self { ims, caps, ids, of: file("of.txt"), scale: folder.join("ims_scale.npy") }
    }
}

impl PrecompSplit {
    /// Opens the files of a split and checks them against each other. It reads the texts. It reads the features only if
    /// images are repeated, to verify the repetition.
    ///
    /// # Errors
    /// If files are missing or malformed, counts do not fit, repeated rows differ, or the rule is of no caption.
    pub(crate) fn open_hashed(
        root: &Path,
        folder: &Path,
        name: &str,
        rule: CaptionRule,
        manifest: &mut Manifest,
    ) -> Result<Self> {
        let some = rule != CaptionRule::First(0);
        Error::unless(some, "captions per image", "at least 1", 0)?;
        let files = SplitFiles::of(folder, name);
        let features = open_scaled(root, &files.ims, &files.scale, manifest)?;
        features.check_rank(&[2, 3])?;
        let place = files.caps.display().to_string();
        // An empty caption is valid for methods that read captions between marks; other methods refuse it.
        let captions = manifest.read(root, &files.caps)?;
        let captions = files::empty_or_lines(&place, "a caption", &captions)?;
        let mut lines = |path: &Path, what: &str| {
            path.exists().then(|| manifest.read_lines(root, path, what)).transpose()
        };
        let ids = lines(&files.ids, "an image name")?;
        let (repeats, pairs) = match lines(&files.of, "the image of a caption")? {
            Some(lines) => {
                let (place, images) = (files.of.display().to_string(), features.rows());
                let of = of_lines(&place, &lines, (captions.len(), images), ids.as_deref())?;
                (None, own_captions(&place, Pairs::new(images, of)?, rule)?)
            }
            None => {
                let (repeats, each) = row_layout(&place, &features, &captions, rule)?;
                (repeats, Pairs::uniform(captions.len() / each, each))
            }
        };
        let place = files.ids.display().to_string();
        let every = pairs.captions_per_image().unwrap_or(1);
        let ids = ids.map(|ids| one_per_image(&place, ids, pairs.images(), every)).transpose()?;
        Ok(Self { name: name.into(), files, features, repeats, pairs, captions, ids })
    }

    /// Number of images.
    pub(crate) fn images(&self) -> usize {
        self.pairs.images()
    }

    /// The row of the feature file that holds an image.
    pub(crate) fn row_of(&self, image: usize) -> usize {
        if self.repeats.is_some() { self.pairs.texts_of(image)[0] } else { image }
    }

    /// Rows per image in another file of this split: 1, or one per caption.
    ///
    /// # Errors
    /// If the rows are neither images nor captions, or the rows of an image differ.
    pub(super) fn rows_an_image(&self, file: &Npy) -> Result<usize> {
        let (images, captions) = (self.images(), self.captions.len());
        if file.rows() == images {
            return Ok(1);
        }
        let each = self.pairs.captions_per_image().filter(|_| file.rows() == captions);
        let Some(each) = each else {
            let expected = format!("{images} rows, one per image");
            return Err(Error::invalid(file.place(), expected, file.rows()));
        };
        row_layout(file.place(), file, &self.captions, CaptionRule::First(each)).map(|_| each)
    }

    /// Names for images that have none: `train/0`, `train/1`, …
    pub(crate) fn numbered(&self) -> Vec<String> {
        (0..self.images()).map(|image| format!("{}/{image}", self.name)).collect()
    }

    /// Counts and layout, in one line.
    pub(crate) fn describe(&self) -> String {
        let Self { name, features, captions, .. } = self;
        let rows = match self.repeats {
            None => "images stored once".to_string(),
            Some(Repeats { every, exact }) => {
                let rounded = "equal up to rounding, the first row of each counts";
                let how = if exact { "verified" } else { rounded };
                format!("images repeated {every} times ({how})")
            }
        };
        let regions = features.shape().len() == 3;
        let mean = if regions { ", global features are means over regions" } else { "" };
        let (shape, dtype, images) = (features.shape(), features.dtype(), self.images());
        let (captions, empty) = (captions.len(), first_empty(captions));
        format!(
            "{name}: {images} images, {captions} captions{empty}; {dtype} {shape:?}, {rows}{mean}"
        )
    }

    /// One row of global features per image; regions `[r, dim]` are averaged.
    ///
    /// # Errors
    /// If a value is not finite; the error names row and column.
    pub(crate) fn global_features(&self) -> Result<Features> {
        let dim = *self.features.shape().last().expect("rank 2 or 3 was checked");
        let mut values = vec![0.0; self.images() * dim];
        let mut row = vec![0.0; self.features.row_len()];
        let regions = (row.len() / dim) as f32;
        for (image, out) in values.chunks_exact_mut(dim).enumerate() {
            self.features.row_into(self.row_of(image), &mut row)?;
            for region in row.chunks_exact(dim) {
                out.iter_mut().zip(region).for_each(|(sum, v)| *sum += v);
            }
            if regions > 1.0 {
                out.iter_mut().for_each(|sum| *sum /= regions);
            }
        }
        Ok(Features { dim, values })
    }
}

/// Maps a file of features, with its scale if the numbers are bytes.
pub(super) fn open_scaled(
    root: &Path,
    path: &Path,
    scale: &Path,
    manifest: &mut Manifest,
) -> Result<Npy> {
    let mut features = Npy::open(path)?;
    match features.dtype() {
        Dtype::F16 | Dtype::F32 | Dtype::F64 => manifest.add(root, path, features.file_bytes()),
        Dtype::I8 | Dtype::U8 => {
            let file = Npy::open(scale)?;
            file.check_rank(&[1])?;
            features = features.with_scale(file.to_vec()?)?;
            manifest.add(root, path, features.file_bytes());
            manifest.add(root, scale, file.file_bytes());
        }
        other @ (Dtype::I32 | Dtype::I64) => {
            let expected = "features of f16, f32, f64, i8 or u8";
            return Err(Error::invalid(features.place(), expected, other));
        }
    }
    Ok(features)
}

/// The number of the first empty line, if there is one.
fn first_empty(lines: &[String]) -> String {
    let at = lines.iter().position(|line| line.trim().is_empty());
    at.map_or(String::new(), |at| format!(" (line {} is empty)", at + 1))
}

/// Decides by the counts: how often an image is stored, and how many captions it has. The rows of a repeated image must be equal.
fn row_layout(
    caps: &str,
    features: &Npy,
    lines: &[String],
    rule: CaptionRule,
) -> Result<(Option<Repeats>, usize)> {
    let (place, rows, captions) = (features.place(), features.rows(), lines.len());
    let got = || format!("{captions} lines{}", first_empty(lines));
    let repeats = || {
        let same = |a: usize, b: usize| features.row_bytes(a) == features.row_bytes(b);
        let mut values = vec![0.0; features.row_len()];
        Repeats::of(rows, features.row_len(), same, |row, out| {
            let read = features.row_into(row, &mut values).is_ok();
            let value = |v: &f32| if read { f64::from(*v) } else { f64::NAN };
            out.iter_mut().zip(&values).for_each(|(x, v)| *x = value(v));
        })
    };
    let per_image = match rule {
        CaptionRule::First(per_image) => per_image,
        CaptionRule::All if rows == captions => {
            let found = repeats();
            return Ok((found, found.map_or(1, |found| found.every)));
        }
        CaptionRule::All if rows > 0 && captions > rows && captions.is_multiple_of(rows) => {
            return Ok((None, captions / rows));
        }
        CaptionRule::All => {
            let expected = format!(
                "a line, or the same number of lines, for each of the {rows} rows of {place} (or *_of.txt beside it)"
            );
            return Err(Error::invalid(caps, expected, got()));
        }
    };
    if rows.checked_mul(per_image) == Some(captions) {
        return Ok((None, per_image));
    }
    if rows != captions || !rows.is_multiple_of(per_image) {
        let once = rows.saturating_mul(per_image);
        let expected = format!("{once} lines ({per_image} for each of the {rows} rows of {place})");
        return Err(Error::invalid(caps, expected, got()));
    }
    let equal = |row: usize| features.row_bytes(row) == features.row_bytes(row - row % per_image);
    let repeated = |exact| Ok((Some(Repeats { every: per_image, exact }), per_image));
    let Some(row) = (0..rows).find(|&row| !equal(row)) else { return repeated(true) };
    if repeats().is_some_and(|found| found.every.is_multiple_of(per_image)) {
        return repeated(false);
    }
    let first = row - row % per_image;
    let expected = format!(
        "row {first} again ({rows} rows and captions: each image {per_image} times; one caption per image needs a target with protocol = \"full\")"
    );
    Err(Error::invalid(format!("{place} row {row}"), expected, "other values"))
}

/// The image of every caption, from the lines of `<name>_of.txt`.
fn of_lines(
    place: &str,
    lines: &[String],
    (captions, images): (usize, usize),
    ids: Option<&[String]>,
) -> Result<Vec<usize>> {
    let expected = format_args!("{captions} lines, one for each caption");
    let got = format_args!("{} lines", lines.len());
    Error::unless(lines.len() == captions, place, expected, got)?;
    let ids = ids.filter(|ids| ids.len() == images).unwrap_or_default();
    let named: HashMap<&str, usize> =
        ids.iter().enumerate().map(|(row, id)| (id.as_str(), row)).collect();
    let wrong = |at: usize, expected: String| {
        let place = format!("{place} line {}", at + 1);
        Err(Error::invalid(place, expected, excerpt(&lines[at])))
    };
    let by_name = |line: &String| named.get(line.trim()).copied();
    let by_row = |line: &String| line.trim().parse().ok().filter(|&row: &usize| row < images);
    let names: Option<Vec<usize>> = lines.iter().map(by_name).collect();
    let rows: Option<Vec<usize>> = lines.iter().map(by_row).collect();
    match (names, rows) {
        // Numbers may be names, in another order than the rows.
        (Some(names), Some(rows)) if names != rows => {
            let at = names.iter().zip(&rows).position(|(a, b)| a != b).unwrap_or(0);
            let expected = "a row or a name, not both";
            wrong(at, format!("{expected}: row {} has another name", rows[at]))
        }
        (Some(of), _) | (None, Some(of)) => Ok(of),
        (None, None) => {
            let at = lines.iter().position(|line| by_row(line).is_none()).unwrap_or(0);
            wrong(at, format!("a row below {images}, or a name of the ids"))
        }
    }
}

/// Pairs in which every image has as many captions as the rule needs. No caption is left out here.
fn own_captions(place: &str, pairs: Pairs, rule: CaptionRule) -> Result<Pairs> {
    for image in 0..pairs.images() {
        let got = pairs.texts_of(image).len();
        let expected = match rule {
            CaptionRule::First(n) if got != n => format!("{n} captions"),
            CaptionRule::All if got == 0 => "a caption".into(),
            _ => continue,
        };
        return Err(Error::invalid(format!("{place}, image {image}"), expected, got));
    }
    Ok(pairs)
}

/// Takes one name per line, or each name `per_image` times. Two images must not have one name.
fn one_per_image(
    place: &str,
    ids: Vec<String>,
    images: usize,
    per_image: usize,
) -> Result<Vec<String>> {
    let every = if ids.len() == images { 1 } else { per_image };
    let expected = format_args!("{images} lines, one per image (or {})", images * per_image);
    let got = format_args!("{} lines", ids.len());
    Error::unless(ids.len() == images * every, place, expected, got)?;
    let mut seen = HashSet::new();
    for (line, id) in ids.iter().enumerate() {
        let place = format!("{place} line {}", line + 1);
        let first = &ids[line - line % every];
        if id != first {
            return Err(Error::invalid(place, format!("{} again", excerpt(first)), excerpt(id)));
        }
        if line % every == 0 && !seen.insert(id) {
            return Err(Error::invalid(place, "each image once", format!("a second {id}")));
        }
    }
    Ok(ids.into_iter().step_by(every).collect())
}

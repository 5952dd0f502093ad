//! Rows of frozen encoders beside a data set, found by the names of images and by captions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Dataset, Features, Npy, Regions, SplitData};
use crate::files::{Manifest, excerpt};
use crate::{Error, Result};

/// Rows that frozen encoders made of the images and captions of a split. Each row of an encoder has unit length; the rows of
/// several encoders stand side by side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Embeddings {
    /// One row per image; of width 0 if there are none.
    pub images: Features,
    /// One row per caption; of width 0 if there are none.
    pub texts: Features,
}

impl Dataset {
    /// Reads the rows of folders that `itm embed` wrote, beside those that the data set has.
    ///
    /// ```text
    /// DIR/image.npy  [n, width]   DIR/image_ids.txt   the image of each row, by its name
    /// DIR/text.npy   [m, width]   DIR/captions.txt    the caption of each row
    /// DIR/grid.npy   [n, r, d]                        with `patches`: the regions of the image of each row
    /// ```
    ///
    /// A folder may have one of the first two. Training images that a folder has no row for are left out; the notes say how many.
    ///
    /// # Errors
    /// If files are missing or malformed, a row has length 0 or is not finite, a name has two different rows, a caption or a held-out
    /// image has no row, or training images would be left out beside regions. With `patches`, if not exactly one folder has a grid.
    pub fn add_embeddings(
        &mut self,
        folders: &[PathBuf],
        patches: bool,
        manifest: &mut Manifest,
    ) -> Result<Vec<String>> {
        let (mut notes, mut grids) = (vec![], vec![]);
        for folder in folders {
            let images = RowTable::open(folder, "image", "image_ids.txt", manifest)?;
            let texts = RowTable::open(folder, "text", "captions.txt", manifest)?;
            let expected = "image.npy with image_ids.txt, or text.npy with captions.txt";
            let got = "none of them; `cargo xtask data` says how to make them";
            let some = images.is_some() || texts.is_some();
            Error::unless(some, folder.display(), expected, got)?;
            if let Some(images) = images {
                notes.extend(self.add_images(&images)?);
                let grid = folder.join("grid.npy");
                if patches && grid.exists() {
                    grids.push((grid, images.numbers));
                }
            }
            if let Some(texts) = texts {
                let width = texts.features.dim;
                notes.push(format!("{}: rows of captions, width {width}", texts.place));
                for (part, name) in self.named() {
                    let rows = part.captions.iter().map(|caption| caption.trim());
                    texts.beside(&mut part.embeddings.texts, rows, &format!("{name} caption"))?;
                }
            }
        }
        if patches {
            let [(grid, rows)] = &grids[..] else {
                let expected = "one with grid.npy, as `itm embed --patches` writes it";
                return Err(Error::invalid("folders of embeddings", expected, grids.len()));
            };
            notes.push(self.add_patches(grid, rows, manifest)?);
        }
        Ok(notes)
    }

    /// Makes the patches of a file the regions of the images; `numbers` has the row of each image.
    fn add_patches(
        &mut self,
        path: &Path,
        numbers: &HashMap<String, usize>,
        manifest: &mut Manifest,
    ) -> Result<String> {
        let npy = Npy::open(path)?;
        npy.check_rank(&[3])?;
        manifest.add(path.parent().unwrap_or(path), path, npy.file_bytes());
        let last = numbers.values().max().map_or(0, |row| row + 1);
        let (fits, got) = (npy.rows() >= last, format!("{:?}", npy.shape()));
        let expected = format_args!("patches of {last} images, as many as image.npy has rows");
        Error::unless(fits, path.display(), expected, got)?;
        let npy = Arc::new(npy);
        for (part, _) in self.named() {
            let rows = part.images.iter().map(|name| numbers[name]).collect();
            let regions = Regions::picked(npy.clone(), rows);
            regions.check()?;
            part.regions = Some(regions);
        }
        let regions = self.train.regions.as_ref().map_or(String::new(), Regions::describe);
        Ok(format!("{}: {regions}", path.display()))
    }

    fn named(&mut self) -> [(&mut SplitData, &'static str); 3] {
        [(&mut self.train, "train"), (&mut self.val, "val"), (&mut self.test, "test")]
    }

    fn add_images(&mut self, table: &RowTable) -> Result<Vec<String>> {
        let width = table.features.dim;
        let mut notes = vec![format!("{}: rows of images, width {width}", table.place)];
        let all = self.train.images.len();
        let known = |&i: &usize| table.numbers.contains_key(&self.train.images[i]);
        let kept: Vec<usize> = (0..all).filter(known).collect();
        let example = excerpt(self.train.images.first().map_or("", String::as_str));
        let expected = format_args!("a training image such as {example}");
        Error::unless(!kept.is_empty(), &table.place, expected, "none")?;
        if kept.len() < all {
            let left_out = all - kept.len();
            let expected = "a row for every training image, because there are regions";
            let got = format_args!("{left_out} without");
            Error::unless(self.train.regions.is_none(), &table.place, expected, got)?;
            notes.push(format!(
                "{}: {left_out} of {all} training images have no row there: every row learns without them",
                table.place
            ));
            self.train.keep(&kept)?;
        }
        for (part, name) in self.named() {
            let rows = part.images.iter().map(String::as_str);
            table.beside(&mut part.embeddings.images, rows, &format!("{name} image"))?;
        }
        Ok(notes)
    }
}

/// Rows of unit length by name.
struct RowTable {
    place: String,
    features: Features,
    numbers: HashMap<String, usize>,
}

impl RowTable {
    /// `NAME.npy` with the names of its rows; `None` if there is no such file.
    fn open(
        folder: &Path,
        name: &str,
        names: &str,
        manifest: &mut Manifest,
    ) -> Result<Option<Self>> {
        let path = folder.join(format!("{name}.npy"));
        if !path.exists() {
            let (alone, expected) =
                (!folder.join(name).is_dir(), "one file, joined from its shards");
            Error::unless(alone, path.display(), expected, "a folder of shards")?;
            return Ok(None);
        }
        let npy = Npy::open(&path)?;
        npy.check_rank(&[2])?;
        manifest.add(folder, &path, npy.file_bytes());
        let (rows, width) = (npy.rows(), npy.row_len());
        let list = folder.join(names);
        let lines = manifest.read_lines(folder, &list, "a name or a caption")?;
        let expected = format_args!("{rows} lines, as many as {name}.npy has rows");
        Error::unless(lines.len() == rows, list.display(), expected, lines.len())?;
        let mut values = vec![0.0; rows * width];
        for (k, row) in values.chunks_exact_mut(width).enumerate() {
            npy.row_into(k, row)?;
            let length = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            let fits = length.is_finite() && length != 0.0;
            let place = format_args!("{}, row {k}", path.display());
            Error::unless(fits, place, "a finite length above 0", length)?;
            row.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
        }
        let features = Features { dim: width, values };
        let mut numbers = HashMap::with_capacity(rows);
        for (k, line) in lines.into_iter().enumerate() {
            let first = *numbers.entry(line.trim().to_owned()).or_insert(k);
            let same = first == k || equal(features.row(first), features.row(k));
            let place = format_args!("{} line {}", list.display(), k + 1);
            let expected = format_args!("the row of line {}, which is the same", first + 1);
            Error::unless(same, place, expected, "another row")?;
        }
        Ok(Some(Self { place: path.display().to_string(), features, numbers }))
    }

    /// The rows of these names beside the rows that `to` has.
    fn beside<'n>(
        &self,
        to: &mut Features,
        names: impl ExactSizeIterator<Item = &'n str>,
        what: &str,
    ) -> Result<()> {
        let mut values = Vec::with_capacity(names.len() * (to.dim + self.features.dim));
        for (k, name) in names.enumerate() {
            let Some(&row) = self.numbers.get(name) else {
                let expected = format!("a row for {what} {k}, {}", excerpt(name));
                return Err(Error::invalid(&self.place, expected, "none"));
            };
            if to.dim > 0 {
                values.extend_from_slice(to.row(k));
            }
            values.extend_from_slice(self.features.row(row));
        }
        *to = Features { dim: to.dim + self.features.dim, values };
        Ok(())
    }
}

/// Whether rows are equal up to the rounding of another batch.
fn equal(a: &[f32], b: &[f32]) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5)
}

#[cfg(test)]
mod tests;

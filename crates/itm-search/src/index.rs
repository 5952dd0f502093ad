//! An index that is read.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::RgbImage;
use itm_core::data::upright_image;
use itm_core::files::read;
use itm_core::{Error, Result};

use crate::Picture;
use crate::folder::locate;
use crate::store::{Stored, thumbnail};

/// The longest side of a preview, in pixels.
const PREVIEW: u32 = 1600;
/// The quality of the JPEGs that are made here.
const QUALITY: u8 = 82;
/// The largest thumbnail that is read.
const LARGEST_THUMBNAIL: u64 = 1 << 20;

/// Pictures with their rows, and what a bank of ordinary queries says of them. It is read only.
#[derive(Debug)]
pub struct Index {
    out: PathBuf,
    pub(crate) stored: Stored,
}

impl Index {
    /// Reads an index.
    ///
    /// # Errors
    /// If the folder has no index, one of another version, or one whose files do not belong together.
    pub fn open(out: &Path) -> Result<Self> {
        Ok(Self { out: out.to_owned(), stored: Stored::read(out)? })
    }

    /// The pictures, in the order of their paths.
    pub fn pictures(&self) -> &[Picture] {
        &self.stored.pictures
    }

    /// The folder of the photographs.
    pub fn folder(&self) -> &Path {
        &self.stored.manifest.folder
    }

    /// The name of the model whose rows these are.
    pub(crate) fn model(&self) -> &str {
        &self.stored.manifest.model
    }

    /// What the model called its rows: [`Encoder::identity`](crate::Encoder::identity).
    pub(crate) fn identity(&self) -> &str {
        &self.stored.manifest.identity
    }

    /// What the maker of the index must know to open its model again.
    pub fn about(&self) -> &serde_json::Value {
        &self.stored.manifest.about
    }

    /// Width of a row, `d`.
    pub fn width(&self) -> usize {
        self.stored.manifest.width
    }

    /// The unit row of a picture, `v_j`.
    ///
    /// # Panics
    /// If there is no such picture.
    pub fn row(&self, picture: usize) -> &[f32] {
        let width = self.width();
        &self.stored.tables.rows[picture * width..(picture + 1) * width]
    }

    /// All rows, `[n, d]`.
    pub(crate) fn rows(&self) -> &[f32] {
        &self.stored.tables.rows
    }

    /// The ordinary queries.
    pub fn bank(&self) -> &[String] {
        &self.stored.bank
    }

    /// The name of the correction that the bank chose.
    pub fn correction(&self) -> &str {
        &self.stored.manifest.correction
    }

    /// What each picture gets from any query, `b_j`.
    pub(crate) fn biases(&self) -> &[f64] {
        &self.stored.tables.biases
    }

    /// For each picture, how many ordinary queries have it first by the cosine.
    pub fn answers(&self) -> &[u32] {
        &self.stored.tables.answers[0]
    }

    /// For each picture, how many ordinary queries have it first by the corrected score. The correction of each query is fitted on
    /// the half of the bank that the query is not in.
    pub(crate) fn corrected_answers(&self) -> &[u32] {
        &self.stored.tables.answers[1]
    }

    /// What ordinary queries reach: the median over the bank of the score of the best picture.
    pub(crate) fn level(&self, corrected: bool) -> f32 {
        self.stored.manifest.levels[usize::from(corrected)]
    }

    /// A small JPEG, which was made with the index.
    ///
    /// # Errors
    /// If it cannot be read.
    ///
    /// # Panics
    /// If there is no such picture.
    pub fn thumbnail(&self, picture: usize) -> Result<Vec<u8>> {
        read(thumbnail(&self.out, &self.pictures()[picture].sha256), LARGEST_THUMBNAIL)
    }

    /// The photograph, upright.
    ///
    /// # Errors
    /// If it was moved, deleted or replaced by a link, or cannot be decoded.
    ///
    /// # Panics
    /// If there is no such picture.
    pub(crate) fn photograph(&self, picture: usize) -> Result<RgbImage> {
        upright_image(locate(self.folder(), &self.pictures()[picture].path)?)
    }

    /// The photograph as a new JPEG of at most 1,600 pixels a side: never the bytes of the file, which may hold more than a picture.
    ///
    /// # Errors
    /// As `photograph`.
    ///
    /// # Panics
    /// If there is no such picture.
    pub fn preview(&self, picture: usize) -> Result<Vec<u8>> {
        jpeg(&self.photograph(picture)?, PREVIEW)
    }
}

/// A JPEG of a picture whose longest side is at most `side`.
pub(crate) fn jpeg(image: &RgbImage, side: u32) -> Result<Vec<u8>> {
    let (width, height) = image.dimensions();
    let longest = width.max(height);
    let scaled =
        |n: u32| (u64::from(n) * u64::from(side) / u64::from(longest.max(1))).max(1) as u32;
    let small;
    let image = if longest > side {
        small = image::imageops::thumbnail(image, scaled(width), scaled(height));
        &small
    } else {
        image
    };
    let mut file = Cursor::new(vec![]);
    let written =
        image::codecs::jpeg::JpegEncoder::new_with_quality(&mut file, QUALITY).encode_image(image);
    written.map_err(|error| Error::invalid("a small picture", "a JPEG", error))?;
    Ok(file.into_inner())
}

#[cfg(test)]
mod tests;

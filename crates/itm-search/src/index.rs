//! An index that is read.

use std::collections::HashMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::RgbImage;
use itm_core::data::upright_image;
use itm_core::files::read;
use itm_core::tiles::{Embeddings, Panels};
use itm_core::{Error, Result};

use crate::Picture;
use crate::folder::locate;
use crate::store::{IndexManifest, Stored, thumbnail};

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
    pub(crate) manifest: IndexManifest,
    pub(crate) pictures: Vec<Picture>,
    bank: Vec<String>,
    /// `[n, d]`.
    pub(crate) rows: Panels,
    /// What each picture gets from any query, `b_j`.
    pub(crate) biases: Vec<f64>,
    answers: [Vec<u32>; 2],
    /// Pictures by the name of their file; `None` if several have it.
    names: HashMap<String, Option<usize>>,
}

impl Index {
    /// Reads an index.
    ///
    /// # Errors
    /// If the folder has no index, one of another version, or one whose files do not belong together.
    pub fn open(out: &Path) -> Result<Self> {
        let Stored { manifest, pictures, bank, tables } = Stored::read(out)?;
        let rows = Embeddings::new("rows", pictures.len(), manifest.width, &tables.rows)?;
        let mut names = HashMap::new();
        for (at, picture) in pictures.iter().enumerate() {
            let name = picture.path.rsplit('/').next().unwrap_or_default();
            names.entry(name.to_owned()).and_modify(|found| *found = None).or_insert(Some(at));
        }
        Ok(Self {
            out: out.to_owned(),
            rows: Panels::new(&rows),
            biases: tables.biases,
            answers: tables.answers,
            manifest,
            pictures,
            bank,
            names,
        })
    }

    /// The pictures, in the order of their paths.
    pub fn pictures(&self) -> &[Picture] {
        &self.pictures
    }

    /// The folder of the photographs.
    pub fn folder(&self) -> &Path {
        &self.manifest.folder
    }

    /// What the maker of the index must know to open its model again.
    pub fn about(&self) -> &serde_json::Value {
        &self.manifest.about
    }

    /// Width of a row, `d`.
    pub fn width(&self) -> usize {
        self.manifest.width
    }

    /// The unit row of a picture, `v_j`.
    ///
    /// # Panics
    /// If there is no such picture.
    pub fn row(&self, picture: usize) -> Vec<f32> {
        self.rows.row(picture)
    }

    /// The picture with a path, or the only one with a file name.
    pub(crate) fn named(&self, text: &str) -> Option<usize> {
        let by_path = self.pictures.binary_search_by(|picture| picture.path.as_str().cmp(text));
        by_path.ok().or_else(|| *self.names.get(text)?)
    }

    /// The ordinary queries.
    pub fn bank(&self) -> &[String] {
        &self.bank
    }

    /// The name of the correction that the bank chose.
    pub fn correction(&self) -> &str {
        &self.manifest.correction
    }

    /// For each picture, how many ordinary queries have it first: by the cosine, by the corrected score. The correction of each query
    /// is fitted on the half of the bank that the query is not in.
    pub fn answers(&self) -> &[Vec<u32>; 2] {
        &self.answers
    }

    /// What ordinary queries reach: the median over the bank of the score of the best picture.
    pub(crate) fn level(&self, corrected: bool) -> f32 {
        self.manifest.levels[usize::from(corrected)]
    }

    /// A small JPEG, which was made with the index.
    ///
    /// # Errors
    /// If it cannot be read, or is a link out of the index.
    ///
    /// # Panics
    /// If there is no such picture.
    pub fn thumbnail(&self, picture: usize) -> Result<Vec<u8>> {
        let path = thumbnail(&self.out, &self.pictures()[picture].sha256);
        let [real, whole] = [&*path, &*self.out].map(|at| at.canonicalize().map_err(Error::io(at)));
        let inside = real?.starts_with(whole?);
        Error::unless(inside, path.display(), "a file of the index", "a link out of it")?;
        read(path, LARGEST_THUMBNAIL)
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
    let thumbnail = || image::imageops::thumbnail(image, scaled(width), scaled(height));
    let small = (longest > side).then(thumbnail);
    let image = small.as_ref().unwrap_or(image);
    let mut file = Cursor::new(vec![]);
    let written =
        image::codecs::jpeg::JpegEncoder::new_with_quality(&mut file, QUALITY).encode_image(image);
    written.map_err(|error| Error::invalid("a small picture", "a JPEG", error))?;
    Ok(file.into_inner())
}

#[cfg(test)]
mod tests;

//! What an index asks of a model.

use image::DynamicImage;
use itm_core::{Error, Result};

/// Rows of sentences and of pictures in one space.
pub trait Encoder: Send + Sync {
    /// What the encoder is.
    fn model(&self) -> Model;

    /// Unit rows of sentences, `[n, d]`.
    ///
    /// # Errors
    /// If a sentence cannot be read.
    fn texts(&self, texts: &[&str]) -> Result<Vec<f32>>;

    /// Unit rows of upright pictures, `[n, d]`.
    ///
    /// # Errors
    /// If the model cannot see new pictures.
    fn pictures(&self, pictures: &[DynamicImage]) -> Result<Vec<f32>>;

    /// Unit rows of patches that cover the whole picture, in the same space; `None` if the model has none.
    ///
    /// # Errors
    /// As [`pictures`](Self::pictures).
    fn patches(&self, _picture: &DynamicImage) -> Result<Option<Patches>> {
        Ok(None)
    }
}

/// What an encoder is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// What a person calls it.
    pub name: String,
    /// Changes whenever a row would change: a hash of the weights and of how they are used. An index of another identity is made
    /// anew.
    pub identity: String,
    /// Width of a row, `d`.
    pub width: usize,
}

/// The patches of a picture, row by row of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Patches {
    /// Rows and columns of the grid.
    pub grid: [usize; 2],
    /// `[rows · columns, d]`.
    pub rows: Vec<f32>,
}

/// Unit rows of sentences, checked.
pub(crate) fn texts(encoder: &dyn Encoder, texts: &[&str]) -> Result<Vec<f32>> {
    checked(encoder, texts.len(), encoder.texts(texts)?)
}

/// Unit rows of pictures, checked.
pub(crate) fn pictures(encoder: &dyn Encoder, pictures: &[DynamicImage]) -> Result<Vec<f32>> {
    checked(encoder, pictures.len(), encoder.pictures(pictures)?)
}

/// Refuses rows of another number, and rows that are not of unit length: a damaged model gives such rows.
pub(crate) fn checked(encoder: &dyn Encoder, count: usize, rows: Vec<f32>) -> Result<Vec<f32>> {
    let Model { name: place, width, .. } = encoder.model();
    let expected = format_args!("{count} rows of {width} values");
    let fits = width > 0 && count.checked_mul(width) == Some(rows.len());
    Error::unless(fits, &place, expected, format_args!("{} values", rows.len()))?;
    if let Some(row) = rows.chunks_exact(width).find(|row| !is_unit(row)) {
        return Err(Error::invalid(place, "rows of length 1", format!("length {}", length(row))));
    }
    Ok(rows)
}

/// Whether a row has length 1; a row with NaN has not.
pub(crate) fn is_unit(row: &[f32]) -> bool {
    (length(row) - 1.0).abs() < 1e-3
}

/// The Euclidean length of a row.
pub(crate) fn length(row: &[f32]) -> f64 {
    row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt()
}

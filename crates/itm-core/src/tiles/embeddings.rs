//! A view of embeddings in memory, checked once.

use std::fmt::Display;
use std::ops::Range;

use crate::{Error, Result};

/// A view of embeddings in memory: `rows × dim`, row-major, every value finite.
///
/// | symbol | here                | shape         |
/// |--------|---------------------|---------------|
/// | n or m | [`rows`](Self::rows) |              |
/// | d      | [`dim`](Self::dim)   |              |
/// | v or w | the values          | `[rows, dim]` |
///
/// The values are used as they are: for cosines, normalise the rows first.
///
/// ```
/// use itm_core::tiles::Embeddings;
///
/// let images = Embeddings::new("images", 2, 3, &[1., 0., 0., 0., 1., 0.])?;
/// assert_eq!((images.rows(), images.dim()), (2, 3));
///
/// let error = Embeddings::new("images", 1, 2, &[0., f32::NAN]).unwrap_err();
/// assert_eq!(error.to_string(), "images, row 0, column 1: expected a finite number, got NaN");
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Embeddings<'a> {
    rows: usize,
    dim: usize,
    values: &'a [f32],
    largest: f32,
}

impl<'a> Embeddings<'a> {
    /// A view of row-major `f32` values; errors call them `name`.
    ///
    /// # Errors
    /// If `dim` is 0, the number of values is not `rows · dim`, there are 2³² rows or more, or a value is NaN or infinite
    /// (the error names its row and column).
    pub fn new(name: impl Display, rows: usize, dim: usize, values: &'a [f32]) -> Result<Self> {
        let n = values.len();
        Error::unless(dim > 0, &name, "a width of at least 1", 0)?;
        let fits = rows.checked_mul(dim) == Some(n);
        Error::unless(fits, &name, format_args!("{rows} × {dim} values"), n)?;
        Error::unless(u32::try_from(rows).is_ok(), &name, "fewer than 2³² rows", rows)?;
        // NaN and infinity have the largest bits, so one pass finds the largest magnitude and checks every value.
        let bits = values.iter().fold(0, |most, v| v.abs().to_bits().max(most));
        if bits >= f32::INFINITY.to_bits() {
            let at = values.iter().position(|v| !v.is_finite()).expect("one has such bits");
            let place = format!("{name}, row {}, column {}", at / dim, at % dim);
            return Err(Error::invalid(place, "a finite number", values[at]));
        }
        Ok(Self { rows, dim, values, largest: f32::from_bits(bits) })
    }

    /// Number of embeddings.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Width of an embedding.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The largest magnitude among all values; 0 if there are none.
    pub(crate) fn largest(&self) -> f32 {
        self.largest
    }

    /// The values of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &'a [f32] {
        self.block(row..row.saturating_add(1))
    }

    /// The values of some rows.
    pub(super) fn block(&self, rows: Range<usize>) -> &'a [f32] {
        let inside = rows.start <= rows.end && rows.end <= self.rows;
        assert!(inside, "rows {rows:?} of {}", self.rows);
        &self.values[rows.start * self.dim..rows.end * self.dim]
    }

    /// A view of `values`: contiguous copies of some of these rows.
    pub(super) fn taken<'b>(&self, values: &'b [f32]) -> Embeddings<'b> {
        Embeddings { rows: values.len() / self.dim, dim: self.dim, values, largest: self.largest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_is_named_by_row_and_column() {
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = vec![0.5; 12];
            values[7] = bad;
            let want = format!("texts, row 2, column 1: expected a finite number, got {bad}");
            assert_eq!(Embeddings::new("texts", 4, 3, &values).unwrap_err().to_string(), want);
        }
    }

    #[test]
    fn shapes_are_checked() {
        let error =
            |rows, dim, n| Embeddings::new("e", rows, dim, &vec![0.0; n]).unwrap_err().to_string();
        assert_eq!(error(2, 3, 5), "e: expected 2 × 3 values, got 5");
        assert_eq!(error(2, 0, 0), "e: expected a width of at least 1, got 0");
        assert_eq!(
            error(usize::MAX, 2, 0),
            format!("e: expected {} × 2 values, got 0", usize::MAX)
        );
        assert_eq!(Embeddings::new("e", 0, 3, &[]).unwrap().rows(), 0);
    }

    #[test]
    fn the_largest_magnitude_counts_signs_alike() {
        let values = [0.25, -3.0, 2.0, 1.0];
        assert_eq!(Embeddings::new("e", 2, 2, &values).unwrap().largest(), 3.0);
    }
}

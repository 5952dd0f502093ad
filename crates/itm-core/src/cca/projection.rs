//! A linear map into the common space, applied to dense and sparse rows alike.

use faer::{Mat, MatRef};
use rayon::prelude::*;

use super::rows::SparseRow;
use crate::data::unit;
use crate::{Error, Result};

/// `x ↦ Wᵀ (x − mean)` with the mean of the training split. [`Cca::projections`](super::Cca::projections) has the two of a fit; stored, they
/// serve new rows that are prepared as the rows of the fit were.
///
/// | symbol | here | shape |
/// |---|---|---|
/// | `W` | [`weights`](Self::weights) | `[inputs, width]` |
/// | `Wᵀ mean` | [`offset`](Self::offset) | `[width]` |
///
/// ```
/// use itm_core::cca::Projection;
///
/// let map = Projection::from_parts(vec![3.0, 0.0, 0.0, 2.0], vec![0.0, 0.0])?;
/// assert_eq!(map.unit_rows(&[1.0, 2.0]), [0.6, 0.8]);
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    pub(super) width: usize,
    pub(super) weights: Vec<f64>, // [inputs, width] row-major, so that a sparse row reads few lines
    pub(super) offset: Vec<f64>,  // [width], Wᵀ mean
}

impl Projection {
    /// Multiplies each column of `w` by its weight. The length of `column_weights` is the number of columns that are
    /// kept.
    pub(super) fn new(w: MatRef<'_, f64>, mean: &[f64], column_weights: &[f64]) -> Self {
        let width = column_weights.len();
        let row = |i: usize| column_weights.iter().enumerate().map(move |(k, c)| w[(i, k)] * c);
        let weights: Vec<f64> = (0..w.nrows()).flat_map(row).collect();
        let mut offset = vec![0.0; width];
        for (line, mean) in weights.chunks(width).zip(mean) {
            offset.iter_mut().zip(line).for_each(|(sum, w)| *sum += w * mean);
        }
        Self { width, weights, offset }
    }

    /// From what [`weights`](Self::weights) and [`offset`](Self::offset) give.
    ///
    /// # Errors
    /// If the numbers of values do not fit, or a value is not finite.
    pub fn from_parts(weights: Vec<f64>, offset: Vec<f64>) -> Result<Self> {
        let width = offset.len();
        let fits = width > 0 && !weights.is_empty() && weights.len().is_multiple_of(width);
        let expected = format!("rows of {width} weights, as wide as the offset");
        Error::unless(fits, "projection", expected, format_args!("{} weights", weights.len()))?;
        match weights.iter().chain(&offset).find(|value| !value.is_finite()) {
            Some(value) => Err(Error::invalid("projection", "finite values", value)),
            None => Ok(Self { width, weights, offset }),
        }
    }

    /// `W`, row-major.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// `Wᵀ mean`.
    pub fn offset(&self) -> &[f64] {
        &self.offset
    }

    /// Width of a row before the map.
    pub fn inputs(&self) -> usize {
        self.weights.len() / self.width
    }

    /// The mapped rows at unit length, row-major.
    ///
    /// # Panics
    /// If the rows have another width than [`inputs`](Self::inputs).
    pub fn unit_rows(&self, rows: &[f32]) -> Vec<f32> {
        let inputs = self.inputs();
        assert!(rows.len().is_multiple_of(inputs), "rows of {inputs} values, got {}", rows.len());
        let row = |i: usize| rows[i * inputs..(i + 1) * inputs].iter().map(|&x| f64::from(x));
        self.embed(rows.len() / inputs, |i| row(i).enumerate().collect())
    }

    /// The mapped rows, `[rows, width]`.
    pub(super) fn matrix(&self, rows: &[SparseRow]) -> Mat<f64> {
        let mapped: Vec<_> = rows.par_iter().map(|row| self.map(row)).collect();
        Mat::from_fn(rows.len(), self.width, |i, k| mapped[i][k])
    }

    /// The mapped rows at unit length, row-major.
    pub(super) fn embed(&self, rows: usize, row: impl Fn(usize) -> SparseRow + Sync) -> Vec<f32> {
        let embedded = (0..rows).into_par_iter().flat_map_iter(|i| {
            let mut mapped = self.map(&row(i));
            unit(&mut mapped);
            mapped.into_iter().map(|value| value as f32)
        });
        embedded.collect()
    }

    /// A mapped row.
    pub(super) fn map(&self, row: &SparseRow) -> Vec<f64> {
        let mut mapped: Vec<f64> = self.offset.iter().map(|value| -value).collect();
        for &(input, value) in row {
            let line = &self.weights[input * self.width..(input + 1) * self.width];
            mapped.iter_mut().zip(line).for_each(|(sum, w)| *sum += w * value);
        }
        mapped
    }
}

//! A linear map into the common space, applied to dense and sparse rows alike.

use faer::{Mat, MatRef};
use rayon::prelude::*;

use super::rows::SparseRow;

/// `x ↦ Wᵀ (x − mean)` with the mean of the training split.
#[derive(Debug, Clone)]
pub(super) struct Projection {
    width: usize,
    weights: Vec<f64>, // [inputs, width] row-major, so that a sparse row reads few lines
    offset: Vec<f64>,  // [width], Wᵀ mean
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

    /// Width of a row before the map.
    pub(super) fn inputs(&self) -> usize {
        self.weights.len() / self.width
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

    fn map(&self, row: &SparseRow) -> Vec<f64> {
        let mut mapped: Vec<f64> = self.offset.iter().map(|value| -value).collect();
        for &(input, value) in row {
            let line = &self.weights[input * self.width..(input + 1) * self.width];
            mapped.iter_mut().zip(line).for_each(|(sum, w)| *sum += w * value);
        }
        mapped
    }
}

/// Divides by the Euclidean norm; zeros stay zeros.
pub(super) fn unit(row: &mut [f64]) {
    let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
    if norm > 0.0 {
        row.iter_mut().for_each(|x| *x /= norm);
    }
}

//! Operands, rounded and laid out for the product.

use std::ops::Range;

use super::{COLUMNS, ROWS};
use crate::dispatch::multiversion;

/// Added to a number below 2²² in magnitude, this leaves the nearest integer in the low bits: the spacing is 1 there.
const SHIFT: f32 = 12_582_912.0; // 1.5 · 2²³

/// `value · scale` as the nearest integer, ties to even.
///
/// The product must be below 32,767.5 in magnitude; beyond it the result has no meaning.
#[inline(always)]
pub fn round(value: f32, scale: f32) -> i16 {
    (value * scale + SHIFT).to_bits() as i16
}

/// The left operand: rows of pairs of values.
#[derive(Debug, Clone, Default)]
pub struct PackedRows {
    pub(super) pairs: usize,
    pub(super) rows: usize,
    values: Vec<i16>, // [rows and at least 12 rows of zeros, 2 · pairs]
}

/// The right operand: panels of 16 columns, pair by pair.
#[derive(Debug, Clone, Default)]
pub struct PackedColumns {
    pub(super) pairs: usize,
    panels: usize,
    values: Vec<[i16; 2 * COLUMNS]>, // [panels, pairs, columns, 2]
    row: Vec<i16>,
}

impl PackedRows {
    /// Takes in rows of `dim` values each, one after the other. The memory of earlier rows is used again.
    ///
    /// # Panics
    /// If the last row is incomplete, `dim` is above 2²⁴, or the scale is not finite.
    pub fn fill(&mut self, values: &[f32], dim: usize, scale: f32) {
        let rows = count(values, dim, scale);
        (self.pairs, self.rows) = (dim.div_ceil(2), rows);
        let stride = 2 * self.pairs;
        self.values.resize((rows + ROWS) * stride, 0);
        let (given, zeros) = self.values.split_at_mut(rows * stride);
        zeros.fill(0);
        if dim > 0 {
            let places = given.chunks_exact_mut(stride);
            values.chunks_exact(dim).zip(places).for_each(|(from, to)| round_row(from, scale, to));
        }
    }

    /// Twelve rows from `first` on, from the first pair of `depth` to the last: the values, and the distance of two rows.
    pub(super) fn part(&self, first: usize, depth: Range<usize>) -> (&[i16], usize) {
        let stride = 2 * self.pairs;
        let end = (first + ROWS - 1) * stride + 2 * depth.end;
        (&self.values[first * stride + 2 * depth.start..end], stride)
    }
}

impl PackedColumns {
    /// Takes in columns of `dim` values each, one after the other. The memory of earlier columns is used again.
    ///
    /// # Panics
    /// If the last column is incomplete, `dim` is above 2²⁴, or the scale is not finite.
    pub fn fill(&mut self, values: &[f32], dim: usize, scale: f32) {
        let columns = count(values, dim, scale);
        (self.pairs, self.panels) = (dim.div_ceil(2), columns.div_ceil(COLUMNS));
        self.values.clear();
        self.values.resize(self.panels * self.pairs, [0; 2 * COLUMNS]);
        self.row.clear();
        self.row.resize(2 * self.pairs, 0);
        for (j, from) in values.chunks_exact(dim.max(1)).enumerate() {
            round_row(from, scale, &mut self.row);
            let panel = &mut self.values[j / COLUMNS * self.pairs..][..self.pairs];
            let at = 2 * (j % COLUMNS);
            for (to, pair) in panel.iter_mut().zip(self.row.chunks_exact(2)) {
                to[at..at + 2].copy_from_slice(pair);
            }
        }
    }

    /// Number of columns, rounded up to whole panels: the distance of two rows of the product.
    pub fn width(&self) -> usize {
        self.panels * COLUMNS
    }

    pub(super) fn panel(&self, panel: usize) -> &[[i16; 2 * COLUMNS]] {
        &self.values[panel * self.pairs..][..self.pairs]
    }
}

/// Longest row, so that a width without a row does not ask for all memory.
const WIDEST: usize = 1 << 24;

fn count(values: &[f32], dim: usize, scale: f32) -> usize {
    assert!(
        dim <= WIDEST && scale.is_finite(),
        "rows of {dim} values at most {WIDEST}, by {scale}"
    );
    let rows = values.len().checked_div(dim).unwrap_or(0);
    assert_eq!(values.len(), rows * dim, "whole rows of {dim} values");
    rows
}

multiversion! {
    /// One rounded row; what follows its last value becomes 0. Nothing is fused: every processor rounds alike.
    fn round_row[_FMA](from: &[f32], scale: f32, to: &mut [i16]) {
        let (given, rest) = to.split_at_mut(from.len());
        given.iter_mut().zip(from).for_each(|(to, &v)| *to = super::round(v, scale));
        rest.fill(0);
    }
}

//! One side of the coarse product: its scale, and the lengths of its rows.

use rayon::prelude::*;

use itm_kernels::int16::{PackedRows, round};

use super::super::moments::eight_sums;
use super::super::{Embeddings, widest};

/// Length of the longest row in integers: integer scores stay below 32,000² and a little more, far from 2³¹.
const LONGEST: f64 = 32_000.0;

/// Most values that are kept as integers: 32 MiB.
const KEPT: usize = 1 << 24;

/// Rows that one task reads.
const ROWS: usize = 64;

/// The rows `v` of one side, and their integers `q = round(A · v)`.
#[derive(Debug)]
pub(super) struct CoarseSide {
    /// A.
    pub(super) scale: f32,
    /// The lengths of each row.
    pub(super) rows: Vec<Lengths>,
    /// The largest of both lengths among all rows.
    pub(super) largest: Lengths,
    /// The integers of all rows, if they are kept.
    pub(super) rounded: Option<PackedRows>,
}

/// Lengths of a row, or upper bounds on the lengths of all rows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lengths {
    /// `‖A v‖`.
    pub(super) exact: f64,
    /// `‖A v − q‖`.
    pub(super) error: f64,
}

impl CoarseSide {
    /// `None` if the scale is not a normal number: all rows are zero, or the longest is extremely short or long.
    pub(super) fn new(embeddings: &Embeddings<'_>) -> Option<Self> {
        let longest = each_row(embeddings, |row| sum_of_squares(row, f64::from))
            .into_iter()
            .fold(0.0, f64::max)
            .sqrt();
        let scale = (LONGEST / longest) as f32;
        if !scale.is_normal() {
            return None;
        }
        let exact = move |v: f32| f64::from(v) * f64::from(scale); // 24 + 24 bits: exact in f64
        let error = move |v: f32| exact(v) - f64::from(round(v, scale));
        let rows = each_row(embeddings, |row| Lengths {
            exact: sum_of_squares(row, exact).sqrt(),
            error: sum_of_squares(row, error).sqrt(),
        });
        let largest = rows.iter().fold(Lengths::default(), |most, row| Lengths {
            exact: most.exact.max(row.exact),
            error: most.error.max(row.error),
        });
        Some(Self { scale, rows, largest, rounded: None })
    }

    /// Keeps the integers of all rows, if they are few: else each tile must round its rows again.
    pub(super) fn with_rounded(mut self, embeddings: &Embeddings<'_>) -> Self {
        if embeddings.rows() * embeddings.dim() <= KEPT {
            let mut rows = PackedRows::default();
            rows.fill(embeddings.block(0..embeddings.rows()), embeddings.dim(), self.scale);
            self.rounded = Some(rows);
        }
        self
    }
}

/// A number for each row, in parallel.
fn each_row<T: Send>(embeddings: &Embeddings<'_>, of: impl Fn(&[f32]) -> T + Sync) -> Vec<T> {
    let (n, dim) = (embeddings.rows(), embeddings.dim());
    let chunk = |first: usize| {
        let values = embeddings.block(first..(first + ROWS).min(n));
        values.chunks_exact(dim).map(&of).collect::<Vec<_>>()
    };
    (0..n.div_ceil(ROWS)).into_par_iter().flat_map_iter(|k| chunk(k * ROWS)).collect()
}

/// `Σ f(v)²` in f64.
fn sum_of_squares(row: &[f32], f: impl Fn(f32) -> f64) -> f64 {
    widest(
        #[inline(always)]
        || eight_sums(row, |v| f(v) * f(v)),
    )
}

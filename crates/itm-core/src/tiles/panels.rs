//! Rows that wait for queries.

use rayon::prelude::*;

use super::kernel::{Panel, product};
use super::{Embeddings, bounded};
use crate::{Result, ScoreMatrix};

/// Rows of a panel: few enough for the second-level cache, many enough that a call of the kernel costs nothing beside them.
const ROWS: usize = 256;

/// Rows, laid out for the kernel once: for searches, where few queries at a time meet the same rows again and again.
///
/// ```text
/// S = Q·Vᵀ        S: [queries, rows]   V: these rows [n, d]   Q: queries [m, d]
/// ```
/// A score has the bits that it has in [`Tiles`](super::Tiles).
///
/// ```
/// use itm_core::tiles::{Embeddings, Panels};
///
/// let panels = Panels::new(&Embeddings::new("pictures", 2, 3, &[1.0, 0.0, 0.0, 0.0, 0.6, 0.8])?);
/// let scores = panels.scores(&Embeddings::new("queries", 1, 3, &[0.0, 1.0, 0.0])?)?;
/// assert_eq!(scores.values(), [0.0, 0.6]);
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Panels {
    rows: usize,
    dim: usize,
    largest: f32,
    panels: Vec<Panel>,
}

impl Panels {
    /// Copies the rows.
    pub fn new(rows: &Embeddings<'_>) -> Self {
        let n = rows.rows();
        let panel = |at: usize| {
            let mut panel = Panel::default();
            panel.pack(rows, at * ROWS..n.min((at + 1) * ROWS));
            panel
        };
        let panels = (0..n.div_ceil(ROWS)).into_par_iter().map(panel).collect();
        Self { rows: n, dim: rows.dim(), largest: rows.largest(), panels }
    }

    /// Width of a row, `d`.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The values of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> Vec<f32> {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        self.panels[row / ROWS].text(row % ROWS)
    }

    /// The scores of queries with all rows, a row of the matrix for each query.
    ///
    /// # Errors
    /// If the widths differ, or values are so large that a score could overflow.
    pub fn scores(&self, queries: &Embeddings<'_>) -> Result<ScoreMatrix> {
        bounded([queries.dim(), self.dim], [queries.largest(), self.largest])?;
        let (m, n) = (queries.rows(), self.rows);
        let of_panel = |panel: &Panel| {
            let mut scores = vec![];
            product(queries.block(0..m), panel, &mut scores);
            scores
        };
        let all: Vec<Vec<f32>> = self.panels.par_iter().map(of_panel).collect();
        let mut values = Vec::with_capacity(m * n);
        for query in 0..m {
            for (at, (panel, scores)) in self.panels.iter().zip(&all).enumerate() {
                let start = query * panel.width();
                values.extend_from_slice(&scores[start..start + ROWS.min(n - at * ROWS)]);
            }
        }
        ScoreMatrix::new(m, n, values)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::tiles::Tiles;

    #[test]
    fn the_bits_are_the_bits_of_tiles() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let shapes = [(1, 1, 1), (3, 1, 3), (15, 2, 5), (256, 7, 2), (257, 1, 512), (700, 20, 513)];
        for (n, m, d) in shapes {
            let mut draw =
                |n: usize| (0..n).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f32>>();
            let (rows, queries) = (draw(n * d), draw(m * d));
            let rows = Embeddings::new("rows", n, d, &rows).unwrap();
            let queries = Embeddings::new("queries", m, d, &queries).unwrap();
            let panels = Panels::new(&rows);
            let got = panels.scores(&queries).unwrap();
            let want = Tiles::new(queries, rows).unwrap().scores();
            let bits = |scores: &ScoreMatrix| {
                scores.values().iter().map(|score| score.to_bits()).collect::<Vec<_>>()
            };
            assert_eq!(bits(&got), bits(&want), "{m} × {n} × {d}");
            for row in [0, n / 2, n - 1] {
                assert_eq!(panels.row(row), rows.row(row));
            }
        }
    }

    #[test]
    fn no_rows_no_queries_other_widths_large_values() {
        let of = |dim: usize, values: &'static [f32]| {
            Embeddings::new("rows", values.len() / dim, dim, values).unwrap()
        };
        let panels = Panels::new(&of(2, &[]));
        assert!(panels.scores(&of(2, &[1.0, 2.0])).unwrap().values().is_empty());
        assert!(Panels::new(&of(2, &[1.0, 2.0])).scores(&of(2, &[])).unwrap().values().is_empty());
        let line = panels.scores(&of(3, &[1.0; 3])).unwrap_err().to_string();
        assert!(line.contains("width 3") && line.ends_with("got 2"), "{line}");
        let large = Panels::new(&of(2, &[1e30, 0.0])).scores(&of(2, &[1e30, 0.0]));
        assert!(large.unwrap_err().to_string().contains("max|w|"));
    }
}

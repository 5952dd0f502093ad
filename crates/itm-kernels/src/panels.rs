//! Repeated products of few rows with one large matrix. The matrix is packed once, in the order of use.
//!
//! A step of a recurrent unit multiplies some dozens of rows with all weights. A general product would spend as long
//! on packing the weights as on multiplying. Here the weights are packed in panels, and every step reads them front
//! to back.

#![allow(clippy::needless_range_loop)] // registers are counted

use rayon::prelude::*;

/// Columns of a panel: three AVX-512 registers or six AVX2 registers.
pub(crate) const WIDTH: usize = 48;
/// Rows per block of the left operand: with the width of a panel this makes 24 AVX-512 registers of sums.
pub(crate) const ROWS: usize = 8;
/// Depth of one pass: the parts of the panel (192 KiB) and of the left operand stay in the second-level cache.
const DEPTH: usize = 1024;

/// One row of a panel.
type PanelRow = [f32; WIDTH];
/// A block of the product.
type Tile = [PanelRow; ROWS];

/// A right operand, `[depth, panels · 48]`.
pub(crate) struct Panels {
    data: Vec<f32>,
    depth: usize,
}

impl Panels {
    /// Calls `fill` with the number of each panel and its rows, which are all zero.
    pub(crate) fn new(
        depth: usize,
        panels: usize,
        fill: impl Fn(usize, &mut [PanelRow]) + Sync,
    ) -> Self {
        let mut data = vec![0.0; panels * depth * WIDTH];
        data.par_chunks_exact_mut(depth * WIDTH)
            .enumerate()
            .for_each(|(p, panel)| fill(p, panel.as_chunks_mut().0));
        Self { data, depth }
    }

    /// Rows of `width` values as columns, with zeros after the last row.
    pub(crate) fn of_rows(rows: &[f32], width: usize) -> Self {
        /// Depth of a piece: both sides of the transposition stay in the first-level cache.
        const PIECE: usize = 16;
        let n = rows.len() / width;
        Self::new(width, n.div_ceil(WIDTH), |p, panel| {
            let rows = &rows[p * WIDTH * width..((p + 1) * WIDTH).min(n) * width];
            for (piece, panel) in panel.chunks_mut(PIECE).enumerate() {
                for (c, row) in rows.chunks_exact(width).enumerate() {
                    let from = &row[piece * PIECE..];
                    panel.iter_mut().zip(from).for_each(|(to, &x)| to[c] = x);
                }
            }
        })
    }

    /// Number of panels.
    pub(crate) fn count(&self) -> usize {
        self.data.len() / (self.depth * WIDTH)
    }

    /// `to = left · self`.
    ///
    /// | operand | order |
    /// |---|---|
    /// | `left` | `[blocks, depth, 8]`: [`block`] |
    /// | `to` | `[panels, blocks · 8, 48]` |
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub(crate) fn product(&self, to: &mut [f32], left: &[f32]) {
        let blocks = left.len() / (self.depth * ROWS);
        assert!(blocks * self.depth * ROWS == left.len(), "{} values of blocks", left.len());
        assert_eq!(to.len(), self.count() * blocks * ROWS * WIDTH, "values of the product");
        to.par_chunks_exact_mut((blocks * ROWS * WIDTH).max(1))
            .zip(self.data.par_chunks_exact(self.depth * WIDTH))
            .for_each(|(to, panel)| {
                to.fill(0.0);
                let tiles = to.as_chunks_mut::<WIDTH>().0.as_chunks_mut::<ROWS>().0;
                for (pass, panel) in panel.as_chunks::<WIDTH>().0.chunks(DEPTH).enumerate() {
                    for (tile, left) in tiles.iter_mut().zip(left.chunks_exact(self.depth * ROWS)) {
                        let left = &left.as_chunks::<ROWS>().0[pass * DEPTH..][..panel.len()];
                        add_tile(tile, left, panel);
                    }
                }
            });
    }
}

/// Rows of `width` values as a block of a left operand: `to[k][r] = rows[r][k]`, zero where there is no row.
pub(crate) fn block(to: &mut [f32], rows: &[f32], width: usize) {
    let to = to.as_chunks_mut::<ROWS>().0;
    assert!(to.len() == width && rows.len() <= ROWS * width, "a block of {ROWS} rows of {width}");
    if rows.len() < ROWS * width {
        to.as_flattened_mut().fill(0.0);
    }
    for (r, row) in rows.chunks_exact(width).enumerate() {
        to.iter_mut().zip(row).for_each(|(to, &x)| to[r] = x);
    }
}

/// `tile += leftᵀ · panel` over the rows of the panel, in their order.
#[allow(unsafe_code)] // calls below a feature check
fn add_tile(tile: &mut Tile, left: &[[f32; ROWS]], panel: &[PanelRow]) {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::dispatch::{Level, level};
        match level() {
            // SAFETY: `level` returned this because the CPU has every feature the copy is compiled for.
            Level::Avx512 => return unsafe { x86::add_tile_avx512(tile, left, panel) },
            // SAFETY: as above.
            Level::Avx2 => return unsafe { x86::add_tile_avx2(tile, left, panel) },
            Level::Baseline => {}
        }
    }
    for (r, to) in tile.iter_mut().enumerate() {
        let mut sums = *to;
        for (x, row) in left.iter().zip(panel) {
            for c in 0..WIDTH {
                // One instruction on every 64-bit Arm.
                sums[c] = crate::math::mul_add::<{ cfg!(target_arch = "aarch64") }>(
                    x[r], row[c], sums[c],
                );
            }
        }
        *to = sums;
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // loads and stores of whole registers
mod x86 {
    use std::arch::x86_64::*;

    use super::{PanelRow, ROWS, Tile, WIDTH};

    /// 8 rows × 3 registers of sums.
    #[target_feature(enable = "avx512f")]
    pub(super) fn add_tile_avx512(tile: &mut Tile, left: &[[f32; ROWS]], panel: &[PanelRow]) {
        let mut sums = [[_mm512_setzero_ps(); 3]; ROWS];
        for (x, row) in left.iter().zip(panel) {
            let mut w = [_mm512_setzero_ps(); 3];
            for c in 0..3 {
                // SAFETY: 16 values from 16 c on lie inside the 48 of a row, as 16 · 2 + 16 = 48.
                w[c] = unsafe { _mm512_loadu_ps(row.as_ptr().add(16 * c)) };
            }
            for r in 0..ROWS {
                let x = _mm512_set1_ps(x[r]);
                for c in 0..3 {
                    sums[r][c] = _mm512_fmadd_ps(x, w[c], sums[r][c]);
                }
            }
        }
        for (to, sums) in tile.iter_mut().zip(sums) {
            for (c, sum) in sums.into_iter().enumerate() {
                // SAFETY: as above, and `to` is borrowed mutably.
                unsafe {
                    let to = to.as_mut_ptr().add(16 * c);
                    _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), sum));
                }
            }
        }
    }

    /// Four times 4 rows × 3 registers of sums, because AVX2 has 16 registers.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn add_tile_avx2(tile: &mut Tile, left: &[[f32; ROWS]], panel: &[PanelRow]) {
        for first in [0, WIDTH / 2] {
            for top in [0, ROWS / 2] {
                let mut sums = [[_mm256_setzero_ps(); 3]; 4];
                for (x, row) in left.iter().zip(panel) {
                    let mut w = [_mm256_setzero_ps(); 3];
                    for c in 0..3 {
                        // SAFETY: 8 values from first + 8 c on lie inside the 48 of a row, as 24 + 8 · 2 + 8 = 48.
                        w[c] = unsafe { _mm256_loadu_ps(row.as_ptr().add(first + 8 * c)) };
                    }
                    for r in 0..4 {
                        let x = _mm256_set1_ps(x[top + r]);
                        for c in 0..3 {
                            sums[r][c] = _mm256_fmadd_ps(x, w[c], sums[r][c]);
                        }
                    }
                }
                for (to, sums) in tile[top..].iter_mut().zip(sums) {
                    for (c, sum) in sums.into_iter().enumerate() {
                        // SAFETY: as above, and `to` is borrowed mutably.
                        unsafe {
                            let to = to.as_mut_ptr().add(first + 8 * c);
                            _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), sum));
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::unit;
    use crate::tests::on_every_instruction_set;

    /// Small whole numbers: every sum is exact in any order.
    fn whole(n: usize, seed: u64) -> Vec<f32> {
        (0..n as u64).map(|k| (unit(seed, k) * 9.0).floor() - 4.0).collect()
    }

    /// Compares with sums in `i64`, for depths around the end of a pass, rows that do not fill a block and columns
    /// that do not fill a panel. The padding must be zero.
    fn check() {
        for (rows, depth, cols) in
            [(1, 1, 1), (11, 5, 50), (8, 1024, 48), (3, 1025, 100), (17, 2051, 7)]
        {
            let (a, b) = (whole(rows * depth, 1), whole(depth * cols, 2));
            let count = cols.div_ceil(WIDTH);
            let panels = Panels::new(depth, count, |p, panel| {
                for (k, row) in panel.iter_mut().enumerate() {
                    for (c, to) in row.iter_mut().enumerate().take(WIDTH) {
                        let at = p * WIDTH + c;
                        *to = if at < cols { b[k * cols + at] } else { 0.0 };
                    }
                }
            });
            let blocks = rows.div_ceil(ROWS);
            let mut left = vec![f32::NAN; blocks * ROWS * depth];
            for (to, rows) in left.chunks_mut(ROWS * depth).zip(a.chunks(ROWS * depth)) {
                block(to, rows, depth);
            }
            let mut to = vec![f32::NAN; count * blocks * ROWS * WIDTH];
            panels.product(&mut to, &left);
            for p in 0..count {
                for r in 0..blocks * ROWS {
                    for c in 0..WIDTH {
                        let col = p * WIDTH + c;
                        let term = |k| (a[r * depth + k] * b[k * cols + col]) as i64;
                        let inside = r < rows && col < cols;
                        let want = if inside { (0..depth).map(term).sum::<i64>() } else { 0 };
                        let got = to[(p * blocks * ROWS + r) * WIDTH + c];
                        assert_eq!(
                            got, want as f32,
                            "row {r}, column {col} of {rows} × {depth} × {cols}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn agrees_with_whole_numbers() {
        check();
        on_every_instruction_set(check);
    }

    #[test]
    #[should_panic(expected = "values of the product")]
    fn a_short_destination_is_refused() {
        Panels::new(2, 1, |_, _| ()).product(&mut [0.0; 4], &[0.0; 16]);
    }
}

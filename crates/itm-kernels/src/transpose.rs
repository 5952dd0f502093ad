//! Copies of transposes: some products take up to twice as long if they read an operand across its rows.

use std::cell::Cell;

use rayon::prelude::*;

/// Calls `f` with a copy of the transpose of a row-major `rows × cols` matrix, made on all threads in memory that the calling
/// thread keeps for the next call.
///
/// # Panics
/// If `data` has another length.
pub(crate) fn with_transposed<T>(
    data: &[f32],
    rows: usize,
    cols: usize,
    f: impl FnOnce(&[f32]) -> T,
) -> T {
    thread_local! {
        static KEPT: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
    }
    assert_eq!(data.len(), rows * cols, "a {rows} × {cols} matrix in {} values", data.len());
    let mut kept = KEPT.take();
    if kept.len() < rows * cols {
        kept.resize(rows * cols, 0.0);
    }
    let to = &mut kept[..rows * cols];
    to.par_chunks_mut((COLUMNS * rows).max(1)).enumerate().for_each(|(part, to)| {
        columns(data, cols, part * COLUMNS, rows, to);
    });
    let result = f(to);
    KEPT.set(kept);
    result
}

/// Side of a tile: one cache line.
const TILE: usize = 16;

/// Columns per task: some neighbouring cache lines of each row, so that each page is visited once.
const COLUMNS: usize = 4 * TILE;

/// Writes the columns of a row-major matrix, from `j0` on, as the rows of `to`.
fn columns(data: &[f32], cols: usize, j0: usize, rows: usize, to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if crate::dispatch::level() == crate::dispatch::Level::Avx512 {
        #[allow(unsafe_code)] // a call below a feature check
        // SAFETY: `level` returned this because the CPU has AVX-512F.
        return unsafe { avx512::columns(data, cols, j0, rows, to) };
    }
    tiles(data, cols, j0, rows, to, turn);
}

/// [`columns`], tile by tile; `turn(from, from_stride, to, to_stride)` transposes a whole tile.
#[inline(always)]
fn tiles(
    data: &[f32],
    cols: usize,
    j0: usize,
    rows: usize,
    to: &mut [f32],
    turn: impl Fn(&[f32], usize, &mut [f32], usize),
) {
    for i0 in (0..rows).step_by(TILE) {
        let height = TILE.min(rows - i0);
        for (j, to) in (j0..).step_by(TILE).zip(to.chunks_mut(TILE * rows)) {
            let from = &data[i0 * cols + j..];
            if height == TILE && to.len() == TILE * rows {
                turn(from, cols, &mut to[i0..], rows);
            } else {
                for (k, to) in to.chunks_exact_mut(rows).enumerate() {
                    let column = from[k..].iter().step_by(cols);
                    to[i0..][..height].iter_mut().zip(column).for_each(|(to, from)| *to = *from);
                }
            }
        }
    }
}

fn turn(from: &[f32], from_stride: usize, to: &mut [f32], to_stride: usize) {
    for (k, to) in to.chunks_mut(to_stride).enumerate().take(TILE) {
        let column: [f32; TILE] = std::array::from_fn(|i| from[i * from_stride + k]);
        to[..TILE].copy_from_slice(&column);
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::transposed;

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512, _mm512_castpd_ps, _mm512_castps_pd, _mm512_loadu_ps, _mm512_setzero_ps,
        _mm512_shuffle_f32x4, _mm512_storeu_ps, _mm512_unpackhi_pd, _mm512_unpackhi_ps,
        _mm512_unpacklo_pd, _mm512_unpacklo_ps,
    };

    use super::{TILE, tiles};

    type Registers = [__m512; TILE];

    #[target_feature(enable = "avx512f")]
    pub(super) fn columns(data: &[f32], cols: usize, j0: usize, rows: usize, to: &mut [f32]) {
        tiles(data, cols, j0, rows, to, |from, cols, to, rows| turn(from, cols, to, rows));
    }

    /// Compilers do not find the shuffles of [`transposed`], and a copy value by value takes twice as long. The loops are
    /// plain, because a closure for `array::map` is compiled without AVX-512 and not inlined.
    #[inline]
    #[target_feature(enable = "avx512f")]
    #[allow(unsafe_code)] // loads and stores of registers
    fn turn(from: &[f32], from_stride: usize, to: &mut [f32], to_stride: usize) {
        let reach = |stride| (TILE - 1) * stride + TILE;
        assert!(
            from.len() >= reach(from_stride) && to.len() >= reach(to_stride),
            "a tile past its matrix"
        );
        let mut rows = [_mm512_setzero_ps(); TILE];
        for (i, row) in rows.iter_mut().enumerate() {
            // SAFETY: the sixteen values from `i * from_stride` on are in `from`, by the assertion.
            *row = unsafe { _mm512_loadu_ps(from.as_ptr().add(i * from_stride)) };
        }
        for (k, column) in transposed(rows).into_iter().enumerate() {
            // SAFETY: the sixteen values from `k * to_stride` on are in `to`, by the assertion.
            unsafe { _mm512_storeu_ps(to.as_mut_ptr().add(k * to_stride), column) };
        }
    }

    /// The transpose of 16 registers of 16 values: first within quarters of registers, then of the quarters.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(crate) fn transposed(mut a: Registers) -> Registers {
        let mut b = a;
        for k in (0..TILE).step_by(2) {
            b[k] = _mm512_unpacklo_ps(a[k], a[k + 1]);
            b[k + 1] = _mm512_unpackhi_ps(a[k], a[k + 1]);
        }
        for k in (0..TILE).step_by(4) {
            for half in 0..2 {
                let (x, y) = (_mm512_castps_pd(b[k + half]), _mm512_castps_pd(b[k + 2 + half]));
                a[k + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
                a[k + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
            }
        }
        // a[4 q + c]: rows 4 q to 4 q + 3 of the columns c, c + 4, c + 8, c + 12, one in each quarter.
        for c in 0..4 {
            let even_low = _mm512_shuffle_f32x4::<0x88>(a[c], a[4 + c]);
            let odd_low = _mm512_shuffle_f32x4::<0xDD>(a[c], a[4 + c]);
            let even_high = _mm512_shuffle_f32x4::<0x88>(a[8 + c], a[12 + c]);
            let odd_high = _mm512_shuffle_f32x4::<0xDD>(a[8 + c], a[12 + c]);
            b[c] = _mm512_shuffle_f32x4::<0x88>(even_low, even_high);
            b[4 + c] = _mm512_shuffle_f32x4::<0x88>(odd_low, odd_high);
            b[8 + c] = _mm512_shuffle_f32x4::<0xDD>(even_low, even_high);
            b[12 + c] = _mm512_shuffle_f32x4::<0xDD>(odd_low, odd_high);
        }
        b
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::on_every_instruction_set;

    /// Whole tiles, parts of tiles to the right and below, several tasks; all values differ.
    #[test]
    fn rows_become_columns() {
        on_every_instruction_set(|| {
            for (rows, cols) in [(1, 1), (16, 16), (17, 70), (32, 64), (40, 131), (3, 200)] {
                let from: Vec<f32> = (0..rows * cols).map(|k| k as f32).collect();
                let want: Vec<f32> =
                    (0..cols).flat_map(|j| (0..rows).map(move |i| (i * cols + j) as f32)).collect();
                with_transposed(&from, rows, cols, |to| assert_eq!(to, want, "{rows} × {cols}"));
            }
        });
    }

    /// The memory of a larger matrix is used again for a smaller matrix.
    #[test]
    fn kept_memory_shows_no_former_values() {
        with_transposed(&[1.0; 600], 20, 30, |_| ());
        with_transposed(&[2.0, 3.0], 1, 2, |to| assert_eq!(to, [2.0, 3.0]));
    }

    #[test]
    fn nothing_is_nothing() {
        for (rows, cols) in [(0, 0), (0, 20), (20, 0)] {
            with_transposed(&[], rows, cols, |to| assert!(to.is_empty()));
        }
    }

    #[test]
    #[should_panic(expected = "a 2 × 3 matrix in 5 values")]
    fn a_short_matrix_is_refused() {
        with_transposed(&[0.0; 5], 2, 3, |_| ());
    }

    /// Registers are loaded and stored by pointer: a matrix that ends too early must not be read.
    #[test]
    #[should_panic]
    fn a_tile_past_its_matrix_is_refused() {
        columns(&[0.0; 15 * TILE], TILE, 0, TILE, &mut [0.0; TILE * TILE]);
    }
}

//! Softmax of rows. A count can limit a row to its first entries.
//!
//! ```text
//! y = e^(x − max x) / Σ e^(x − max x)          dx = y (g − Σ g y)
//! ```
//!
//! Sums and the maximum go over the entries that count. The other entries are never read: their weights and gradients
//! are zero. If no entry of a row counts, all its weights are zero.

#![allow(clippy::needless_range_loop)] // lanes and registers are counted

use rayon::prelude::*;

use crate::dispatch::multiversion;
use crate::lanes::{Lanes, LanesMut, step, sum};
use crate::math::{LANES, exp, mul_add};

/// Rows of a matrix, and the number of entries that count in each row, from its start.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    width: usize,
    counts: &'a [usize],
    /// Consecutive rows that share a count.
    shared: usize,
}

impl<'a> Rows<'a> {
    /// `values` in rows of `width`. Without counts all entries count; each count holds for the same number of consecutive rows.
    ///
    /// # Panics
    /// If the values are not whole rows, if the number of counts does not divide the number of rows, or if a count is
    /// more than the width.
    pub fn new(values: usize, width: usize, counts: Option<&'a [usize]>) -> Self {
        assert!(width > 0 && values.is_multiple_of(width), "{values} values in rows of {width}");
        let (rows, counts) = (values / width, counts.unwrap_or(&[]));
        if counts.is_empty() {
            return Self { width, counts, shared: 1 };
        }
        assert!(rows.is_multiple_of(counts.len()), "{} counts for {rows} rows", counts.len());
        for (k, &count) in counts.iter().enumerate() {
            assert!(count <= width, "count {k}: {count}, not 0 to {width}");
        }
        Self { width, counts, shared: rows / counts.len() }
    }

    #[inline(always)]
    fn count(&self, row: usize) -> usize {
        if self.counts.is_empty() { self.width } else { self.counts[row / self.shared] }
    }

    /// Rows per task, independent of the thread count.
    fn block(&self) -> usize {
        (8192 / self.width).max(1)
    }
}

/// Turns the values of `rows` into weights.
///
/// # Panics
/// If `x` does not consist of whole rows.
pub fn forward(x: &mut [f32], rows: Rows) {
    assert!(x.len().is_multiple_of(rows.width), "{} values in rows of {}", x.len(), rows.width);
    let block = rows.block();
    x.par_chunks_mut(block * rows.width)
        .enumerate()
        .for_each(|(k, x)| forward_rows(x, rows, k * block));
}

/// Turns the gradient of the weights `y` into the gradient of the values.
///
/// # Panics
/// If the sizes differ.
pub fn backward(y: &[f32], grad: &mut [f32], rows: Rows) {
    assert_eq!(y.len(), grad.len(), "values of the gradient");
    assert!(y.len().is_multiple_of(rows.width), "{} values in rows of {}", y.len(), rows.width);
    let block = rows.block();
    grad.par_chunks_mut(block * rows.width)
        .zip(y.par_chunks(block * rows.width))
        .enumerate()
        .for_each(|(k, (grad, y))| backward_rows(y, grad, rows, k * block));
}

multiversion! {
    fn forward_rows[FMA](values: &mut [f32], rows: Rows, first: usize) {
        for (k, row) in values.chunks_exact_mut(rows.width).enumerate() {
            let (x, rest) = row.split_at_mut(rows.count(first + k));
            rest.fill(0.0);
            let mut x = LanesMut::<LANES>::new(x, f32::NEG_INFINITY);
            let mut largest = [f32::NEG_INFINITY; LANES];
            for part in x.parts() {
                for x in part {
                    step();
                    let x = *x;
                    for k in 0..LANES {
                        largest[k] = if x[k] > largest[k] { x[k] } else { largest[k] };
                    }
                }
            }
            let largest = largest.into_iter().fold(f32::NEG_INFINITY, f32::max);
            let mut sums = [0.0; LANES];
            for part in x.parts() {
                for x in part {
                    step();
                    let mut e = *x;
                    for k in 0..LANES {
                        e[k] = exp::<FMA>(e[k] - largest);
                    }
                    for k in 0..LANES {
                        sums[k] += e[k];
                    }
                    *x = e;
                }
            }
            let scale = 1.0 / sum(sums);
            for part in x.parts() {
                for x in part {
                    step();
                    let mut y = *x;
                    for k in 0..LANES {
                        y[k] *= scale;
                    }
                    *x = y;
                }
            }
            x.finish();
        }
    }
}

multiversion! {
    fn backward_rows[FMA](y: &[f32], grad: &mut [f32], rows: Rows, first: usize) {
        let both = y.chunks_exact(rows.width).zip(grad.chunks_exact_mut(rows.width));
        for (k, (y, grad)) in both.enumerate() {
            let (g, rest) = grad.split_at_mut(rows.count(first + k));
            rest.fill(0.0);
            let y = Lanes::<LANES>::new(&y[..g.len()], 0.0);
            let mut g = LanesMut::<LANES>::new(g, 0.0);
            let mut along = [0.0; LANES];
            for (y, g) in y.parts().into_iter().zip(g.parts()) {
                for (y, g) in y.iter().zip(g) {
                    step();
                    let (y, g) = (*y, *g);
                    for k in 0..LANES {
                        along[k] = mul_add::<FMA>(y[k], g[k], along[k]);
                    }
                }
            }
            let along = sum(along);
            for (y, g) in y.parts().into_iter().zip(g.parts()) {
                for (y, g) in y.iter().zip(g) {
                    step();
                    let (y, mut d) = (*y, *g);
                    for k in 0..LANES {
                        d[k] = y[k] * (d[k] - along);
                    }
                    *g = d;
                }
            }
            g.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        counts, f32s, golden, on_every_instruction_set, on_every_thread_count, random, worst,
    };

    /// Weights and gradients in double precision, from `tests/reference/kernels.py`, with and without counts.
    #[test]
    fn golden_on_every_instruction_set() {
        let g = golden("kernels");
        let (x, c, counts) =
            (f32s(&g["softmax_x"]), f32s(&g["softmax_c"]), counts(&g["softmax_counts"]));
        let width = g["softmax_sizes"][1] as usize;
        on_every_instruction_set(|| {
            for (name, counts) in [("all", None), ("counts", Some(counts.as_slice()))] {
                let rows = Rows::new(x.len(), width, counts);
                let mut y = x.clone();
                forward(&mut y, rows);
                let error = worst(&y, &g[&format!("softmax_y_{name}")]);
                assert!(error < 1e-6, "{name}: y is off by {error:e}");
                let mut d = c.clone();
                backward(&y, &mut d, rows);
                let error = worst(&d, &g[&format!("softmax_dx_{name}")]);
                assert!(error < 1e-6, "{name}: the gradient is off by {error:e}");
            }
        });
    }

    /// An entry that does not count is not read: NaN there changes nothing, and the others are the softmax of the
    /// shorter row.
    #[test]
    fn a_masked_entry_is_not_read() {
        for (width, count) in [(40, 0), (40, 1), (40, 16), (40, 17), (40, 39), (40, 40)] {
            let (x, c) = (random(2 * width, 1), random(2 * width, 2));
            on_every_instruction_set(|| {
                let (mut y, mut d) = (x.clone(), c.clone());
                for row in [0, 1] {
                    y[row * width + count..(row + 1) * width].fill(f32::NAN);
                    d[row * width + count..(row + 1) * width].fill(f32::NAN);
                }
                let counts = [count];
                let rows = Rows::new(2 * width, width, Some(&counts));
                forward(&mut y, rows);
                backward(&y, &mut d, rows);
                for row in [0, 1] {
                    let (mut short, mut short_d) =
                        (x[row * width..][..count].to_vec(), c[row * width..][..count].to_vec());
                    if count > 0 {
                        forward(&mut short, Rows::new(count, count, None));
                        backward(&short, &mut short_d, Rows::new(count, count, None));
                    }
                    assert_eq!(y[row * width..][..count], short);
                    assert_eq!(d[row * width..][..count], short_d);
                    let rest = row * width + count..(row + 1) * width;
                    assert!(y[rest.clone()].iter().chain(&d[rest]).all(|&v| v == 0.0));
                }
            });
        }
    }

    #[test]
    fn large_values_and_nan() {
        on_every_instruction_set(|| {
            let mut y = [3e38, -3e38, 3e38, 1e30, 0.0, -1e30];
            forward(&mut y, Rows::new(6, 3, None));
            assert_eq!(y, [0.5, 0.0, 0.5, 1.0, 0.0, 0.0]);
            let mut y = [1.0, f32::NEG_INFINITY, 1.0, f32::NAN, 1.0, 2.0];
            forward(&mut y, Rows::new(6, 3, None));
            assert_eq!(y[..3], [0.5, 0.0, 0.5]);
            assert!(y[3..].iter().all(|v| v.is_nan()), "a NaN is not hidden");
        });
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let (n, width) = (400, 77);
        let counts: Vec<usize> = (0..n / 2).map(|k| k % (width + 1)).collect();
        on_every_thread_count(|| {
            let (mut y, mut d) = (random(n * width, 1), random(n * width, 2));
            let rows = Rows::new(n * width, width, Some(&counts));
            forward(&mut y, rows);
            backward(&y, &mut d, rows);
            [y, d].concat()
        });
    }

    #[test]
    #[should_panic(expected = "count 1: 4, not 0 to 3")]
    fn a_count_beyond_the_row_is_refused() {
        Rows::new(6, 3, Some(&[0, 4]));
    }

    #[test]
    #[should_panic(expected = "2 counts for 3 rows")]
    fn counts_that_do_not_divide_the_rows_are_refused() {
        Rows::new(9, 3, Some(&[0, 1]));
    }
}

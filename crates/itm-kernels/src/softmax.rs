//! Softmax of rows. A count limits a row to its first entries.
//!
//! ```text
//! y = e^(x − max x) / Σ e^(x − max x)
//! ```
//!
//! Sum and maximum go over the entries that count. The other entries are never read, and their weights are zero. If no entry
//! of a row counts, all its weights are zero.

#![allow(clippy::needless_range_loop)] // lanes and registers are counted

use rayon::prelude::*;

use crate::dispatch::multiversion;
use crate::lanes::{LanesMut, step, sum};
use crate::math::{LANES, exp};

/// Turns rows of `width` values into weights. Each count holds for the same number of consecutive rows.
///
/// # Panics
/// If `x` does not consist of whole rows, if the number of counts does not divide the number of rows, or if a count is more
/// than the width.
pub(crate) fn forward(x: &mut [f32], width: usize, counts: &[usize]) {
    assert!(width > 0 && x.len().is_multiple_of(width), "{} values in rows of {width}", x.len());
    let n = x.len() / width;
    let divides = !counts.is_empty() && n.is_multiple_of(counts.len());
    assert!(divides, "{} counts for {n} rows", counts.len());
    for (k, &count) in counts.iter().enumerate() {
        assert!(count <= width, "count {k}: {count}, not 0 to {width}");
    }
    let shared = n / counts.len(); // consecutive rows that share a count
    let block = (8192 / width).max(1); // rows per task, for any number of threads
    let blocks = x.par_chunks_mut(block * width).enumerate();
    blocks.for_each(|(k, x)| forward_rows(x, width, counts, shared, k * block));
}

multiversion! {
    fn forward_rows[FMA](
        values: &mut [f32],
        width: usize,
        counts: &[usize],
        shared: usize,
        first: usize,
    ) {
        for (k, row) in values.chunks_exact_mut(width).enumerate() {
            let (x, rest) = row.split_at_mut(counts[(first + k) / shared]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{
        counts, f32s, golden, on_every_instruction_set, on_every_thread_count, random, worst,
    };

    /// Weights in double precision, from `tests/reference/kernels.py`.
    #[test]
    fn golden_on_every_instruction_set() {
        let g = golden("kernels");
        let (x, counts) = (f32s(&g["softmax_x"]), counts(&g["softmax_counts"]));
        let width = g["softmax_sizes"][1] as usize;
        on_every_instruction_set(|| {
            for (name, counts) in [("all", &[width][..]), ("counts", &counts)] {
                let mut y = x.clone();
                forward(&mut y, width, counts);
                let error = worst(&y, &g[&format!("softmax_y_{name}")]);
                assert!(error < 1e-6, "{name}: y is off by {error:e}");
            }
        });
    }

    /// An entry that does not count is not read: NaN there changes nothing, and the others are the softmax of the
    /// shorter row.
    #[test]
    fn a_masked_entry_is_not_read() {
        for (width, count) in [(40, 0), (40, 1), (40, 16), (40, 17), (40, 39), (40, 40)] {
            let x = random(2 * width, 1);
            on_every_instruction_set(|| {
                let mut y = x.clone();
                for row in [0, 1] {
                    y[row * width + count..(row + 1) * width].fill(f32::NAN);
                }
                forward(&mut y, width, &[count]);
                for row in [0, 1] {
                    let mut short = x[row * width..][..count].to_vec();
                    if count > 0 {
                        forward(&mut short, count, &[count]);
                    }
                    assert_eq!(y[row * width..][..count], short);
                    assert!(y[row * width + count..(row + 1) * width].iter().all(|&v| v == 0.0));
                }
            });
        }
    }

    #[test]
    fn large_values_and_nan() {
        on_every_instruction_set(|| {
            let mut y = [3e38, -3e38, 3e38, 1e30, 0.0, -1e30];
            forward(&mut y, 3, &[3]);
            assert_eq!(y, [0.5, 0.0, 0.5, 1.0, 0.0, 0.0]);
            let mut y = [1.0, f32::NEG_INFINITY, 1.0, f32::NAN, 1.0, 2.0];
            forward(&mut y, 3, &[3]);
            assert_eq!(y[..3], [0.5, 0.0, 0.5]);
            assert!(y[3..].iter().all(|v| v.is_nan()), "a NaN is not hidden");
        });
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let (n, width) = (400, 77);
        let counts: Vec<usize> = (0..n / 2).map(|k| k % (width + 1)).collect();
        on_every_thread_count(|| {
            let mut y = random(n * width, 1);
            forward(&mut y, width, &counts);
            y
        });
    }

    #[test]
    #[should_panic(expected = "count 1: 4, not 0 to 3")]
    fn a_count_beyond_the_row_is_refused() {
        forward(&mut [0.0; 6], 3, &[0, 4]);
    }

    #[test]
    #[should_panic(expected = "2 counts for 3 rows")]
    fn counts_that_do_not_divide_the_rows_are_refused() {
        forward(&mut [0.0; 9], 3, &[0, 1]);
    }
}

//! Rows: unit length, and means over real steps.

use rayon::prelude::*;

use crate::blocks::{BLOCK, size, written, zeros};
use crate::dispatch::multiversion;

/// The most steps of a sequence, so that a count that is no length does not ask for all memory.
pub(crate) const STEPS: usize = 1 << 24;

/// A row of at most this length counts as zero.
pub(crate) const SHORTEST: f64 = 1e-12;

/// Rows of unit length: `x / max(‖x‖, 1e-12)`. Also the norms, `[n]`.
///
/// Norms are summed in double precision, so no row of finite numbers overflows.
///
/// # Panics
/// If `x` does not consist of whole rows of `width`.
pub fn normalize(x: &[f32], width: usize) -> (Vec<f32>, Vec<f32>) {
    assert!(width > 0 && x.len().is_multiple_of(width), "{} values in rows of {width}", x.len());
    let block = block(width);
    let mut norms = vec![0.0; x.len() / width];
    let blocks = norms.par_chunks_mut(block).zip(x.par_chunks(block * width));
    blocks.for_each(|(norms, x)| lengths(x, width, norms));
    let y = written(x.len(), block * width, |k, to| {
        scaled(&x[k * block * width..][..to.len()], &norms[k * block..], width, to);
    });
    (y, norms.into_iter().map(|n| n as f32).collect())
}

/// Gradient of [`normalize`]: `(g − y (y · g)) / ‖x‖`, and 0 for a row that counts as zero.
///
/// # Panics
/// If the shapes differ.
pub fn normalize_backward(y: &[f32], norms: &[f32], grad: &[f32]) -> Vec<f32> {
    assert_eq!(y.len(), grad.len(), "values of the gradient");
    let width = y.len() / norms.len().max(1);
    assert!(width * norms.len() == y.len(), "{} norms for {} values", norms.len(), y.len());
    let block = block(width);
    written(y.len(), block * width, |k, to| {
        let at = k * block * width;
        let (y, grad) = (&y[at..][..to.len()], &grad[at..][..to.len()]);
        across(y, &norms[k * block..], grad, width, to);
    })
}

/// Mean over the real steps: `[b, l, width]` to `[b, width]`. Padded steps are never read.
///
/// # Panics
/// If there is no sequence, a length is 0 or more than the steps, or `x` has another size.
pub fn masked_mean(x: &[f32], lengths: &[usize], width: usize) -> Vec<f32> {
    let steps = steps(x.len(), lengths, width);
    let mut mean = vec![0.0; lengths.len() * width];
    mean.par_chunks_exact_mut(width).zip(x.par_chunks_exact(steps * width)).zip(lengths).for_each(
        |((mean, sequence), &length)| {
            for step in sequence[..length * width].chunks_exact(width) {
                mean.iter_mut().zip(step).for_each(|(m, v)| *m += v);
            }
            mean.iter_mut().for_each(|m| *m /= length as f32);
        },
    );
    mean
}

/// Gradient of [`masked_mean`] for sequences padded to `steps`; zero on padded steps.
///
/// # Panics
/// If there is no sequence, a length is 0 or more than the steps, `grad` has another size, there are more than 2²⁴ steps, or
/// memory cannot hold the gradient.
pub fn masked_mean_backward(grad: &[f32], lengths: &[usize], steps: usize) -> Vec<f32> {
    let (n, rows) = (grad.len(), lengths.len().max(1));
    assert!(n.is_multiple_of(rows), "{n} gradients of {rows} sequences");
    let width = n / rows;
    assert!(steps <= STEPS, "{steps} steps, not at most {STEPS}");
    let mut d = zeros(size(lengths.len() * steps, width));
    assert_eq!(self::steps(d.len(), lengths, width), steps, "steps");
    d.par_chunks_exact_mut(steps * width).zip(grad.par_chunks_exact(width)).zip(lengths).for_each(
        |((sequence, grad), &length)| {
            for step in sequence[..length * width].chunks_exact_mut(width) {
                step.iter_mut().zip(grad).for_each(|(d, g)| *d = g / length as f32);
            }
        },
    );
    d
}

/// Checks the sizes of a padded batch, and returns its number of steps.
fn steps(values: usize, lengths: &[usize], width: usize) -> usize {
    assert!(!lengths.is_empty() && width > 0, "{} sequences of width {width}", lengths.len());
    let step = lengths.len().saturating_mul(width);
    let steps = values / step;
    assert_eq!(values, steps * step, "values of {} sequences", lengths.len());
    check_lengths(lengths, steps);
    steps
}

/// Refuses a length that is 0 or more than the steps.
pub(crate) fn check_lengths(lengths: &[usize], steps: usize) {
    for (row, &length) in lengths.iter().enumerate() {
        assert!((1..=steps).contains(&length), "sequence {row}: length {length}, not 1 to {steps}");
    }
}

/// Rows per block, independent of the thread count.
fn block(width: usize) -> usize {
    (4 * BLOCK / width.max(1)).max(1)
}

multiversion! {
    fn lengths[FMA](x: &[f32], width: usize, norms: &mut [f64]) {
        for (row, norm) in x.chunks_exact(width).zip(norms) {
            *norm = dot(row, row).sqrt();
        }
    }
}

multiversion! {
    /// Rows divided by their norms.
    fn scaled[FMA](x: &[f32], norms: &[f64], width: usize, y: &mut [f32]) {
        for ((x, y), norm) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).zip(norms) {
            let scale = 1.0 / norm.max(SHORTEST);
            y.iter_mut().zip(x).for_each(|(y, &x)| *y = (f64::from(x) * scale) as f32);
        }
    }
}

multiversion! {
    /// The part of the gradient that is orthogonal to its row, divided by the norm.
    fn across[FMA](y: &[f32], norms: &[f32], grad: &[f32], width: usize, d: &mut [f32]) {
        let rows = y.chunks_exact(width).zip(grad.chunks_exact(width));
        for ((d, (y, grad)), &norm) in d.chunks_exact_mut(width).zip(rows).zip(norms) {
            if f64::from(norm) <= SHORTEST {
                continue; // `d` stays zero; a NaN norm goes on
            }
            let (along, scale) = (dot(y, grad), 1.0 / f64::from(norm));
            for ((d, &y), &g) in d.iter_mut().zip(y).zip(grad) {
                *d = ((f64::from(g) - f64::from(y) * along) * scale) as f32;
            }
        }
    }
}

/// The dot product in double precision. Eight sums side by side give vector code with a fixed order.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0f64; 8];
    let (a8, b8) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a8.0.iter().zip(b8.0) {
        for k in 0..8 {
            sums[k] += f64::from(a[k]) * f64::from(b[k]);
        }
    }
    let tail = a8.1.iter().zip(b8.1).map(|(&a, &b)| f64::from(a) * f64::from(b));
    sums.iter().sum::<f64>() + tail.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{on_every_instruction_set, on_every_thread_count, random, worst};

    /// Three blocks of rows, by plain sums in double precision.
    #[test]
    fn many_rows_on_every_instruction_set() {
        const WIDTH: usize = 1000;
        let (x, grad) = (random(10 * WIDTH, 1), random(10 * WIDTH, 2));
        let mut want = [vec![], vec![]];
        for (x, g) in x.chunks(WIDTH).zip(grad.chunks(WIDTH)) {
            let sum = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
            };
            let norm = sum(x, x).sqrt();
            let along = sum(x, g) / norm.powi(2);
            want[0].extend(x.iter().map(|&x| f64::from(x) / norm));
            want[1].extend(
                x.iter().zip(g).map(|(&x, &g)| (f64::from(g) - f64::from(x) * along) / norm),
            );
        }
        on_every_instruction_set(|| {
            let (y, norms) = normalize(&x, WIDTH);
            assert!(worst(&y, &want[0]) < 1e-7);
            assert!(worst(&normalize_backward(&y, &norms, &grad), &want[1]) < 1e-7);
        });
        on_every_thread_count(|| normalize(&x, WIDTH).0);
    }

    /// 3-4-5, by hand: y = (0.6, 0.8), dx = (g − y (y·g)) / 5.
    #[test]
    fn golden_normalize() {
        let (y, norms) = normalize(&[3.0, 4.0, 0.0, 0.0], 2);
        assert_eq!((y, norms.clone()), (vec![0.6, 0.8, 0.0, 0.0], vec![5.0, 0.0]));
        let d = normalize_backward(&[0.6, 0.8, 0.0, 0.0], &norms, &[1.0, 0.0, 7.0, 7.0]);
        let want = [(1.0 - 0.36) / 5.0, -0.48 / 5.0, 0.0, 0.0];
        assert!(d.iter().zip(want).all(|(d, w)| (d - w).abs() < 1e-7), "{d:?}");
    }

    #[test]
    fn huge_and_tiny_rows_have_unit_length() {
        let (y, _) = normalize(&[3e30, 4e30, 3e-11, 4e-11, f32::NAN, 1.0], 2);
        assert!(
            y[..4].iter().zip([0.6, 0.8, 0.6, 0.8]).all(|(y, w)| (y - w).abs() < 1e-6),
            "{y:?}"
        );
        assert!(y[4].is_nan(), "a NaN is not hidden");
    }

    /// By hand; the padding does not matter.
    #[test]
    fn golden_masked_mean() {
        let x = [1., 2., 3., 4., f32::NAN, f32::NAN, 5., 6., f32::NAN, 0., f32::NAN, 0.];
        assert_eq!(masked_mean(&x, &[2, 1], 2), [2., 3., 5., 6.]);
        let d = masked_mean_backward(&[1., 2., 3., 4.], &[2, 1], 3);
        assert_eq!(d, [0.5, 1., 0.5, 1., 0., 0., 3., 4., 0., 0., 0., 0.]);
    }

    #[test]
    #[should_panic(expected = "sequence 1: length 0, not 1 to 2")]
    fn an_empty_sequence_is_refused() {
        masked_mean(&[0.0; 4], &[2, 0], 1);
    }
}

//! Layer normalisation of rows.
//!
//! ```text
//! y = γ x̂ + β,   x̂ = (x − μ) / √(σ² + ε),   σ² = mean of (x − μ)²
//! dx = (γ g − mean(γ g) − x̂ · mean(γ g x̂)) / √(σ² + ε),   dγ = Σ g x̂,   dβ = Σ g
//! ```
//!
//! The sums avoid cancellation: the rest is x minus a first mean, μ is the first mean plus the mean of the rest, and
//! σ² is the variance of the rest. So ε = 1e-12 is safe on rows whose mean is a million times their spread. If σ² is
//! beyond the range of `f32` (values from 1e19 to 1e38), the result of the row is β and its gradient is 0.

use rayon::prelude::*;

use crate::dispatch::multiversion;
use crate::lanes::{Lanes, LanesMut, step, sum};
use crate::math::{LANES, mul_add};

/// Statistics saved for a row: two parts of the mean, then 1 / √(σ² + ε).
pub(crate) const SAVED: usize = 3;

/// Values per step of the sums: two registers side by side hide the latency of an addition.
const WIDE: usize = 2 * LANES;

/// Scale, shift and ε of a norm.
#[derive(Debug, Clone, Copy)]
pub struct Norm<'a> {
    /// γ, `[d]`
    pub gamma: &'a [f32],
    /// β, `[d]`
    pub beta: &'a [f32],
    /// ε
    pub epsilon: f32,
}

/// The normalised rows of `x`, and their statistics, `[n, 3]`, for [`backward`].
///
/// # Panics
/// If `x` does not consist of whole rows of d values, γ and β differ in width, or ε is negative or not finite.
pub fn forward(x: &[f32], norm: Norm) -> (Vec<f32>, Vec<f32>) {
    let Norm { gamma, beta, epsilon } = norm;
    let fits = epsilon >= 0.0 && epsilon.is_finite();
    assert!(fits, "ε of a norm: {epsilon}, not a number from 0");
    let (width, block) = sizes(x.len(), gamma, beta);
    let (mut y, mut saved) = (vec![0.0; x.len()], vec![0.0; x.len() / width * SAVED]);
    y.par_chunks_mut(block * width)
        .zip(x.par_chunks(block * width))
        .zip(saved.par_chunks_mut(block * SAVED))
        .for_each(|((y, x), saved)| rows(x, norm, y, saved));
    (y, saved)
}

/// Turns the gradient of y into the gradient of x, and gives the gradients of γ and β.
///
/// # Panics
/// If the sizes differ.
pub fn backward(x: &[f32], gamma: &[f32], saved: &[f32], grad: &mut [f32]) -> (Vec<f32>, Vec<f32>) {
    let (width, block) = sizes(x.len(), gamma, gamma);
    assert_eq!(x.len(), grad.len(), "values of the gradient");
    assert_eq!(saved.len(), x.len() / width * SAVED, "statistics");
    // Per block, the sums over its rows: dγ, then dβ. Below, they are added in the order of the blocks.
    let mut partial = vec![0.0; (x.len() / width).div_ceil(block) * 2 * width];
    grad.par_chunks_mut(block * width)
        .zip(x.par_chunks(block * width))
        .zip(saved.par_chunks(block * SAVED))
        .zip(partial.par_chunks_exact_mut(2 * width))
        .for_each(|(((grad, x), saved), partial)| rows_backward(x, gamma, saved, grad, partial));
    let mut total = vec![0.0f64; 2 * width];
    for partial in partial.chunks_exact(2 * width) {
        total.iter_mut().zip(partial).for_each(|(t, &p)| *t += f64::from(p));
    }
    let mut d_gamma: Vec<f32> = total.into_iter().map(|t| t as f32).collect();
    let d_beta = d_gamma.split_off(width);
    (d_gamma, d_beta)
}

/// The width, and the rows per block: about 16 thousand values or more, in at most 64 blocks. The thread count
/// changes neither.
fn sizes(values: usize, gamma: &[f32], beta: &[f32]) -> (usize, usize) {
    let width = gamma.len();
    assert_eq!(width, beta.len(), "widths of γ and β");
    assert!(width > 0 && values.is_multiple_of(width), "{values} values in rows of {width}");
    (width, (16_384 / width).max((values / width).div_ceil(64)).max(1))
}

multiversion! {
    fn rows[FMA](x: &[f32], norm: Norm, y: &mut [f32], saved: &mut [f32]) {
        let Norm { gamma, beta, epsilon } = norm;
        let d = gamma.len();
        let (gamma, beta) = (Lanes::<LANES>::new(gamma, 0.0), Lanes::<LANES>::new(beta, 0.0));
        for ((x, y), saved) in
            x.chunks_exact(d).zip(y.chunks_exact_mut(d)).zip(saved.chunks_exact_mut(SAVED))
        {
            row::<FMA>(x, &gamma, &beta, epsilon, y, saved);
        }
    }
}

/// Three passes over a row, which stays in the first-level cache.
#[inline(always)]
fn row<const FMA: bool>(
    x: &[f32],
    gamma: &Lanes<LANES>,
    beta: &Lanes<LANES>,
    epsilon: f32,
    y: &mut [f32],
    saved: &mut [f32],
) {
    let each = 1.0 / x.len() as f32;
    let mut sums = [0.0; WIDE];
    for part in Lanes::<WIDE>::new(x, 0.0).parts() {
        for x in part {
            step();
            for k in 0..WIDE {
                sums[k] = mul_add::<FMA>(x[k], each, sums[k]); // scaled first: no overflow
            }
        }
    }
    let mean = sum(sums);
    let (mut rest, mut squares) = ([0.0; WIDE], [0.0; WIDE]);
    for part in Lanes::<WIDE>::new(x, mean).parts() {
        for x in part {
            step();
            for k in 0..WIDE {
                let c = x[k] - mean;
                rest[k] += c;
                squares[k] = mul_add::<FMA>(c, c, squares[k]);
            }
        }
    }
    let square = sum(squares) * each;
    let rest = if square < f32::INFINITY { sum(rest) * each } else { 0.0 }; // ∞ − ∞ would be NaN
    let variance = square - rest * rest;
    let variance = if variance < 0.0 { 0.0 } else { variance }; // rounding; NaN stays
    let scale = 1.0 / (variance + epsilon).sqrt();
    let (x, mut y) = (Lanes::<LANES>::new(x, 0.0), LanesMut::<LANES>::new(y, 0.0));
    let weights = gamma.parts().into_iter().zip(beta.parts());
    for ((x, y), (gamma, beta)) in x.parts().into_iter().zip(y.parts()).zip(weights) {
        for (((x, y), gamma), beta) in x.iter().zip(y).zip(gamma).zip(beta) {
            step();
            let (mut v, gamma, beta) = (*x, *gamma, *beta);
            for k in 0..LANES {
                let unit = (v[k] - mean - rest) * scale;
                v[k] = mul_add::<FMA>(unit, gamma[k], beta[k]);
            }
            *y = v;
        }
    }
    y.finish();
    saved.copy_from_slice(&[mean, rest, scale]);
}

multiversion! {
    fn rows_backward[FMA](
        x: &[f32],
        gamma: &[f32],
        saved: &[f32],
        grad: &mut [f32],
        partial: &mut [f32],
    ) {
        let d = gamma.len();
        let each = 1.0 / d as f32;
        let (d_gamma, d_beta) = partial.split_at_mut(d);
        let (mut d_gamma, mut d_beta) = (LanesMut::<LANES>::new(d_gamma, 0.0), LanesMut::<LANES>::new(d_beta, 0.0));
        let gamma = Lanes::<LANES>::new(gamma, 0.0);
        for ((x, grad), saved) in
            x.chunks_exact(d).zip(grad.chunks_exact_mut(d)).zip(saved.chunks_exact(SAVED))
        {
            let (mean, rest, scale) = (saved[0], saved[1], saved[2]);
            let x = Lanes::<LANES>::new(x, 0.0);
            let mut grad = LanesMut::<LANES>::new(grad, 0.0);
            let (mut sums, mut along) = ([0.0; LANES], [0.0; LANES]);
            let inputs = x.parts().into_iter().zip(grad.parts()).zip(gamma.parts());
            let totals = d_gamma.parts().into_iter().zip(d_beta.parts());
            for (((x, grad), gamma), (d_gamma, d_beta)) in inputs.zip(totals) {
                let inputs = x.iter().zip(grad).zip(gamma);
                for (((x, g), gamma), (d_gamma, d_beta)) in inputs.zip(d_gamma.iter_mut().zip(d_beta)) {
                    step();
                    let (x, g, gamma) = (*x, *g, *gamma);
                    let (mut to_gamma, mut to_beta) = (*d_gamma, *d_beta);
                    for k in 0..LANES {
                        let unit = (x[k] - mean - rest) * scale;
                        let scaled = g[k] * gamma[k];
                        sums[k] += scaled;
                        along[k] = mul_add::<FMA>(scaled, unit, along[k]);
                        to_gamma[k] = mul_add::<FMA>(g[k], unit, to_gamma[k]);
                        to_beta[k] += g[k];
                    }
                    *d_gamma = to_gamma;
                    *d_beta = to_beta;
                }
            }
            // The two subtracted terms, negated and multiplied by the scale.
            let (shift, tilt) = (-sum(sums) * each * scale, -sum(along) * each * scale);
            for ((x, grad), gamma) in x.parts().into_iter().zip(grad.parts()).zip(gamma.parts()) {
                for ((x, grad), gamma) in x.iter().zip(grad).zip(gamma) {
                    step();
                    let (x, mut g, gamma) = (*x, *grad, *gamma);
                    for k in 0..LANES {
                        let unit = (x[k] - mean - rest) * scale;
                        let others = mul_add::<FMA>(unit, tilt, shift);
                        g[k] = mul_add::<FMA>(g[k] * gamma[k], scale, others);
                    }
                    *grad = g;
                }
            }
            grad.finish();
        }
        d_gamma.finish();
        d_beta.finish();
    }
}

#[cfg(test)]
mod tests;

//! A gated recurrent unit over whole sequences of different lengths.
//!
//! ```text
//! r  = σ(x W_ir + b_ir + h W_hr + b_hr)
//! z  = σ(x W_iz + b_iz + h W_hz + b_hz)
//! n  = tanh(x W_in + b_in + r ⊙ (h W_hn + b_hn))       reset gate after the hidden product, as PyTorch
//! h′ = (1 − z) ⊙ n + z ⊙ h,   h₀ = 0
//! ```
//!
//! | symbol | here | shape |
//! |---|---|---|
//! | x | `x` | `[b, l, i]`; padded steps are never read |
//! | W_ir W_iz W_in | `w_ih` | `[i, 3h]` |
//! | W_hr W_hz W_hn | `w_hh` | `[h, 3h]` |
//! | b_ir b_iz b_in, b_hr b_hz b_hn | `b_ih`, `b_hh` | `[3h]` |
//! | h′ of every step | the result | `[b, l, h]`; padded steps repeat the last real one |
//!
//! The real steps are packed: longest sequence first, all sequences of one step side by side. So every product runs over
//! real steps only, and there are few: one for the inputs of all steps, one per step for the state, one for each weight's
//! gradient over all steps. The number of threads does not change a bit of the results.

mod gradients;
mod packing;

use rayon::prelude::*;

use crate::dispatch::multiversion;
use crate::math::{LANES, load, sigmoid, store, tanh};
use crate::product::{Into, Matrix, product};

pub use gradients::{Gradients, backward};
pub use packing::Packing;

/// Weights of one layer and direction; gates in the order r, z, n.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// `[i, 3h]`
    pub w_ih: &'a [f32],
    /// `[h, 3h]`
    pub w_hh: &'a [f32],
    /// `[3h]`
    pub b_ih: &'a [f32],
    /// `[3h]`
    pub b_hh: &'a [f32],
}

impl Weights<'_> {
    /// `(i, h)`.
    ///
    /// # Panics
    /// If a shape does not fit `b_ih`'s, or `x` is not `[b, l, i]`.
    fn sizes(&self, x: &[f32], packing: &Packing) -> (usize, usize) {
        let h = self.b_ih.len() / 3;
        assert!(h > 0 && self.b_ih.len() == 3 * h, "{} input biases are not 3h", self.b_ih.len());
        assert_eq!(self.b_hh.len(), 3 * h, "hidden biases beside {} input biases", 3 * h);
        let i = self.w_ih.len() / (3 * h);
        assert_eq!(self.w_ih.len(), i * 3 * h, "w_ih is not [i, {}]", 3 * h);
        assert_eq!(self.w_hh.len(), h * 3 * h, "w_hh is not [{h}, {}]", 3 * h);
        let (b, l) = (packing.order.len(), packing.steps);
        assert!(i > 0 && x.len() == b * l * i, "x has {} values, not {b} × {l} × {i}", x.len());
        (i, h)
    }
}

/// The states of every step, `[b, l, h]`.
///
/// # Panics
/// If a shape does not fit the others.
pub fn forward(x: &[f32], weights: &Weights, packing: &Packing) -> Vec<f32> {
    let h = weights.b_ih.len() / 3;
    run(x, weights, packing, &mut vec![0.0; packing.step(0).len() * 4 * h])
}

/// [`forward`], and what [`backward`] needs: r, z, n and h W_hn + b_hn of every packed row, `[rows, 4h]`.
///
/// # Panics
/// If a shape does not fit the others.
pub fn forward_saving(x: &[f32], weights: &Weights, packing: &Packing) -> (Vec<f32>, Vec<f32>) {
    let h = weights.b_ih.len() / 3;
    let mut gates = vec![0.0; packing.rows() * 4 * h];
    let output = run(x, weights, packing, &mut gates);
    (output, gates)
}

/// `gates` has room for all packed rows, or is scratch for the widest step.
fn run(x: &[f32], weights: &Weights, packing: &Packing, gates: &mut [f32]) -> Vec<f32> {
    let (i, h) = weights.sizes(x, packing);
    let (rows, first) = (packing.rows(), packing.step(0).len());
    let keep = gates.len() == rows * 4 * h;

    let packed = packing.pack(x, i);
    let mut from_x = vec![0.0; rows * 3 * h];
    let w_ih = Matrix::new(weights.w_ih, i, 3 * h);
    product(&mut from_x, Into::Replace, Matrix::new(&packed, rows, i), w_ih);

    // h₀ stands in front of the states, so that every step reads the rows before its own.
    let mut states = vec![0.0; (first + rows) * h];
    let mut from_h = vec![0.0; first * 3 * h]; // h₀ W_hh = 0
    for t in 0..packing.steps {
        let range = packing.step(t);
        if range.is_empty() {
            break;
        }
        let (before, after) = states.split_at_mut((first + range.start) * h);
        let previous_start = if t == 0 { 0 } else { first + packing.step(t - 1).start };
        let previous = &before[previous_start * h..][..range.len() * h];
        let from_h = &mut from_h[..range.len() * 3 * h];
        if t > 0 {
            let w_hh = Matrix::new(weights.w_hh, h, 3 * h);
            product(from_h, Into::Replace, Matrix::new(previous, range.len(), h), w_hh);
        }
        let gates_start = if keep { range.start } else { 0 };
        let block = rows_per_task(h);
        after[..range.len() * h]
            .par_chunks_mut(block * h)
            .zip(gates[gates_start * 4 * h..][..range.len() * 4 * h].par_chunks_mut(block * 4 * h))
            .zip(from_x[range.start * 3 * h..range.end * 3 * h].par_chunks(block * 3 * h))
            .zip(from_h.par_chunks(block * 3 * h))
            .zip(previous.par_chunks(block * h))
            .for_each(|((((next, gates), from_x), from_h), previous)| {
                step_forward(h, from_x, from_h, weights.b_ih, weights.b_hh, previous, next, gates);
            });
    }
    packing.unpack(&states[first * h..], h, |padding, last| {
        padding.chunks_exact_mut(last.len()).for_each(|step| step.copy_from_slice(last));
    })
}

/// Rows of one task: enough to be worth handing over, and no function of the thread count.
fn rows_per_task(h: usize) -> usize {
    (4096 / h).max(1)
}

multiversion! {
    /// The gates and the next state of some rows.
    fn step_forward[FMA](
        h: usize,
        from_x: &[f32],
        from_h: &[f32],
        b_ih: &[f32],
        b_hh: &[f32],
        previous: &[f32],
        next: &mut [f32],
        gates: &mut [f32],
    ) {
        for (row, next) in next.chunks_exact_mut(h).enumerate() {
            let from_x = &from_x[row * 3 * h..][..3 * h];
            let from_h = &from_h[row * 3 * h..][..3 * h];
            let previous = &previous[row * h..][..h];
            let (gate_r, rest) = gates[row * 4 * h..][..4 * h].split_at_mut(h);
            let (gate_z, rest) = rest.split_at_mut(h);
            let (gate_n, gate_hn) = rest.split_at_mut(h);
            // Whole registers in local arrays: the compiler need not prove that twelve slices lie apart.
            for j in (0..h).step_by(LANES) {
                let part = |m: &[f32], gate: usize| load(&m[gate * h..][..h], j);
                let (xr, xz, xn) = (part(from_x, 0), part(from_x, 1), part(from_x, 2));
                let (hr, hz, hn) = (part(from_h, 0), part(from_h, 1), part(from_h, 2));
                let (br, bz, bn) = (part(b_ih, 0), part(b_ih, 1), part(b_ih, 2));
                let (cr, cz, cn) = (part(b_hh, 0), part(b_hh, 1), part(b_hh, 2));
                let old = load(previous, j);
                let [mut r, mut z, mut n, mut hidden, mut new] = [[0.0f32; LANES]; 5];
                for k in 0..LANES {
                    r[k] = sigmoid::<FMA>(xr[k] + br[k] + hr[k] + cr[k]);
                }
                for k in 0..LANES {
                    z[k] = sigmoid::<FMA>(xz[k] + bz[k] + hz[k] + cz[k]);
                }
                for k in 0..LANES {
                    hidden[k] = hn[k] + cn[k];
                    n[k] = tanh::<FMA>(xn[k] + bn[k] + r[k] * hidden[k]);
                    new[k] = (1.0 - z[k]) * n[k] + z[k] * old[k];
                }
                store(gate_r, j, r);
                store(gate_z, j, z);
                store(gate_n, j, n);
                store(gate_hn, j, hidden);
                store(next, j, new);
            }
        }
    }
}

#[cfg(test)]
mod tests;

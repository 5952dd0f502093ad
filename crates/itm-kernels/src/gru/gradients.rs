//! The pass backward through time.

use rayon::prelude::*;

use super::packing::Packing;
use super::{Weights, rows_per_task};
use crate::dispatch::multiversion;
use crate::math::{LANES, load, store};
use crate::product::{Into, Matrix, product, transposed};

/// Gradients of a loss, shaped as what they belong to.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients {
    /// `[b, l, i]`, zero on padded steps.
    pub x: Vec<f32>,
    /// `[i, 3h]`
    pub w_ih: Vec<f32>,
    /// `[h, 3h]`
    pub w_hh: Vec<f32>,
    /// `[3h]`
    pub b_ih: Vec<f32>,
    /// `[3h]`
    pub b_hh: Vec<f32>,
}

/// Gradients for the gradient `grad` of the output, from what [`forward_saving`](super::forward_saving) returned.
///
/// A gradient that arrives at a padded step belongs to the last real one, whose state stands there.
///
/// # Panics
/// If a shape does not fit the others.
pub fn backward(
    x: &[f32],
    weights: &Weights,
    packing: &Packing,
    output: &[f32],
    gates: &[f32],
    grad: &[f32],
) -> Gradients {
    let (i, h) = weights.sizes(x, packing);
    let (rows, first) = (packing.rows(), packing.step(0).len());
    assert_eq!(output.len(), packing.order.len() * packing.steps * h, "values of the output");
    assert_eq!(grad.len(), output.len(), "values of the output's gradient");
    assert_eq!(gates.len(), rows * 4 * h, "values of the gates of {rows} rows");

    let states = packing.pack(output, h);
    let w_hh_t = transposed(weights.w_hh, h, 3 * h);
    let zeros = vec![0.0; first * h];
    let mut d_input = vec![0.0; rows * 3 * h]; // of x W_ih + b_ih
    let mut d_hidden = vec![0.0; rows * 3 * h]; // of h W_hh + b_hh
    let mut d_state = vec![0.0; first * h];
    for t in (0..packing.steps).rev() {
        let range = packing.step(t);
        add_output_gradient(&mut d_state[..range.len() * h], grad, packing, t, h);
        let previous = if t == 0 { &zeros } else { &states[packing.step(t - 1).start * h..] };
        let block = rows_per_task(h);
        d_state[..range.len() * h]
            .par_chunks_mut(block * h)
            .zip(d_input[range.start * 3 * h..range.end * 3 * h].par_chunks_mut(block * 3 * h))
            .zip(d_hidden[range.start * 3 * h..range.end * 3 * h].par_chunks_mut(block * 3 * h))
            .zip(gates[range.start * 4 * h..range.end * 4 * h].par_chunks(block * 4 * h))
            .zip(previous[..range.len() * h].par_chunks(block * h))
            .for_each(|((((d_state, d_input), d_hidden), gates), previous)| {
                step_backward(h, gates, previous, d_state, d_input, d_hidden);
            });
        if t > 0 && !range.is_empty() {
            let d_hidden = &d_hidden[range.start * 3 * h..range.end * 3 * h];
            let d_hidden = Matrix::new(d_hidden, range.len(), 3 * h);
            let d_state = &mut d_state[..range.len() * h];
            product(d_state, Into::Add, d_hidden, Matrix::new(&w_hh_t, 3 * h, h));
        }
    }
    let packed = packing.pack(x, i);
    weight_gradients(&packed, weights, packing, &states, &d_input, &d_hidden)
}

/// Adds the gradient of step `t`'s output to its packed rows, with that of the padding for a sequence that ends there.
fn add_output_gradient(d_state: &mut [f32], grad: &[f32], packing: &Packing, t: usize, h: usize) {
    d_state.par_chunks_exact_mut(h).zip(&packing.order).for_each(|(d_state, &row)| {
        let last = if packing.lengths[row] == t + 1 { packing.steps } else { t + 1 };
        for from in
            grad[(row * packing.steps + t) * h..(row * packing.steps + last) * h].chunks_exact(h)
        {
            d_state.iter_mut().zip(from).for_each(|(d, g)| *d += g);
        }
    });
}

/// The products over all steps at once.
fn weight_gradients(
    packed: &[f32],
    weights: &Weights,
    packing: &Packing,
    states: &[f32],
    d_input: &[f32],
    d_hidden: &[f32],
) -> Gradients {
    let h = weights.b_ih.len() / 3;
    let (i, rows, first) = (weights.w_ih.len() / (3 * h), packing.rows(), packing.step(0).len());
    let d_input_m = Matrix::new(d_input, rows, 3 * h);

    let mut w_ih = vec![0.0; i * 3 * h];
    product(&mut w_ih, Into::Replace, Matrix::new(packed, rows, i).t(), d_input_m);

    let mut x = vec![0.0; rows * i];
    let w_ih_t = transposed(weights.w_ih, i, 3 * h);
    product(&mut x, Into::Replace, d_input_m, Matrix::new(&w_ih_t, 3 * h, i));

    // The state before every step but the first, whose h₀ is 0.
    let mut previous = Vec::with_capacity((rows - first) * h);
    for t in 1..packing.steps {
        let start = packing.step(t - 1).start;
        previous.extend_from_slice(&states[start * h..(start + packing.step(t).len()) * h]);
    }
    let mut w_hh = vec![0.0; h * 3 * h];
    if rows > first {
        let later = Matrix::new(&d_hidden[first * 3 * h..], rows - first, 3 * h);
        product(&mut w_hh, Into::Replace, Matrix::new(&previous, rows - first, h).t(), later);
    }
    Gradients {
        x: packing.unpack(&x, i, |_, _| {}),
        w_ih,
        w_hh,
        b_ih: column_sums(d_input, 3 * h),
        b_hh: column_sums(d_hidden, 3 * h),
    }
}

/// Sum of the rows: blocks of rows first, then the blocks in their order, whatever the threads.
fn column_sums(data: &[f32], cols: usize) -> Vec<f32> {
    let add = |mut sum: Vec<f32>, row: &[f32]| {
        sum.iter_mut().zip(row).for_each(|(s, v)| *s += v);
        sum
    };
    let blocks: Vec<Vec<f32>> = data
        .par_chunks(128 * cols)
        .map(|block| block.chunks_exact(cols).fold(vec![0.0; cols], add))
        .collect();
    blocks.iter().fold(vec![0.0; cols], |sum, block| add(sum, block))
}

multiversion! {
    /// From dh′ in `d_state`: the gradients of both pre-activations, and in `d_state` the direct path z ⊙ dh′.
    fn step_backward[FMA](
        h: usize,
        gates: &[f32],
        previous: &[f32],
        d_state: &mut [f32],
        d_input: &mut [f32],
        d_hidden: &mut [f32],
    ) {
        let _ = FMA;
        for (row, d_state) in d_state.chunks_exact_mut(h).enumerate() {
            let gates = &gates[row * 4 * h..][..4 * h];
            let previous = &previous[row * h..][..h];
            let d_input = &mut d_input[row * 3 * h..][..3 * h];
            let d_hidden = &mut d_hidden[row * 3 * h..][..3 * h];
            for j in (0..h).step_by(LANES) {
                let part = |gate: usize| load(&gates[gate * h..][..h], j);
                let (r, z, n, hidden) = (part(0), part(1), part(2), part(3));
                let (old, d) = (load(previous, j), load(d_state, j));
                let [mut dr, mut dz, mut dn, mut dnr, mut direct] = [[0.0f32; LANES]; 5];
                for k in 0..LANES {
                    dz[k] = d[k] * (old[k] - n[k]) * z[k] * (1.0 - z[k]);
                    dn[k] = d[k] * (1.0 - z[k]) * (1.0 - n[k] * n[k]);
                    dr[k] = dn[k] * hidden[k] * r[k] * (1.0 - r[k]);
                    dnr[k] = dn[k] * r[k];
                    direct[k] = d[k] * z[k];
                }
                store(d_state, j, direct);
                for (to, last) in [(&mut *d_input, dn), (&mut *d_hidden, dnr)] {
                    store(&mut to[..h], j, dr);
                    store(&mut to[h..2 * h], j, dz);
                    store(&mut to[2 * h..], j, last);
                }
            }
        }
    }
}

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

use rayon::prelude::*;

use crate::dispatch::multiversion;
use crate::math::{LANES, load, sigmoid, store, tanh};
use crate::product::{Into, Matrix, product, transposed};

/// Where each real step of a padded batch lies when packed.
#[derive(Debug, Clone)]
pub struct Packing {
    steps: usize,
    lengths: Vec<usize>,
    /// Sequences, longest first; the earlier one first among equals.
    order: Vec<usize>,
    /// The inverse of `order`.
    rank: Vec<usize>,
    /// First packed row of each step, and their number at the end: step t has `offset[t + 1] − offset[t]` sequences.
    offset: Vec<usize>,
}

impl Packing {
    /// The packing of sequences with these lengths, padded to `steps`.
    ///
    /// # Panics
    /// If there is no sequence, or a length is 0 or more than `steps`.
    pub fn new(lengths: &[usize], steps: usize) -> Self {
        assert!(!lengths.is_empty(), "a batch needs at least one sequence");
        for (row, &length) in lengths.iter().enumerate() {
            assert!(
                (1..=steps).contains(&length),
                "sequence {row}: length {length}, not 1 to {steps}"
            );
        }
        let mut order: Vec<_> = (0..lengths.len()).collect();
        order.sort_by_key(|&row| std::cmp::Reverse(lengths[row]));
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(j, &row)| rank[row] = j);
        let mut offset = vec![0];
        for t in 0..steps {
            offset.push(offset[t] + order.partition_point(|&row| lengths[row] > t));
        }
        Self { steps, lengths: lengths.to_vec(), order, rank, offset }
    }

    /// Number of real steps.
    pub fn rows(&self) -> usize {
        self.offset[self.steps]
    }

    /// Packed rows of one step.
    fn step(&self, t: usize) -> std::ops::Range<usize> {
        self.offset[t]..self.offset[t + 1]
    }

    /// Real steps of a padded `[b, l, width]`, packed.
    fn pack(&self, padded: &[f32], width: usize) -> Vec<f32> {
        let mut packed = vec![0.0; self.rows() * width];
        let mut rest = packed.as_mut_slice();
        let mut by_step = Vec::with_capacity(self.steps);
        for t in 0..self.steps {
            let (step, later) = rest.split_at_mut(self.step(t).len() * width);
            by_step.push(step);
            rest = later;
        }
        by_step.into_par_iter().enumerate().for_each(|(t, step)| {
            for (row, to) in self.order.iter().zip(step.chunks_exact_mut(width)) {
                to.copy_from_slice(&padded[(row * self.steps + t) * width..][..width]);
            }
        });
        packed
    }

    /// Packed rows back in a padded `[b, l, width]`; `fill` is called with what follows the real steps and the last one.
    fn unpack(&self, packed: &[f32], width: usize, fill: fn(&mut [f32], &[f32])) -> Vec<f32> {
        let mut padded = vec![0.0; self.order.len() * self.steps * width];
        padded.par_chunks_exact_mut(self.steps * width).enumerate().for_each(|(row, sequence)| {
            let (real, padding) = sequence.split_at_mut(self.lengths[row] * width);
            for (t, to) in real.chunks_exact_mut(width).enumerate() {
                to.copy_from_slice(&packed[(self.offset[t] + self.rank[row]) * width..][..width]);
            }
            fill(padding, &real[real.len() - width..]);
        });
        padded
    }
}

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

/// Gradients for the gradient `grad` of the output, from what [`forward_saving`] returned.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::unit;

    type Golden = std::collections::BTreeMap<String, Vec<f64>>;

    fn golden() -> Golden {
        serde_json::from_str(include_str!("../tests/golden/gru.json")).unwrap()
    }

    fn f32s(values: &[f64]) -> Vec<f32> {
        values.iter().map(|&v| v as f32).collect()
    }

    fn worst(got: &[f32], want: &[f64]) -> f64 {
        assert_eq!(got.len(), want.len());
        got.iter().zip(want).map(|(&g, &w)| (f64::from(g) - w).abs()).fold(0.0, f64::max)
    }

    fn random(n: usize, seed: u64) -> Vec<f32> {
        (0..n as u64).map(|k| unit(seed, k) - 0.5).collect()
    }

    /// Everything a forward and backward pass gives, on random input.
    fn both(lengths: &[usize], l: usize, i: usize, h: usize) -> (Vec<f32>, Gradients) {
        let (x, w_ih) = (random(lengths.len() * l * i, 1), random(i * 3 * h, 2));
        let (w_hh, b_ih, b_hh) = (random(h * 3 * h, 3), random(3 * h, 4), random(3 * h, 5));
        let weights = Weights { w_ih: &w_ih, w_hh: &w_hh, b_ih: &b_ih, b_hh: &b_hh };
        let packing = Packing::new(lengths, l);
        let (states, gates) = forward_saving(&x, &weights, &packing);
        let grad = random(states.len(), 6);
        let d = backward(&x, &weights, &packing, &states, &gates, &grad);
        (states, d)
    }

    /// States and all five gradients, from `tests/reference/gru.py`, in double precision with complex steps.
    fn check_golden() {
        let g = golden();
        let inputs = ["x", "w_ih", "w_hh", "b_ih", "b_hh", "c"].map(|k| f32s(&g[k]));
        let [x, w_ih, w_hh, b_ih, b_hh, c] = &inputs;
        let lengths: Vec<usize> = g["lengths"].iter().map(|&n| n as usize).collect();
        let packing = Packing::new(&lengths, g["sizes"][1] as usize);
        let weights = Weights { w_ih, w_hh, b_ih, b_hh };
        let (states, gates) = forward_saving(x, &weights, &packing);
        assert!(worst(&states, &g["states"]) < 1e-6);
        assert_eq!(states, forward(x, &weights, &packing), "with and without saved gates");
        let d = backward(x, &weights, &packing, &states, &gates, c);
        for (name, got) in
            [("x", d.x), ("w_ih", d.w_ih), ("w_hh", d.w_hh), ("b_ih", d.b_ih), ("b_hh", d.b_hh)]
        {
            let error = worst(&got, &g[&format!("d_{name}")]);
            assert!(error < 5e-6, "gradient of {name} is off by {error:e}");
        }
    }

    #[test]
    fn golden_states_and_gradients() {
        check_golden();
    }

    /// Each copy of the kernels, on a CPU that has it; one compiled for features the CPU lacks would end the process here.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn golden_on_every_instruction_set() {
        use crate::dispatch::{FORCED, Level};
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        for level in [Level::Avx512, Level::Avx2, Level::Baseline] {
            pool.install(|| {
                FORCED.set(Some(level));
                check_golden();
                FORCED.set(None);
            });
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let lengths: Vec<usize> = (0..150).map(|b| 1 + b % 9).collect();
        let results: Vec<_> = [1, 2, 3]
            .map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap())
            .iter()
            .map(|pool| pool.install(|| both(&lengths, 9, 70, 100)))
            .collect();
        assert!(results[0] == results[1] && results[0] == results[2]);
    }

    /// A sequence gives the same alone and beside longer ones; what stands in the padding is not even read.
    #[test]
    fn padding_changes_nothing() {
        let (i, h, l) = (5, 33, 7);
        let (w_ih, w_hh) = (random(i * 3 * h, 1), random(h * 3 * h, 2));
        let (b_ih, b_hh) = (random(3 * h, 3), random(3 * h, 4));
        let weights = Weights { w_ih: &w_ih, w_hh: &w_hh, b_ih: &b_ih, b_hh: &b_hh };
        let mut x = random(2 * l * i, 5);
        x[3 * i..l * i].fill(f32::NAN); // sequence 0 has three steps
        let packing = Packing::new(&[3, 7], l);
        let (states, gates) = forward_saving(&x, &weights, &packing);

        let alone = forward(&x[..3 * i], &weights, &Packing::new(&[3], 3));
        let error = alone.iter().zip(&states).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(error < 1e-6, "{error:e}");
        for t in 3..l {
            assert_eq!(states[t * h..(t + 1) * h], states[2 * h..3 * h], "step {t} repeats step 2");
        }

        let d = backward(&x, &weights, &packing, &states, &gates, &random(2 * l * h, 6));
        assert!(d.x[3 * i..l * i].iter().all(|&g| g == 0.0));
        let weights = [d.w_ih, d.w_hh, d.b_ih, d.b_hh].concat();
        assert!(weights.iter().chain(&d.x).all(|g| g.is_finite()));
    }

    /// Every width up to two registers and a bit: no step, row or column falls off an edge.
    #[test]
    fn the_order_of_a_batch_does_not_matter() {
        for h in 1..35 {
            let (states, _) = both(&[2, 3], 3, 2, h);
            let packing = Packing::new(&[3, 2], 3);
            let (w_ih, w_hh) = (random(6 * h, 2), random(h * 3 * h, 3));
            let (b_ih, b_hh) = (random(3 * h, 4), random(3 * h, 5));
            let weights = Weights { w_ih: &w_ih, w_hh: &w_hh, b_ih: &b_ih, b_hh: &b_hh };
            let x = random(12, 1);
            let swapped = forward(&[&x[6..], &x[..6]].concat(), &weights, &packing);
            assert_eq!([&swapped[3 * h..], &swapped[..3 * h]].concat(), states);
        }
    }

    #[test]
    #[should_panic(expected = "sequence 1: length 0, not 1 to 3")]
    fn an_empty_sequence_is_refused() {
        Packing::new(&[3, 0], 3);
    }

    #[test]
    #[should_panic(expected = "sequence 0: length 4, not 1 to 3")]
    fn a_sequence_longer_than_the_padding_is_refused() {
        Packing::new(&[4], 3);
    }

    #[test]
    #[should_panic(expected = "x has 11 values, not 2 × 3 × 2")]
    fn a_short_input_is_refused() {
        let weights =
            Weights { w_ih: &[0.0; 12], w_hh: &[0.0; 12], b_ih: &[0.0; 6], b_hh: &[0.0; 6] };
        forward(&[0.0; 11], &weights, &Packing::new(&[3, 1], 3));
    }
}

//! The backward pass through time.

use rayon::prelude::*;

use super::packing::{Columns, Direction, Packing};
use super::{FromPanels, GruWeights, blocks, directions};
use crate::dispatch::multiversion;
use crate::linear::column_sums;
use crate::math::{LANES, load, store};
use crate::matrix::Matrix;
use crate::panels::{self, Panels, ROWS};
use crate::product::{Threads, product_new};

/// Gradients of a unit's weights, each in the shape of its weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients {
    /// `[i, 3h]`
    pub w_ih: Vec<f32>,
    /// `[h, 3h]`
    pub w_hh: Vec<f32>,
    /// `[3h]`
    pub b_ih: Vec<f32>,
    /// `[3h]`
    pub b_hh: Vec<f32>,
}

/// Gradients of the input, `[b, l, i]`, and of each unit's weights, from the gradient `grad` of the output and the results of
/// [`forward_saving`](super::forward_saving). The input's gradient is zero on padded steps.
///
/// A padded step repeats the state of the last real step, so its gradient is added there. In reverse a padded step
/// holds h₀, so its gradient is dropped.
///
/// # Panics
/// As [`forward`](super::forward), or if the output, the gates or the gradient have another size.
pub fn backward(
    x: &[f32],
    units: &[GruWeights],
    packing: &Packing,
    output: &[f32],
    gates: &[&[f32]],
    grad: &[f32],
) -> (Vec<f32>, Vec<Gradients>) {
    assert_eq!(gates.len(), units.len(), "units with gates");
    let each = directions(units, packing).zip(gates);
    let (i, _) = units[0].sizes(x, packing);
    let mut d_x = vec![0.0; packing.padded(i)];
    let all = each.map(|((weights, packing, columns), gates)| {
        direction(x, weights, &packing, output, gates, grad, columns, &mut d_x)
    });
    let all = all.collect();
    (d_x, all)
}

/// Gradients of one unit's weights; the input's gradient is added to `d_x`.
#[allow(clippy::too_many_arguments)] // the inputs and the results of the forward pass
fn direction(
    x: &[f32],
    weights: &GruWeights,
    packing: &Packing,
    output: &[f32],
    gates: &[f32],
    grad: &[f32],
    columns: Columns,
    d_x: &mut [f32],
) -> Gradients {
    let (i, h) = weights.sizes(x, packing);
    let (rows, first) = (packing.rows(), packing.step(0).len());
    assert_eq!(output.len(), packing.padded(columns.stride), "values of the output");
    assert_eq!(grad.len(), output.len(), "values of the output's gradient");
    assert_eq!(gates.len(), rows * 4 * h, "values of the gates of {rows} rows");

    let states = packing.pack(output, columns);
    let w_hh_t = (packing.steps > 1).then(|| Panels::of_rows(weights.w_hh, 3 * h));
    let zeros = vec![0.0; first * h];
    let mut d_input = vec![0.0; rows * 3 * h]; // of x W_ih + b_ih
    let mut d_hidden = vec![0.0; rows * 3 * h]; // of h W_hh + b_hh
    let mut d_state = vec![0.0; first * h]; // without the part that comes through W_hh
    let mut through = vec![0.0; h.div_ceil(panels::WIDTH) * blocks(first) * ROWS * panels::WIDTH];
    let mut left = vec![0.0; blocks(first) * ROWS * 3 * h]; // d_hidden as a left operand of panels
    let mut later = 0; // rows of the step after step t
    for t in (0..packing.steps).rev() {
        let range = packing.step(t);
        let n = range.len();
        let previous = if t == 0 { &zeros } else { &states[packing.step(t - 1).start * h..] };
        let came = FromPanels { values: &through, rows: blocks(later) * ROWS, first: 0 };
        d_state[..n * h]
            .par_chunks_mut(ROWS * h)
            .zip(d_input[range.start * 3 * h..range.end * 3 * h].par_chunks_mut(ROWS * 3 * h))
            .zip(d_hidden[range.start * 3 * h..range.end * 3 * h].par_chunks_mut(ROWS * 3 * h))
            .zip(gates[range.start * 4 * h..range.end * 4 * h].par_chunks(ROWS * 4 * h))
            .zip(previous[..n * h].par_chunks(ROWS * h))
            .zip(left.par_chunks_mut(ROWS * 3 * h))
            .enumerate()
            .for_each(|(k, (((((d_state, d_input), d_hidden), gates), previous), left))| {
                let order = &packing.order[k * ROWS..];
                for (d, &row) in d_state.chunks_exact_mut(h).zip(order) {
                    add_output_gradient(d, grad, packing, row, t, columns);
                }
                let came = FromPanels { first: k * ROWS, ..came };
                let running = later.saturating_sub(k * ROWS);
                step_backward(h, gates, previous, came, running, d_state, d_input, d_hidden);
                panels::block(left, d_hidden, 3 * h);
            });
        later = n;
        if let (Some(w_hh_t), 1..) = (&w_hh_t, t * n) {
            let through = &mut through[..w_hh_t.count() * blocks(n) * ROWS * panels::WIDTH];
            w_hh_t.product(through, &left[..blocks(n) * ROWS * 3 * h]);
        }
    }
    let packed = packing.pack(x, Columns::all(i));
    let (d, from_x) = weight_gradients(&packed, weights, packing, &states, &d_input, &d_hidden);
    packing.unpack(&from_x, d_x, Columns::all(i), |to, from| {
        to.iter_mut().zip(from).for_each(|(d, g)| *d += g);
    });
    d
}

/// Adds the output gradient of step `t` to a packed row. For a forward sequence that ends at `t`, also adds the
/// gradients of its padded steps.
fn add_output_gradient(
    d: &mut [f32],
    grad: &[f32],
    packing: &Packing,
    row: usize,
    t: usize,
    columns: Columns,
) {
    let mut add = |at: usize| {
        d.iter_mut().zip(&grad[at..][..columns.width]).for_each(|(d, g)| *d += g);
    };
    let at = packing.place(row, t, columns).start;
    add(at);
    if packing.direction == Direction::Forward && packing.lengths[row] == t + 1 {
        (t + 1..packing.steps).for_each(|later| add(at + (later - t) * columns.stride));
    }
}

/// Gradients of the weights, and of the packed input: products over all steps at once.
fn weight_gradients(
    packed: &[f32],
    weights: &GruWeights,
    packing: &Packing,
    states: &[f32],
    d_input: &[f32],
    d_hidden: &[f32],
) -> (Gradients, Vec<f32>) {
    let h = weights.b_ih.len() / 3;
    let (i, rows, first) = (weights.w_ih.len() / (3 * h), packing.rows(), packing.step(0).len());
    let d_input_m = Matrix::new(d_input, rows, 3 * h);
    let w_ih = product_new(Threads::All, Matrix::new(packed, rows, i).t(), d_input_m);
    let x = product_new(Threads::All, d_input_m, Matrix::new(weights.w_ih, i, 3 * h).t());
    let previous = before(states, packing, h);
    let later = Matrix::new(&d_hidden[first * 3 * h..], rows - first, 3 * h);
    let w_hh = product_new(Threads::All, Matrix::new(&previous, rows - first, h).t(), later);
    let [b_ih, b_hh] = [d_input, d_hidden].map(|d| column_sums(d, 3 * h, 128));
    (Gradients { w_ih, w_hh, b_ih, b_hh }, x)
}

/// The state before every step except the first, where it is h₀ = 0.
fn before(states: &[f32], packing: &Packing, h: usize) -> Vec<f32> {
    let (rows, first) = (packing.rows(), packing.step(0).len());
    let mut previous = Vec::with_capacity((rows - first) * h);
    for t in 1..packing.steps {
        let start = packing.step(t - 1).start;
        previous.extend_from_slice(&states[start * h..(start + packing.step(t).len()) * h]);
    }
    previous
}

multiversion! {
    /// `d_state` holds dh′ without the part that comes through W_hh; the first `running` rows add that part from
    /// `came`. Writes the gradients of both pre-activations, and leaves the direct path z ⊙ dh′ in `d_state`.
    fn step_backward[_FMA](
        h: usize,
        gates: &[f32],
        previous: &[f32],
        came: crate::gru::FromPanels<'_>,
        running: usize,
        d_state: &mut [f32],
        d_input: &mut [f32],
        d_hidden: &mut [f32],
    ) {
        for (row, d_state) in d_state.chunks_exact_mut(h).enumerate() {
            let gates = &gates[row * 4 * h..][..4 * h];
            let previous = &previous[row * h..][..h];
            let d_input = &mut d_input[row * 3 * h..][..3 * h];
            let d_hidden = &mut d_hidden[row * 3 * h..][..3 * h];
            for j in (0..h).step_by(LANES) {
                let part = |gate: usize| load(&gates[gate * h..][..h], j);
                let (r, z, n, hidden) = (part(0), part(1), part(2), part(3));
                let (old, mut d) = (load(previous, j), load(d_state, j));
                if row < running {
                    let part = came.part(row, j / panels::WIDTH, j % panels::WIDTH / LANES);
                    (0..LANES).for_each(|k| d[k] += part[k]);
                }
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

//! The operations in burn's own primitives, for any backend: the fallback, and what the kernels are tested against.
//!
//! Padding must be finite here, since it is masked out by multiplying with zero.

pub(crate) mod attention;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Shape, Slice, TensorData};

use crate::gru::Direction;
use crate::ops::{GruGrads, Params};
use crate::rows::SHORTEST;

/// Slices `[b, l, w]` at step `t`: `[b, w]`.
fn step<B: Backend>(x: &FloatTensor<B>, t: usize) -> FloatTensor<B> {
    let [b, _, w] = x.shape().dims();
    let slices = [Slice::from(0..b), Slice::from(t..t + 1), Slice::from(0..w)];
    B::float_reshape(B::float_slice(x.clone(), &slices), Shape::new([b, w]))
}

/// The columns of gate `k` in `[b, n·h]`.
fn gate<B: Backend>(x: &FloatTensor<B>, k: usize, h: usize) -> FloatTensor<B> {
    let [b, _] = x.shape().dims();
    B::float_slice(x.clone(), &[Slice::from(0..b), Slice::from(k * h..(k + 1) * h)])
}

/// `[b, 1]`: 1 where the sequence is still running at step `t`, else 0; and its complement.
fn running<B: Backend>(like: &FloatTensor<B>, lengths: &[usize], t: usize) -> [FloatTensor<B>; 2] {
    [true, false].map(|on| {
        let mask = lengths.iter().map(|&n| f32::from((t < n) == on)).collect();
        B::float_from_data(TensorData::new::<f32, _>(mask, [lengths.len(), 1]), &like.device())
    })
}

fn zeros<B: Backend>(like: &FloatTensor<B>, shape: [usize; 2]) -> FloatTensor<B> {
    B::float_zeros(Shape::new(shape), &like.device(), like.dtype().into())
}

/// `1 − x`.
fn complement<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    B::float_add_scalar(B::float_neg(x), 1.0f32.into())
}

/// `[b, w]` tensors, one a step, to `[b, l, w]`.
fn stack<B: Backend>(steps: Vec<FloatTensor<B>>) -> FloatTensor<B> {
    let steps = steps.into_iter().map(|x| {
        let [b, w] = x.shape().dims();
        B::float_reshape(x, Shape::new([b, 1, w]))
    });
    B::float_cat(steps.collect(), 1)
}

/// Steps in the order a unit reads them.
fn steps(direction: Direction, l: usize) -> Vec<usize> {
    let mut steps: Vec<_> = (0..l).collect();
    if direction == Direction::Reverse {
        steps.reverse();
    }
    steps
}

/// States `[b, l, h]` and the gates r, z, n, h W_hn + b_hn as `[b, l, 4h]`.
pub(crate) fn gru<B: Backend>(
    x: FloatTensor<B>,
    params: Params<B>,
    lengths: &[usize],
    direction: Direction,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let [b, l, i] = x.shape().dims();
    let [h, _] = params.w_hh.shape().dims();
    let row = Shape::new([1, 3 * h]);
    let (b_ih, b_hh) =
        (B::float_reshape(params.b_ih, row.clone()), B::float_reshape(params.b_hh, row));
    let from_x = B::float_matmul(B::float_reshape(x, Shape::new([b * l, i])), params.w_ih);
    let from_x = B::float_reshape(B::float_add(from_x, b_ih), Shape::new([b, l, 3 * h]));

    let mut state = zeros::<B>(&from_x, [b, h]);
    let (mut states, mut saved) = (Vec::with_capacity(l), Vec::with_capacity(l));
    for t in steps(direction, l) {
        let from_x = step::<B>(&from_x, t);
        let from_h =
            B::float_add(B::float_matmul(state.clone(), params.w_hh.clone()), b_hh.clone());
        let both = |k| B::float_add(gate::<B>(&from_x, k, h), gate::<B>(&from_h, k, h));
        let (r, z) = (B::sigmoid(both(0)), B::sigmoid(both(1)));
        let hidden = gate::<B>(&from_h, 2, h);
        let n = B::float_mul(r.clone(), hidden.clone());
        let n = B::float_tanh(B::float_add(gate::<B>(&from_x, 2, h), n));
        let next = B::float_add(
            B::float_mul(complement::<B>(z.clone()), n.clone()),
            B::float_mul(z.clone(), state.clone()),
        );
        let [on, off] = running::<B>(&next, lengths, t);
        state = B::float_add(B::float_mul(next, on), B::float_mul(state, off));
        states.push(state.clone());
        saved.push(B::float_cat(vec![r, z, n, hidden], 1));
    }
    if direction == Direction::Reverse {
        states.reverse();
        saved.reverse();
    }
    (stack::<B>(states), stack::<B>(saved))
}

/// Gradients of [`gru`] for the gradient `grad` of the states.
pub(crate) fn gru_backward<B: Backend>(
    x: FloatTensor<B>,
    params: Params<B>,
    states: FloatTensor<B>,
    gates: FloatTensor<B>,
    grad: FloatTensor<B>,
    lengths: &[usize],
    direction: Direction,
) -> GruGrads<B> {
    let [b, l, i] = x.shape().dims();
    let [h, _] = params.w_hh.shape().dims();
    let w_hh_t = B::float_transpose(params.w_hh);
    let mut d_state = zeros::<B>(&states, [b, h]);
    let (mut d_input, mut d_hidden, mut before) = (Vec::new(), Vec::new(), Vec::new());
    for t in steps(direction, l).into_iter().rev() {
        let saved = step::<B>(&gates, t);
        let [r, z, n, hidden] = [0, 1, 2, 3].map(|k| gate::<B>(&saved, k, h));
        let previous = match direction {
            Direction::Forward if t > 0 => step::<B>(&states, t - 1),
            Direction::Reverse if t + 1 < l => step::<B>(&states, t + 1),
            _ => zeros::<B>(&states, [b, h]),
        };
        let d = B::float_add(step::<B>(&grad, t), d_state);
        let [on, off] = running::<B>(&d, lengths, t);
        let (d, held) = (B::float_mul(d.clone(), on), B::float_mul(d, off));
        let slope = |s: FloatTensor<B>| B::float_mul(s.clone(), complement::<B>(s)); // σ′ from σ
        let dz = B::float_mul(d.clone(), B::float_sub(previous.clone(), n.clone()));
        let dz = B::float_mul(dz, slope(z.clone()));
        let dn = B::float_mul(d.clone(), complement::<B>(z.clone()));
        let dn = B::float_mul(dn, complement::<B>(B::float_mul(n.clone(), n)));
        let dr = B::float_mul(B::float_mul(dn.clone(), hidden), slope(r.clone()));
        let dnr = B::float_mul(dn.clone(), r);
        let hidden = B::float_cat(vec![dr.clone(), dz.clone(), dnr], 1);
        d_state = B::float_matmul(hidden.clone(), w_hh_t.clone());
        d_state = B::float_add(B::float_add(d_state, B::float_mul(d, z)), held);
        d_input.push(B::float_cat(vec![dr, dz, dn], 1));
        d_hidden.push(hidden);
        before.push(previous);
    }
    let flat = |mut steps: Vec<FloatTensor<B>>, w: usize| {
        if direction == Direction::Forward {
            steps.reverse(); // they came last to first
        }
        B::float_reshape(stack::<B>(steps), Shape::new([b * l, w]))
    };
    let (d_input, d_hidden) = (flat(d_input, 3 * h), flat(d_hidden, 3 * h));
    let before = flat(before, h);
    let sum = |d: FloatTensor<B>| B::float_reshape(B::float_sum_dim(d, 0), Shape::new([3 * h]));
    let x_t = B::float_transpose(B::float_reshape(x, Shape::new([b * l, i])));
    let dx = B::float_matmul(d_input.clone(), B::float_transpose(params.w_ih));
    GruGrads {
        x: B::float_reshape(dx, Shape::new([b, l, i])),
        w_ih: B::float_matmul(x_t, d_input.clone()),
        w_hh: B::float_matmul(B::float_transpose(before), d_hidden.clone()),
        b_ih: sum(d_input),
        b_hh: sum(d_hidden),
    }
}

/// `x / max(‖x‖, 1e-12)` and the norms `[n, 1]`.
pub(crate) fn normalize_rows<B: Backend>(x: FloatTensor<B>) -> (FloatTensor<B>, FloatTensor<B>) {
    let squares = B::float_sum_dim(B::float_mul(x.clone(), x.clone()), 1);
    let norms = B::float_sqrt(squares);
    let y = B::float_div(x, B::float_clamp_min(norms.clone(), (SHORTEST as f32).into()));
    (y, norms)
}

/// Gradient of [`normalize_rows`]; 0 for a row that counts as zero.
pub(crate) fn normalize_rows_backward<B: Backend>(
    y: FloatTensor<B>,
    norms: FloatTensor<B>,
    grad: FloatTensor<B>,
) -> FloatTensor<B> {
    let along = B::float_sum_dim(B::float_mul(y.clone(), grad.clone()), 1);
    let d = B::float_sub(grad, B::float_mul(y, along));
    // 1 for a row that is longer than the shortest, else 0: a clamped ratio, without a comparison.
    let shortest = SHORTEST as f32;
    let counts = B::float_sub_scalar(norms.clone(), shortest.into());
    let counts = B::float_clamp_min(B::float_sign(counts), 0.0f32.into());
    let norms = B::float_clamp_min(norms, shortest.into());
    B::float_mul(B::float_div(d, norms), counts)
}

/// `[b, l, w]` to the mean over the real steps, `[b, w]`.
pub(crate) fn masked_mean<B: Backend>(x: FloatTensor<B>, lengths: &[usize]) -> FloatTensor<B> {
    let [b, l, w] = x.shape().dims();
    let weights = B::float_from_data(step_weights(lengths, l), &x.device());
    let sum = B::float_sum_dim(B::float_mul(x, weights), 1);
    B::float_reshape(sum, Shape::new([b, w]))
}

/// Gradient of [`masked_mean`] for sequences padded to `steps`.
pub(crate) fn masked_mean_backward<B: Backend>(
    grad: FloatTensor<B>,
    lengths: &[usize],
    steps: usize,
) -> FloatTensor<B> {
    let [b, w] = grad.shape().dims();
    let weights = B::float_from_data(step_weights(lengths, steps), &grad.device());
    B::float_mul(B::float_reshape(grad, Shape::new([b, 1, w])), weights)
}

/// `[b, l, 1]`: 1 / length on real steps, 0 on padding.
fn step_weights(lengths: &[usize], steps: usize) -> TensorData {
    let weight = |&n: &usize| (0..steps).map(move |t| if t < n { 1.0 / n as f32 } else { 0.0 });
    TensorData::new::<f32, _>(lengths.iter().flat_map(weight).collect(), [lengths.len(), steps, 1])
}

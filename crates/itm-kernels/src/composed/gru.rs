//! Recurrent units in burn's own primitives.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Shape, Slice, TensorData};

use crate::gru::Direction;

/// w_ih, w_hh, b_ih, b_hh of one layer and direction.
type Unit<B> = [FloatTensor<B>; 4];

/// The states, and the gates of each direction.
pub(crate) fn saving<B: Backend>(
    x: FloatTensor<B>,
    weights: &[FloatTensor<B>],
    lengths: &[usize],
) -> (FloatTensor<B>, Vec<FloatTensor<B>>) {
    let one = |(direction, weights)| unit::<B>(x.clone(), weights, lengths, direction);
    let (states, gates): (Vec<_>, Vec<_>) = directions::<B>(weights).map(one).unzip();
    (B::float_cat(states, 2), gates)
}

/// Gradients of x and the weights, in this order.
pub(crate) fn backward<B: Backend>(
    x: FloatTensor<B>,
    weights: &[FloatTensor<B>],
    states: FloatTensor<B>,
    gates: Vec<FloatTensor<B>>,
    grad: FloatTensor<B>,
    lengths: &[usize],
) -> Vec<FloatTensor<B>> {
    let [b, l, _] = states.shape().dims();
    let mut all: Vec<FloatTensor<B>> = vec![];
    for (k, ((direction, weights), gates)) in directions::<B>(weights).zip(gates).enumerate() {
        let [h, _] = weights[1].shape().dims();
        let columns = [Slice::from(0..b), Slice::from(0..l), Slice::from(k * h..(k + 1) * h)];
        let half = |x: &FloatTensor<B>| B::float_slice(x.clone(), &columns);
        let (states, grad, x) = (half(&states), half(&grad), x.clone());
        let [d_x, others @ ..] =
            unit_backward::<B>(x, weights, states, gates, grad, lengths, direction);
        match all.first_mut() {
            Some(x) => *x = B::float_add(x.clone(), d_x),
            None => all.push(d_x),
        }
        all.extend(others);
    }
    all
}

/// The weights of each direction.
fn directions<B: Backend>(
    weights: &[FloatTensor<B>],
) -> impl Iterator<Item = (Direction, Unit<B>)> {
    assert!([4, 8].contains(&weights.len()), "{} weights, not 4 per direction", weights.len());
    [Direction::Forward, Direction::Reverse].into_iter().zip(weights.as_chunks().0.iter().cloned())
}

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

/// `[b, 1]`: 1 if step `t` of the sequence is real, else 0; and the complement.
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

/// `[b, w]` tensors, one per step, to `[b, l, w]`.
fn stack<B: Backend>(steps: Vec<FloatTensor<B>>) -> FloatTensor<B> {
    let steps = steps.into_iter().map(|x| {
        let [b, w] = x.shape().dims();
        B::float_reshape(x, Shape::new([b, 1, w]))
    });
    B::float_cat(steps.collect(), 1)
}

/// Steps in the order a unit reads them.
fn steps(direction: Direction, l: usize) -> impl DoubleEndedIterator<Item = usize> {
    (0..l).map(move |t| if direction == Direction::Reverse { l - 1 - t } else { t })
}

/// States `[b, l, h]` and the gates r, z, n, h W_hn + b_hn as `[b, l, 4h]`.
pub(crate) fn unit<B: Backend>(
    x: FloatTensor<B>,
    [w_ih, w_hh, b_ih, b_hh]: Unit<B>,
    lengths: &[usize],
    direction: Direction,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let [b, l, i] = x.shape().dims();
    let [h, _] = w_hh.shape().dims();
    let [b_ih, b_hh] = [b_ih, b_hh].map(|bias| B::float_reshape(bias, Shape::new([1, 3 * h])));
    let from_x = B::float_matmul(B::float_reshape(x, Shape::new([b * l, i])), w_ih);
    let from_x = B::float_reshape(B::float_add(from_x, b_ih), Shape::new([b, l, 3 * h]));

    let mut state = zeros::<B>(&from_x, [b, h]);
    let (mut states, mut saved) = (Vec::with_capacity(l), Vec::with_capacity(l));
    for t in steps(direction, l) {
        let from_x = step::<B>(&from_x, t);
        let from_h = B::float_add(B::float_matmul(state.clone(), w_hh.clone()), b_hh.clone());
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

/// Gradients of x and the weights of [`unit`] from the gradient `grad` of the states.
fn unit_backward<B: Backend>(
    x: FloatTensor<B>,
    [w_ih, w_hh, ..]: Unit<B>,
    states: FloatTensor<B>,
    gates: FloatTensor<B>,
    grad: FloatTensor<B>,
    lengths: &[usize],
    direction: Direction,
) -> [FloatTensor<B>; 5] {
    let [b, l, i] = x.shape().dims();
    let [h, _] = w_hh.shape().dims();
    let w_hh_t = B::float_transpose(w_hh);
    let mut d_state = zeros::<B>(&states, [b, h]);
    let (mut d_input, mut d_hidden, mut before) = (Vec::new(), Vec::new(), Vec::new());
    for t in steps(direction, l).rev() {
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
            steps.reverse(); // they were computed from last to first
        }
        B::float_reshape(stack::<B>(steps), Shape::new([b * l, w]))
    };
    let (d_input, d_hidden) = (flat(d_input, 3 * h), flat(d_hidden, 3 * h));
    let before = flat(before, h);
    let sum = |d: FloatTensor<B>| B::float_reshape(B::float_sum_dim(d, 0), Shape::new([3 * h]));
    let x_t = B::float_transpose(B::float_reshape(x, Shape::new([b * l, i])));
    let dx = B::float_matmul(d_input.clone(), B::float_transpose(w_ih));
    [
        B::float_reshape(dx, Shape::new([b, l, i])),
        B::float_matmul(x_t, d_input.clone()),
        B::float_matmul(B::float_transpose(before), d_hidden.clone()),
        sum(d_input),
        sum(d_hidden),
    ]
}

//! One head of one row with the operands of all seven products rounded to bf16.

use super::{Head, Heads, Which, multiply, softmax_backward};
use crate::bf16::{LeftOperand, RightOperand, both_here, product_here};
use crate::matrix::Matrix;
use crate::product::Into;

/// Values of the scores of one block: with their gradients and both operands they stay in the second-level cache.
const SCORES: usize = 65536;

/// Operands and scores of one head. The next head packs and computes in the same memory.
#[derive(Default)]
pub(super) struct HeadScratch {
    /// Kᵀ and K as right operands.
    keys: (RightOperand, RightOperand),
    /// V, or Vᵀ in the backward pass.
    values: RightOperand,
    /// Q as left and as right operand.
    queries: (LeftOperand, RightOperand),
    /// G as left and as right operand.
    grad: (LeftOperand, RightOperand),
    /// m ⊙ a, or its transpose in the backward pass.
    weights: LeftOperand,
    /// dS and its transpose.
    ds: (LeftOperand, LeftOperand),
    a: Vec<f32>,
    da: Vec<f32>,
    mask: Vec<f32>,
}

/// The first `n` values of a vector that grows where it is too short.
fn room(values: &mut Vec<f32>, n: usize) -> &mut [f32] {
    if values.len() < n {
        values.resize(n, 0.0);
    }
    &mut values[..n]
}

/// Queries of one block. Blocks are equal, but for the last.
pub(super) fn queries(l: usize, n: usize) -> usize {
    let most = (SCORES / n).max(1);
    l.div_ceil(l.div_ceil(most))
}

/// Writes y, `[l, w]`.
pub(super) fn forward(one: &Head, heads: &Heads, scratch: &mut HeadScratch, to: &mut [f32]) {
    let &Head { l, w, keys: n, .. } = one;
    let HeadScratch { keys: (keys_t, _), values, queries: (queries, _), weights, a, mask, .. } =
        scratch;
    keys_t.here(one.part(Which::Key, 0, n)); // its lanes are the columns of Kᵀ
    values.here(one.part(Which::Value, 0, n).t());
    let block = self::queries(l, n);
    for (first, to) in (0..l).step_by(block).zip(to.chunks_mut(block * w)) {
        let rows = to.len() / w;
        let a = room(a, rows * n);
        queries.here(one.part(Which::Query, first, rows));
        product_here(a, Into::Replace, queries, keys_t);
        heads.softmax(one, first, a);
        if heads.dropout.is_some() {
            let mask = room(mask, rows * n);
            heads.mask(one, first, mask);
            multiply(a, mask);
        }
        weights.here(Matrix::new(a, rows, n));
        product_here(to, Into::Replace, weights, values);
    }
}

/// Writes dq, dk and dv, `[l, w]` each. The rows of dk and dv that are no keys stay as they are.
pub(super) fn backward(
    one: &Head,
    heads: &Heads,
    grad: &[f32],
    scratch: &mut HeadScratch,
    [dq, dk, dv]: [&mut [f32]; 3],
) {
    let &Head { l, w, keys: n, .. } = one;
    let HeadScratch { keys, values: values_t, queries, grad: of_y, weights, ds, a, da, mask } =
        scratch;
    both_here(keys, one.part(Which::Key, 0, n));
    values_t.here(one.part(Which::Value, 0, n));
    let block = self::queries(l, n);
    let (dk, dv) = (&mut dk[..n * w], &mut dv[..n * w]);
    for (first, dq) in (0..l).step_by(block).zip(dq.chunks_mut(block * w)) {
        let rows = dq.len() / w;
        let (a, da) = (room(a, rows * n), room(da, rows * n));
        let how = if first == 0 { Into::Replace } else { Into::Add };
        both_here(queries, one.part(Which::Query, first, rows));
        product_here(a, Into::Replace, &queries.0, &keys.0);
        heads.softmax(one, first, a);
        both_here(of_y, one.grad(grad, first, rows));
        product_here(da, Into::Replace, &of_y.0, values_t);
        if heads.dropout.is_some() {
            let mask = room(mask, rows * n);
            heads.mask(one, first, mask);
            multiply(da, mask);
            multiply(mask, a);
            weights.here(Matrix::new(mask, rows, n).t());
        } else {
            weights.here(Matrix::new(a, rows, n).t());
        }
        product_here(dv, how, weights, &of_y.1);
        softmax_backward(a, da, n, one.scale());
        both_here(ds, Matrix::new(da, rows, n));
        product_here(dq, Into::Replace, &ds.0, &keys.1);
        product_here(dk, how, &ds.1, &queries.1);
    }
}

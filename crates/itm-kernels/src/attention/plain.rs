//! One head of one row in f32.

use super::{Head, Heads, Which, multiply, softmax_backward};
use crate::matrix::Matrix;
use crate::product::{Into, Threads, product, transposed_here};

/// Queries of one block: their scores stay in the second-level cache.
pub(super) const QUERIES: usize = 128;

/// Writes y, `[l, w]`.
pub(super) fn forward(one: &Head, heads: &Heads, to: &mut [f32]) {
    let &Head { l, w, keys: n, .. } = one;
    let keys_t = transposed_here(one.part(Which::Key, 0, n));
    let mut scores = vec![0.0; QUERIES.min(l) * n];
    let mut mask = heads.dropout.map(|_| vec![0.0; scores.len()]);
    for (first, to) in (0..l).step_by(QUERIES).zip(to.chunks_mut(QUERIES * w)) {
        let scores = &mut scores[..to.len() / w * n];
        weights(one, heads, first, &keys_t, scores);
        if let Some(mask) = &mut mask {
            let mask = &mut mask[..scores.len()];
            heads.mask(one, first, mask);
            multiply(scores, mask);
        }
        let weights = Matrix::new(scores, to.len() / w, n);
        product(Threads::This, to, Into::Replace, weights, one.part(Which::Value, 0, n));
    }
}

/// Writes dq, dk and dv, `[l, w]` each. The rows of dk and dv that are no keys stay as they are.
pub(super) fn backward(one: &Head, heads: &Heads, grad: &[f32], [dq, dk, dv]: [&mut [f32]; 3]) {
    let &Head { l, w, keys: n, .. } = one;
    let keys = one.part(Which::Key, 0, n);
    let [keys_t, values_t] = [keys, one.part(Which::Value, 0, n)].map(transposed_here);
    let [mut a, mut da] = [(); 2].map(|()| vec![0.0; QUERIES.min(l) * n]);
    let mut mask = heads.dropout.map(|_| vec![0.0; a.len()]);
    let (dk, dv) = (&mut dk[..n * w], &mut dv[..n * w]);
    for (first, dq) in (0..l).step_by(QUERIES).zip(dq.chunks_mut(QUERIES * w)) {
        let rows = dq.len() / w;
        let (a, da) = (&mut a[..rows * n], &mut da[..rows * n]);
        weights(one, heads, first, &keys_t, a);
        let grad = one.grad(grad, first, rows);
        product(Threads::This, da, Into::Replace, grad, Matrix::new(&values_t, w, n));
        let how = if first == 0 { Into::Replace } else { Into::Add };
        if let Some(mask) = &mut mask {
            let mask = &mut mask[..rows * n];
            heads.mask(one, first, mask);
            multiply(da, mask);
            multiply(mask, a);
            product(Threads::This, dv, how, Matrix::new(mask, rows, n).t(), grad);
        } else {
            product(Threads::This, dv, how, Matrix::new(a, rows, n).t(), grad);
        }
        softmax_backward(a, da, n, one.scale());
        let ds = Matrix::new(da, rows, n);
        product(Threads::This, dq, Into::Replace, ds, keys);
        product(Threads::This, dk, how, ds.t(), one.part(Which::Query, first, rows));
    }
}

/// Attention weights of the queries from `first` on.
fn weights(one: &Head, heads: &Heads, first: usize, keys_t: &[f32], scores: &mut [f32]) {
    let queries = one.part(Which::Query, first, scores.len() / one.keys);
    let keys = Matrix::new(keys_t, one.w, one.keys);
    product(Threads::This, scores, Into::Replace, queries, keys);
    heads.softmax(one, first, scores);
}

//! Self-attention, and softmax alone, in burn's own primitives.

use burn::backend::tensor::{BoolTensor, FloatTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Shape, Slice, TensorData};
use rayon::prelude::*;

use super::at_most;
use crate::attention::Heads;
use crate::random;

/// `[b, l, 3d]` to `[b, l, d]`.
///
/// # Panics
/// If the precision is bf16, which only the CPU backend has.
pub(crate) fn forward<B: Backend>(qkv: FloatTensor<B>, heads: &Heads) -> FloatTensor<B> {
    heads.precision.only_f32();
    let parts = HeadTensors::<B>::new(qkv, heads);
    let (weights, _) = parts.weights(heads);
    parts.joined(B::float_matmul(weights, parts.v.clone()))
}

/// Gradient of `qkv`.
pub(crate) fn backward<B: Backend>(
    qkv: FloatTensor<B>,
    grad: FloatTensor<B>,
    heads: &Heads,
) -> FloatTensor<B> {
    let parts = HeadTensors::<B>::new(qkv, heads);
    let (dropped, kept) = parts.weights(heads);
    let grad = split::<B>(grad, 0, parts.sizes);
    let dv = B::float_matmul(transposed::<B>(dropped), grad.clone());
    let da = B::float_matmul(grad, transposed::<B>(parts.v.clone()));
    let da = match mask::<B>(&da, parts.sizes, heads) {
        Some(mask) => B::float_mul(da, mask),
        None => da,
    };
    let along = B::float_sum_dim(B::float_mul(kept.clone(), da.clone()), 3);
    let ds = B::float_mul(kept, B::float_sub(da, along));
    let ds = B::float_mul_scalar(ds, parts.scale().into());
    let dq = B::float_matmul(ds.clone(), parts.k.clone());
    let dk = B::float_matmul(transposed::<B>(ds), parts.q.clone());
    B::float_cat([dq, dk, dv].map(|x| parts.joined(x)).into(), 2)
}

/// Queries, keys, values as `[b, heads, l, w]`.
struct HeadTensors<B: Backend> {
    q: FloatTensor<B>,
    k: FloatTensor<B>,
    v: FloatTensor<B>,
    /// b, l, heads, w
    sizes: [usize; 4],
}

impl<B: Backend> HeadTensors<B> {
    fn new(qkv: FloatTensor<B>, heads: &Heads) -> Self {
        let [b, l, d3] = qkv.shape().dims();
        let sizes = [b, l, heads.heads, d3 / 3 / heads.heads];
        let [q, k, v] = [0, 1, 2].map(|which| split::<B>(qkv.clone(), which, sizes));
        Self { q, k, v, sizes }
    }

    /// `[b, heads, l, w]` to `[b, l, d]`.
    fn joined(&self, x: FloatTensor<B>) -> FloatTensor<B> {
        let [b, l, heads, w] = self.sizes;
        let x = B::float_permute(x, &[0, 2, 1, 3]);
        B::float_reshape(x, Shape::new([b, l, heads * w]))
    }

    fn scale(&self) -> f32 {
        1.0 / (self.sizes[3] as f32).sqrt()
    }

    /// Attention weights `[b, heads, l, l]` after and before dropout.
    fn weights(&self, heads: &Heads) -> (FloatTensor<B>, FloatTensor<B>) {
        let scores = B::float_matmul(self.q.clone(), transposed::<B>(self.k.clone()));
        let scores = B::float_mul_scalar(scores, self.scale().into());
        let [b, l, ..] = self.sizes;
        // Without a causal mask all queries of a row attend to the same keys.
        let queries = if heads.causal { l } else { 1 };
        let ends = heads
            .keys
            .iter()
            .flat_map(|&n| (0..queries).map(move |i| if heads.causal { n.min(i + 1) } else { n }));
        let bias = ends.flat_map(|end| (0..l).map(move |j| if j < end { 0.0f32 } else { -1e30 }));
        let bias = TensorData::new::<f32, _>(bias.collect(), [b, 1, queries, l]);
        let scores = B::float_add(scores.clone(), B::float_from_data(bias, &scores.device()));
        let highest = B::float_max_dim(scores.clone(), 3);
        let e = B::float_exp(B::float_sub(scores, highest));
        let kept = B::float_div(e.clone(), B::float_sum_dim(e, 3));
        match mask::<B>(&kept, self.sizes, heads) {
            Some(mask) => (B::float_mul(kept.clone(), mask), kept),
            None => (kept.clone(), kept),
        }
    }
}

/// The columns of one of the parts of `[b, l, parts·d]` as `[b, heads, l, w]`.
fn split<B: Backend>(
    x: FloatTensor<B>,
    which: usize,
    [b, l, heads, w]: [usize; 4],
) -> FloatTensor<B> {
    let d = heads * w;
    let columns = Slice::from(which * d..(which + 1) * d);
    let x = B::float_slice(x, &[Slice::from(0..b), Slice::from(0..l), columns]);
    B::float_permute(B::float_reshape(x, Shape::new([b, l, heads, w])), &[0, 2, 1, 3])
}

fn transposed<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    B::float_permute(x, &[0, 1, 3, 2])
}

/// Dropout's multipliers, `[b, heads, l, l]`: the same as the kernel's.
fn mask<B: Backend>(
    like: &FloatTensor<B>,
    [b, l, heads, _]: [usize; 4],
    spec: &Heads,
) -> Option<FloatTensor<B>> {
    let (rate, seed) = spec.dropout?;
    let n = (b * heads * l * l) as u64;
    let mask = (0..n).into_par_iter().map(|k| random::keep(seed, k, rate)).collect();
    let mask = TensorData::new::<f32, _>(mask, [b, heads, l, l]);
    Some(B::float_from_data(mask, &like.device()))
}

/// Softmax over the columns of `[n, w]`; see [`crate::softmax`] for the counts.
pub(crate) fn masked_softmax<B: Backend>(x: FloatTensor<B>, counts: &[usize]) -> FloatTensor<B> {
    let rest = uncounted::<B>(&x, counts);
    // Low but finite: in a row where no value counts, the difference below is 0 and not ∞ − ∞.
    let x = B::float_mask_fill(x, rest.clone(), (-1e30f32).into());
    let largest = B::float_max_dim(x.clone(), 1);
    let e = B::float_exp(B::float_sub(x, largest));
    let e = B::float_mask_fill(e, rest, 0.0f32.into());
    // The sum is at least 1 if any value of the row counts.
    let total = B::float_clamp_min(B::float_sum_dim(e.clone(), 1), 0.5f32.into());
    B::float_div(e, total)
}

/// Mask of the entries of `[n, w]` that do not count. The device compares, because not every backend takes truth
/// values from the host.
fn uncounted<B: Backend>(like: &FloatTensor<B>, counts: &[usize]) -> BoolTensor<B> {
    let ([n, w], device) = (like.shape().dims(), like.device());
    let (c, each) = (counts.len(), n / counts.len());
    let kept: Vec<f32> = counts
        .iter()
        .flat_map(|&count| (0..w).map(move |k| if k < count { 1.0 } else { 0.0 }))
        .collect();
    let kept = B::float_from_data(TensorData::new(kept, [c, 1, w]), &device);
    let kept =
        B::float_reshape(B::float_expand(kept, Shape::new([c, each, w])), Shape::new([n, w]));
    at_most::<B>(&kept, 0.5)
}

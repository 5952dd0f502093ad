//! The operations in burn's own primitives, for any backend: the fallback, and the reference in tests of the kernels.
//!
//! Padding must be finite here, because it is masked out by a product with zero.

pub(crate) mod attention;
pub(crate) mod cross_attention;
pub(crate) mod gru;
pub(crate) mod order;

use burn::backend::tensor::{BoolTensor, FloatTensor};
use burn::backend::{Backend, TensorMetadata, get_device_settings};
use burn::tensor::{Shape, TensorData};

use crate::rows::SHORTEST;

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
    // 1 for a row that is longer than the shortest, else 0: a clamped sign, without a comparison.
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

/// Where a value is 0.
pub(crate) fn is_zero<B: Backend>(x: &FloatTensor<B>) -> BoolTensor<B> {
    let truth = get_device_settings::<B>(&x.device()).bool_dtype;
    B::float_equal_elem(x.clone(), 0.0f32.into(), truth)
}

/// Where a value is at most `most`.
pub(crate) fn at_most<B: Backend>(x: &FloatTensor<B>, most: f32) -> BoolTensor<B> {
    let truth = get_device_settings::<B>(&x.device()).bool_dtype;
    B::float_lower_equal_elem(x.clone(), most.into(), truth)
}

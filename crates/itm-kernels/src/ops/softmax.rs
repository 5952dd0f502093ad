//! Softmax of rows as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::{BoolTensor, FloatTensor};
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension, get_device_settings};
use burn::tensor::{Shape, TensorData};

/// Softmax over the columns of `[n, w]`; see [`crate::softmax`] for the counts.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
pub(crate) trait SoftmaxOps: Backend {
    /// The weights.
    fn masked_softmax(x: FloatTensor<Self>, counts: Vec<usize>) -> FloatTensor<Self> {
        composed::<Self>(x, &counts)
    }
}

pub(crate) fn composed<B: Backend>(x: FloatTensor<B>, counts: &[usize]) -> FloatTensor<B> {
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
    B::float_lower_elem(kept, 0.5f32.into(), get_device_settings::<B>(&device).bool_dtype)
}

super::composed_elsewhere!(SoftmaxOps);

#[cfg(feature = "flex")]
impl SoftmaxOps for burn::backend::Flex {
    fn masked_softmax(x: FloatTensor<Self>, counts: Vec<usize>) -> FloatTensor<Self> {
        let [_, w] = x.shape().dims();
        super::flex::in_place(x, |x| crate::softmax::forward(x, w, &counts)).0
    }
}

/// Autodiff records the operations of the composed body.
impl<B: SoftmaxOps, C: CheckpointStrategy> SoftmaxOps for Autodiff<B, C> {}

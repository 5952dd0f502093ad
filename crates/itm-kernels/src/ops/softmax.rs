//! Softmax of rows as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::{BoolTensor, FloatTensor};
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension, get_device_settings};
use burn::tensor::{Shape, TensorData};

use super::node;

/// Softmax over the columns of `[n, w]`; see [`crate::softmax`] for the counts.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
pub(crate) trait SoftmaxOps: Backend {
    /// The weights.
    fn fused_softmax(x: FloatTensor<Self>, counts: Option<Vec<usize>>) -> FloatTensor<Self> {
        composed::<Self>(x, counts)
    }

    /// The gradient of the values from the gradient of the weights `y`.
    fn fused_softmax_backward(
        y: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        counts: Option<Vec<usize>>,
    ) -> FloatTensor<Self> {
        composed_backward::<Self>(y, grad, counts)
    }
}

pub(crate) fn composed<B: Backend>(
    x: FloatTensor<B>,
    counts: Option<Vec<usize>>,
) -> FloatTensor<B> {
    let rest = counts.map(|counts| uncounted::<B>(&x, &counts));
    // Low but finite: in a row where no value counts, the difference below is 0 and not ∞ − ∞.
    let x = filled::<B>(x, rest.clone(), -1e30);
    let largest = B::float_max_dim(x.clone(), 1);
    let e = filled::<B>(B::float_exp(B::float_sub(x, largest)), rest, 0.0);
    // The sum is at least 1 if any value of the row counts.
    let total = B::float_clamp_min(B::float_sum_dim(e.clone(), 1), 0.5f32.into());
    B::float_div(e, total)
}

pub(crate) fn composed_backward<B: Backend>(
    y: FloatTensor<B>,
    grad: FloatTensor<B>,
    counts: Option<Vec<usize>>,
) -> FloatTensor<B> {
    let rest = counts.map(|counts| uncounted::<B>(&y, &counts));
    let grad = filled::<B>(grad, rest, 0.0);
    let along = B::float_sum_dim(B::float_mul(y.clone(), grad.clone()), 1);
    B::float_mul(y, B::float_sub(grad, along))
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

fn filled<B: Backend>(
    x: FloatTensor<B>,
    mask: Option<BoolTensor<B>>,
    value: f32,
) -> FloatTensor<B> {
    match mask {
        None => x,
        Some(mask) => B::float_mask_fill(x, mask, value.into()),
    }
}

#[cfg(feature = "tch")]
impl SoftmaxOps for burn::backend::LibTorch {}

#[cfg(feature = "cube")]
impl SoftmaxOps for burn::backend::Cube {}

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::flex::FlexTensor;
    use burn::backend::{Flex, TensorMetadata};

    use super::SoftmaxOps;
    use crate::ops::flex::{in_place, values};
    use crate::softmax::{self, Rows};

    impl SoftmaxOps for Flex {
        fn fused_softmax(x: FlexTensor, counts: Option<Vec<usize>>) -> FlexTensor {
            let [n, w] = x.shape().dims();
            let rows = Rows::new(n * w, w, counts.as_deref());
            in_place(x, |x| softmax::forward(x, rows)).0
        }

        fn fused_softmax_backward(
            y: FlexTensor,
            grad: FlexTensor,
            counts: Option<Vec<usize>>,
        ) -> FlexTensor {
            let [n, w] = y.shape().dims();
            let rows = Rows::new(n * w, w, counts.as_deref());
            values([&y], |[y]| in_place(grad, |grad| softmax::backward(y, grad, rows)).0)
        }
    }
}

impl<B: SoftmaxOps, C: CheckpointStrategy> SoftmaxOps for Autodiff<B, C> {
    fn fused_softmax(x: FloatTensor<Self>, counts: Option<Vec<usize>>) -> FloatTensor<Self> {
        let node = x.node();
        let y = B::fused_softmax(x.into_primitive(), counts.clone());
        node::of_one::<B, C, _>(node, y.clone(), (y, counts), |(y, counts), grad| {
            B::fused_softmax_backward(y, grad, counts)
        })
    }
}

//! Unit rows and means over real steps as burn backend extensions.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension};

#[cfg(feature = "flex")]
use super::flex::{Flex, FlexTensor, tensor, values};
use super::node;
use crate::{composed, rows};

/// Operations that a backend may have a kernel for; without a kernel they are composed of the backend's operations.
///
/// The `_saving` forms also return the values that their `_backward` needs. Only these two functions know the layout
/// of the values.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
pub(crate) trait FusedOps: Backend {
    /// Rows of unit length, `[n, d]`, and their norms, `[n, 1]`.
    fn normalize_rows_saving(x: FloatTensor<Self>) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::normalize_rows::<Self>(x)
    }

    /// Gradient of the rows from the gradient of the unit rows.
    fn normalize_rows_backward(
        y: FloatTensor<Self>,
        norms: FloatTensor<Self>,
        grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        composed::normalize_rows_backward::<Self>(y, norms, grad)
    }

    /// `[b, l, w]` to the mean over the real steps, `[b, w]`.
    fn masked_mean(x: FloatTensor<Self>, lengths: Vec<usize>) -> FloatTensor<Self> {
        composed::masked_mean::<Self>(x, &lengths)
    }

    /// Gradient of the sequences, padded to `steps`, from the gradient of the means.
    fn masked_mean_backward(
        grad: FloatTensor<Self>,
        lengths: Vec<usize>,
        steps: usize,
    ) -> FloatTensor<Self> {
        composed::masked_mean_backward::<Self>(grad, &lengths, steps)
    }
}

super::composed_elsewhere!(FusedOps);

#[cfg(feature = "flex")]
impl FusedOps for Flex {
    fn normalize_rows_saving(x: FlexTensor) -> (FlexTensor, FlexTensor) {
        let [n, d] = x.shape().dims();
        let (y, norms) = values([&x], |[x]| rows::normalize(x, d));
        (tensor(y, [n, d]), tensor(norms, [n, 1]))
    }

    fn normalize_rows_backward(y: FlexTensor, norms: FlexTensor, grad: FlexTensor) -> FlexTensor {
        let [n, d] = y.shape().dims();
        let dx = values([&y, &norms, &grad], |[y, norms, grad]| {
            rows::normalize_backward(y, norms, grad)
        });
        tensor(dx, [n, d])
    }

    fn masked_mean(x: FlexTensor, lengths: Vec<usize>) -> FlexTensor {
        let [b, _, w] = x.shape().dims();
        tensor(values([&x], |[x]| rows::masked_mean(x, &lengths, w)), [b, w])
    }

    fn masked_mean_backward(grad: FlexTensor, lengths: Vec<usize>, steps: usize) -> FlexTensor {
        let [b, w] = grad.shape().dims();
        let d = values([&grad], |[grad]| rows::masked_mean_backward(grad, &lengths, steps));
        tensor(d, [b, steps, w])
    }
}

impl<B: FusedOps, C: CheckpointStrategy> FusedOps for Autodiff<B, C> {
    fn normalize_rows_saving(x: FloatTensor<Self>) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let node = x.node();
        let (y, norms) = B::normalize_rows_saving(x.into_primitive());
        let constant = FloatTensor::<Self>::new(norms.clone());
        let y = node::of_one::<B, C, _>(node, y.clone(), (y, norms), |(y, norms), grad| {
            B::normalize_rows_backward(y, norms, grad)
        });
        (y, constant)
    }

    fn masked_mean(x: FloatTensor<Self>, lengths: Vec<usize>) -> FloatTensor<Self> {
        let [_, steps, _] = x.shape().dims();
        let node = x.node();
        let mean = B::masked_mean(x.into_primitive(), lengths.clone());
        node::of_one::<B, C, _>(node, mean, lengths, move |lengths, grad| {
            B::masked_mean_backward(grad, lengths, steps)
        })
    }
}

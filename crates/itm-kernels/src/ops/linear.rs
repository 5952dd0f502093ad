//! Linear maps as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension};
use burn::tensor::Shape;

use super::node;

/// A linear map and its gradients; equations in [`crate::linear`].
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
pub(crate) trait LinearOps: Backend {
    /// `x W + b`: `[n, i]` to `[n, o]`.
    fn linear_rows(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [o] = bias.shape().dims();
        let bias = Self::float_reshape(bias, Shape::new([1, o]));
        Self::float_add(Self::float_matmul(x, weight), bias)
    }

    /// `g Wᵀ`.
    fn linear_input_gradient(
        grad: FloatTensor<Self>,
        weight: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::float_matmul(grad, Self::float_transpose(weight))
    }

    /// `xᵀ g`.
    fn linear_weight_gradient(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::float_matmul(Self::float_transpose(x), grad)
    }

    /// `Σ_rows g`, `[o]`.
    fn linear_bias_gradient(grad: FloatTensor<Self>) -> FloatTensor<Self> {
        let [_, o] = grad.shape().dims();
        Self::float_reshape(Self::float_sum_dim(grad, 0), Shape::new([o]))
    }
}

#[cfg(feature = "tch")]
#[allow(deprecated)] // upstream deprecates the backend, which stays the way to CUDA
impl LinearOps for burn::backend::LibTorch {}

#[cfg(feature = "cube")]
impl LinearOps for burn::backend::Cube {}

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::Flex;
    use burn::backend::TensorMetadata;
    use burn::backend::flex::FlexTensor;

    use super::LinearOps;
    use crate::linear;
    use crate::ops::flex::{tensor, values};

    impl LinearOps for Flex {
        fn linear_rows(x: FlexTensor, weight: FlexTensor, bias: FlexTensor) -> FlexTensor {
            let ([n, _], [o]) = (x.shape().dims(), bias.shape().dims());
            let y = values([&x, &weight, &bias], |[x, w, b]| linear::forward(x, w, b));
            tensor(y, [n, o])
        }

        fn linear_input_gradient(grad: FlexTensor, weight: FlexTensor) -> FlexTensor {
            let ([n, _], [i, o]) = (grad.shape().dims(), weight.shape().dims());
            let d = values([&grad, &weight], |[g, w]| linear::input_gradient(g, w, o));
            tensor(d, [n, i])
        }

        fn linear_weight_gradient(x: FlexTensor, grad: FlexTensor) -> FlexTensor {
            let ([_, i], [_, o]) = (x.shape().dims(), grad.shape().dims());
            let d = values([&x, &grad], |[x, g]| linear::weight_gradient(x, g, o));
            tensor(d, [i, o])
        }

        fn linear_bias_gradient(grad: FlexTensor) -> FlexTensor {
            let [_, o] = grad.shape().dims();
            tensor(values([&grad], |[g]| linear::bias_gradient(g, o)), [o])
        }
    }
}

impl<B: LinearOps, C: CheckpointStrategy> LinearOps for Autodiff<B, C> {
    fn linear_rows(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let (x, weight) = (x.into_primitive(), weight.into_primitive());
        let y = B::linear_rows(x.clone(), weight.clone(), bias.into_primitive());
        node::of::<B, C, _, 3>(nodes, y, (x, weight), |(x, weight), grad, [to_x, to_w, to_b]| {
            let bias = to_b.then(|| B::linear_bias_gradient(grad.clone()));
            let d_weight = to_w.then(|| B::linear_weight_gradient(x, grad.clone()));
            [to_x.then(|| B::linear_input_gradient(grad, weight)), d_weight, bias]
        })
    }
}

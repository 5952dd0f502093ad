//! Linear maps as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension};
use burn::tensor::Shape;

use super::node;
use crate::precision::Precision;

/// A linear map; equations in [`crate::linear`].
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
        precision: Precision,
    ) -> FloatTensor<Self>;
}

impl<B: LinearMap> LinearOps for B {
    fn linear_rows(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        precision: Precision,
    ) -> FloatTensor<Self> {
        B::linear_map(x, weight, bias, precision)
    }
}

/// Values that a linear map keeps for its gradients.
#[derive(Debug, Clone)]
pub(crate) enum LinearState<B: Backend> {
    /// Input and weight.
    Values(FloatTensor<B>, FloatTensor<B>),
    /// Both rounded to bf16.
    #[cfg(feature = "flex")]
    Rounded(std::sync::Arc<crate::linear::RoundedOperands>),
}

/// A linear map and its gradients in a backend's operations, and the values kept in between.
pub(crate) trait LinearMap: Backend {
    /// `x W + b`.
    ///
    /// # Panics
    /// If the precision is bf16, which only the CPU backend has.
    fn linear_map(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        precision: Precision,
    ) -> FloatTensor<Self> {
        precision.only_f32();
        let [o] = bias.shape().dims();
        let bias = Self::float_reshape(bias, Shape::new([1, o]));
        Self::float_add(Self::float_matmul(x, weight), bias)
    }

    /// [`linear_map`](Self::linear_map), and the values that its gradients need.
    fn linear_kept(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        precision: Precision,
    ) -> (FloatTensor<Self>, LinearState<Self>) {
        let y = Self::linear_map(x.clone(), weight.clone(), bias, precision);
        (y, LinearState::Values(x, weight))
    }

    /// `g Wᵀ`, `xᵀ g` and `Σ_rows g`, each only if it is wanted.
    fn linear_gradients(
        kept: LinearState<Self>,
        grad: FloatTensor<Self>,
        [to_x, to_weight, to_bias]: [bool; 3],
    ) -> [Option<FloatTensor<Self>>; 3] {
        let (x, weight) = match kept {
            LinearState::Values(x, weight) => (x, weight),
            #[cfg(feature = "flex")]
            LinearState::Rounded(_) => unreachable!("only the CPU backend keeps rounded operands"),
        };
        let [_, o] = grad.shape().dims();
        let transposed = Self::float_transpose;
        let bias = || Self::float_reshape(Self::float_sum_dim(grad.clone(), 0), Shape::new([o]));
        let bias = to_bias.then(bias);
        let d_weight = to_weight.then(|| Self::float_matmul(transposed(x), grad.clone()));
        [to_x.then(|| Self::float_matmul(grad, transposed(weight))), d_weight, bias]
    }
}

super::composed_elsewhere!(LinearMap);

#[cfg(feature = "flex")]
mod flex {
    use std::sync::Arc;

    use burn::backend::Flex;
    use burn::backend::TensorMetadata;
    use burn::backend::flex::FlexTensor;

    use super::{LinearMap, LinearState};
    use crate::linear::{self, RoundedOperands};
    use crate::ops::flex::{tensor, values};
    use crate::precision::Precision;

    impl LinearMap for Flex {
        fn linear_map(
            x: FlexTensor,
            weight: FlexTensor,
            bias: FlexTensor,
            precision: Precision,
        ) -> FlexTensor {
            let ([n, _], [o]) = (x.shape().dims(), bias.shape().dims());
            let y = values([&x, &weight, &bias], |[x, w, b]| match precision.here() {
                Precision::F32 => linear::forward(x, w, b),
                Precision::Bf16 => linear::forward_bf16(x, w, b),
            });
            tensor(y, [n, o])
        }

        fn linear_kept(
            x: FlexTensor,
            weight: FlexTensor,
            bias: FlexTensor,
            precision: Precision,
        ) -> (FlexTensor, LinearState<Flex>) {
            if precision.here() == Precision::F32 {
                let y = Self::linear_map(x.clone(), weight.clone(), bias, precision);
                return (y, LinearState::Values(x, weight));
            }
            let ([n, _], [o]) = (x.shape().dims(), bias.shape().dims());
            let (y, kept) =
                values([&x, &weight, &bias], |[x, w, b]| RoundedOperands::forward(x, w, b));
            (tensor(y, [n, o]), LinearState::Rounded(Arc::new(kept)))
        }

        fn linear_gradients(
            kept: LinearState<Flex>,
            grad: FlexTensor,
            [to_x, to_weight, to_bias]: [bool; 3],
        ) -> [Option<FlexTensor>; 3] {
            let [n, o] = grad.shape().dims();
            values([&grad], |[g]| {
                let bias = to_bias.then(|| tensor(linear::bias_gradient(g, o), [o]));
                match kept {
                    LinearState::Values(x, weight) => {
                        let [i, _] = weight.shape().dims();
                        let [d_x, d_weight] = values([&x, &weight], |[x, w]| {
                            [
                                to_x.then(|| linear::input_gradient(g, w, o)),
                                to_weight.then(|| linear::weight_gradient(x, g, o)),
                            ]
                        });
                        [d_x.map(|d| tensor(d, [n, i])), d_weight.map(|d| tensor(d, [i, o])), bias]
                    }
                    LinearState::Rounded(kept) => {
                        let i = kept.inputs();
                        let [d_x, d_weight] = kept.gradients(g, [to_x, to_weight]);
                        [d_x.map(|d| tensor(d, [n, i])), d_weight.map(|d| tensor(d, [i, o])), bias]
                    }
                }
            })
        }
    }
}

impl<B: LinearMap, C: CheckpointStrategy> LinearMap for Autodiff<B, C> {
    fn linear_map(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        precision: Precision,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let primitives = (x.into_primitive(), weight.into_primitive(), bias.into_primitive());
        let (y, kept) = B::linear_kept(primitives.0, primitives.1, primitives.2, precision);
        node::of::<B, C, _, 3>(nodes, y, kept, B::linear_gradients)
    }
}

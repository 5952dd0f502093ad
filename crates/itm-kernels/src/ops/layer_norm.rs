//! Layer normalisation of rows as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata};
use burn::tensor::{Shape, Slice};

#[cfg(feature = "flex")]
use super::flex::{Flex, FlexTensor, in_place, tensor, values};
use super::node;
use crate::layer_norm::{self, Norm, SAVED};

super::operations! {
    /// Layer normalisation of `[n, d]`; see [`crate::layer_norm`].
    ///
    /// The forward pass also returns the statistics of the rows. Only the backend's backward pass knows their layout.
    pub(crate) trait LayerNormOps: Backend {
        /// y and the statistics.
        fn fused_layer_norm(
            x: FloatTensor<Self>,
            gamma: FloatTensor<Self>,
            beta: FloatTensor<Self>,
            epsilon: f64,
        ) -> (FloatTensor<Self>, FloatTensor<Self>) {
            composed::<Self>(x, gamma, beta, epsilon)
        }

        /// The gradients of x, γ and β from the gradient of y.
        fn fused_layer_norm_backward(
            x: FloatTensor<Self>,
            gamma: FloatTensor<Self>,
            saved: FloatTensor<Self>,
            grad: FloatTensor<Self>,
        ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
            composed_backward::<Self>(x, gamma, saved, grad)
        }
    }
}

/// `[d]` to `[1, d]`.
fn row<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let [d] = x.shape().dims();
    B::float_reshape(x, Shape::new([1, d]))
}

/// y and `[n, 2]`: μ and 1 / √(σ² + ε).
pub(crate) fn composed<B: Backend>(
    x: FloatTensor<B>,
    gamma: FloatTensor<B>,
    beta: FloatTensor<B>,
    epsilon: f64,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let mean = B::float_mean_dim(x.clone(), 1);
    let centred = B::float_sub(x, mean.clone());
    let variance = B::float_mean_dim(B::float_mul(centred.clone(), centred.clone()), 1);
    let scale = B::float_recip(B::float_sqrt(B::float_add_scalar(variance, epsilon.into())));
    let unit = B::float_mul(centred, scale.clone());
    let y = B::float_add(B::float_mul(unit, row::<B>(gamma)), row::<B>(beta));
    (y, B::float_cat(vec![mean, scale], 1))
}

pub(crate) fn composed_backward<B: Backend>(
    x: FloatTensor<B>,
    gamma: FloatTensor<B>,
    saved: FloatTensor<B>,
    grad: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let [n, d] = x.shape().dims();
    let column = |k| B::float_slice(saved.clone(), &[Slice::from(0..n), Slice::from(k..k + 1)]);
    let (mean, scale) = (column(0), column(1));
    let unit = B::float_mul(B::float_sub(x, mean), scale.clone());
    let over_rows = |x| B::float_reshape(B::float_sum_dim(x, 0), Shape::new([d]));
    let d_gamma = over_rows(B::float_mul(grad.clone(), unit.clone()));
    let d_beta = over_rows(grad.clone());
    let scaled = B::float_mul(grad, row::<B>(gamma));
    let along = B::float_mean_dim(B::float_mul(scaled.clone(), unit.clone()), 1);
    let centred = B::float_sub(scaled.clone(), B::float_mean_dim(scaled, 1));
    let d_x = B::float_mul(B::float_sub(centred, B::float_mul(unit, along)), scale);
    (d_x, d_gamma, d_beta)
}

#[cfg(feature = "flex")]
impl LayerNormOps for Flex {
    fn fused_layer_norm(
        x: FlexTensor,
        gamma: FlexTensor,
        beta: FlexTensor,
        epsilon: f64,
    ) -> (FlexTensor, FlexTensor) {
        let [n, d] = x.shape().dims();
        let (y, saved) = values([&x, &gamma, &beta], |[x, gamma, beta]| {
            layer_norm::forward(x, Norm { gamma, beta, epsilon: epsilon as f32 })
        });
        (tensor(y, [n, d]), tensor(saved, [n, SAVED]))
    }

    fn fused_layer_norm_backward(
        x: FlexTensor,
        gamma: FlexTensor,
        saved: FlexTensor,
        grad: FlexTensor,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        let [d] = gamma.shape().dims();
        let (d_x, (d_gamma, d_beta)) = values([&x, &gamma, &saved], |[x, gamma, saved]| {
            in_place(grad, |grad| layer_norm::backward(x, gamma, saved, grad))
        });
        (d_x, tensor(d_gamma, [d]), tensor(d_beta, [d]))
    }
}

impl<B: LayerNormOps, C: CheckpointStrategy> LayerNormOps for Autodiff<B, C> {
    fn fused_layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f64,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let nodes = [x.node(), gamma.node(), beta.node()];
        let [x, gamma, beta] = [x, gamma, beta].map(|t| t.into_primitive());
        let (y, saved) = B::fused_layer_norm(x.clone(), gamma.clone(), beta, epsilon);
        let constant = FloatTensor::<Self>::new(saved.clone());
        let forward = |_| (y, Some((x, gamma, saved)));
        let y = node::of::<B, C, _, 3>(nodes, forward, |(x, gamma, saved), grad, _| {
            let (x, gamma, beta) = B::fused_layer_norm_backward(x, gamma, saved, grad);
            [x, gamma, beta].map(Some)
        });
        (y, constant)
    }
}

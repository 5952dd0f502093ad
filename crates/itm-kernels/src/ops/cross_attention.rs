//! Words against regions as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, AutodiffBackend, Backend, backend_extension};

use super::node;
use crate::composed;
use crate::cross_attention::CrossSpec;

/// Scores of all pairs from products and Gram matrices; equations in [`crate::cross_attention`].
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
pub(crate) trait CrossAttentionOps: Backend {
    /// `[words, n · r]`, `[n, r, r]` and `[m, l, l]` to `[n, m]`.
    fn cross_scores(
        products: FloatTensor<Self>,
        region_grams: FloatTensor<Self>,
        word_grams: FloatTensor<Self>,
        spec: CrossSpec,
    ) -> FloatTensor<Self> {
        composed::cross_attention::forward::<Self>(products, region_grams, word_grams, &spec)
    }

    /// Gradients of the three.
    fn cross_scores_backward(
        products: FloatTensor<Self>,
        region_grams: FloatTensor<Self>,
        word_grams: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        spec: CrossSpec,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let operands = [products, region_grams, word_grams];
        differentiated::<Autodiff<Self>>(operands, grad, &spec).into()
    }
}

/// Burn's own differentiation of the composed body.
fn differentiated<A: AutodiffBackend>(
    operands: [FloatTensor<A::InnerBackend>; 3],
    grad: FloatTensor<A::InnerBackend>,
    spec: &CrossSpec,
) -> [FloatTensor<A::InnerBackend>; 3] {
    let leaf = |x| A::float_set_require_grad(A::from_inner(x), true);
    let [s, g, h] = operands.map(leaf);
    let scores = composed::cross_attention::forward::<A>(s.clone(), g.clone(), h.clone(), spec);
    let grads = A::backward(A::float_sum(A::float_mul(scores, A::from_inner(grad))));
    let of = |x: FloatTensor<A>| {
        // The Gram matrices that a rule does not look at have no gradient.
        A::grad(&x, &grads).unwrap_or_else(|| A::inner(A::float_mul_scalar(x, 0.0f32.into())))
    };
    [s, g, h].map(of)
}

#[cfg(feature = "tch")]
#[allow(deprecated)] // upstream deprecates the backend, which stays the way to CUDA
impl CrossAttentionOps for burn::backend::LibTorch {}

#[cfg(feature = "cube")]
impl CrossAttentionOps for burn::backend::Cube {}

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::flex::FlexTensor;
    use burn::backend::{Flex, TensorMetadata};

    use super::{CrossAttentionOps, CrossSpec};
    use crate::cross_attention::{self, Inputs};
    use crate::ops::flex::{tensor, values};

    fn inputs<'a>(
        [products, region_grams, word_grams]: [&'a [f32]; 3],
        spec: &'a CrossSpec,
    ) -> Inputs<'a> {
        let (regions, words) = (&spec.regions, &spec.words);
        Inputs { products, region_grams, word_grams, regions, words }
    }

    impl CrossAttentionOps for Flex {
        fn cross_scores(
            s: FlexTensor,
            g: FlexTensor,
            h: FlexTensor,
            spec: CrossSpec,
        ) -> FlexTensor {
            let shape = [spec.regions.len(), spec.words.len()];
            let scores = values([&s, &g, &h], |tensors| {
                cross_attention::forward(&inputs(tensors, &spec), &spec.rule, &spec.thresholds)
            });
            tensor(scores, shape)
        }

        fn cross_scores_backward(
            s: FlexTensor,
            g: FlexTensor,
            h: FlexTensor,
            grad: FlexTensor,
            spec: CrossSpec,
        ) -> (FlexTensor, FlexTensor, FlexTensor) {
            let shapes = [s.shape(), g.shape(), h.shape()];
            let gradients = values([&s, &g, &h, &grad], |[s, g, h, grad]| {
                let inputs = inputs([s, g, h], &spec);
                cross_attention::backward(&inputs, &spec.rule, &spec.thresholds, grad)
            });
            let [s, g, h] = gradients;
            let [of_s, of_g, of_h] = shapes;
            (tensor(s, of_s), tensor(g, of_g), tensor(h, of_h))
        }
    }
}

impl<B: CrossAttentionOps, C: CheckpointStrategy> CrossAttentionOps for Autodiff<B, C> {
    fn cross_scores(
        s: FloatTensor<Self>,
        g: FloatTensor<Self>,
        h: FloatTensor<Self>,
        spec: CrossSpec,
    ) -> FloatTensor<Self> {
        let nodes = [s.node(), g.node(), h.node()];
        let [s, g, h] = [s, g, h].map(|x| x.into_primitive());
        let scores = B::cross_scores(s.clone(), g.clone(), h.clone(), spec.clone());
        node::of::<B, C, _, 3>(nodes, scores, (s, g, h, spec), |(s, g, h, spec), grad, _| {
            let (s, g, h) = B::cross_scores_backward(s, g, h, grad, spec);
            [Some(s), Some(g), Some(h)]
        })
    }
}

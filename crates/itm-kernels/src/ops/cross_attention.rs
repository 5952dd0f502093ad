//! Attention between words and regions as a burn backend extension.

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
    /// Scores `[n, m]` of regions `[n, r, d]` and words `[words, d]`, from their products `[words, n · r]` and Gram
    /// matrices `[n, r, r]` and `[m, l, l]`. Only regions and words have a gradient.
    fn cross_scores(
        _regions: FloatTensor<Self>,
        _words: FloatTensor<Self>,
        products: FloatTensor<Self>,
        region_grams: FloatTensor<Self>,
        word_grams: FloatTensor<Self>,
        spec: CrossSpec,
    ) -> FloatTensor<Self> {
        composed::cross_attention::forward::<Self>(products, region_grams, word_grams, &spec)
    }

    /// Gradients of regions and words.
    fn cross_scores_backward(
        regions: FloatTensor<Self>,
        words: FloatTensor<Self>,
        _products: FloatTensor<Self>,
        _region_grams: FloatTensor<Self>,
        _word_grams: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        spec: CrossSpec,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        differentiated::<Autodiff<Self>>(regions, words, grad, &spec)
    }
}

/// Gradients by burn's differentiation of the composed operation.
fn differentiated<A: AutodiffBackend>(
    regions: FloatTensor<A::InnerBackend>,
    words: FloatTensor<A::InnerBackend>,
    grad: FloatTensor<A::InnerBackend>,
    spec: &CrossSpec,
) -> (FloatTensor<A::InnerBackend>, FloatTensor<A::InnerBackend>) {
    let leaf = |x| A::float_set_require_grad(A::from_inner(x), true);
    let (regions, words) = (leaf(regions), leaf(words));
    let [s, g, h] = composed::cross_attention::products::<A>(
        regions.clone(),
        words.clone(),
        &spec.words,
        A::float_matmul,
    );
    let scores = composed::cross_attention::forward::<A>(s, g, h, spec);
    let grads = A::backward(A::float_sum(A::float_mul(scores, A::from_inner(grad))));
    let of = |x: &FloatTensor<A>| A::grad(x, &grads).expect("scores are made of both sides");
    (of(&regions), of(&words))
}

super::composed_elsewhere!(CrossAttentionOps);

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::flex::FlexTensor;
    use burn::backend::{Flex, TensorMetadata};

    use super::{CrossAttentionOps, CrossSpec};
    use crate::cross_attention::{self, Inputs, Operands};
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
            _: FlexTensor,
            _: FlexTensor,
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
            regions: FlexTensor,
            words: FlexTensor,
            s: FlexTensor,
            g: FlexTensor,
            h: FlexTensor,
            grad: FlexTensor,
            spec: CrossSpec,
        ) -> (FlexTensor, FlexTensor) {
            let shapes = [regions.shape(), words.shape()];
            let all = [&regions, &words, &s, &g, &h, &grad];
            let gradients = values(all, |[regions, words, s, g, h, grad]| {
                let (inputs, rows) = (inputs([s, g, h], &spec), Operands { regions, words });
                cross_attention::backward(&inputs, &rows, &spec.rule, &spec.thresholds, grad)
            });
            let ([of_regions, of_words], [a, b]) = (gradients, shapes);
            (tensor(of_regions, a), tensor(of_words, b))
        }
    }
}

impl<B: CrossAttentionOps, C: CheckpointStrategy> CrossAttentionOps for Autodiff<B, C> {
    fn cross_scores(
        regions: FloatTensor<Self>,
        words: FloatTensor<Self>,
        s: FloatTensor<Self>,
        g: FloatTensor<Self>,
        h: FloatTensor<Self>,
        spec: CrossSpec,
    ) -> FloatTensor<Self> {
        let nodes = [regions.node(), words.node()];
        let [v, u, s, g, h] = [regions, words, s, g, h].map(|x| x.into_primitive());
        let scores =
            B::cross_scores(v.clone(), u.clone(), s.clone(), g.clone(), h.clone(), spec.clone());
        node::of::<B, C, _, 2>(nodes, scores, (v, u, s, g, h, spec), |kept, grad, _| {
            let (v, u, s, g, h, spec) = kept;
            let (v, u) = B::cross_scores_backward(v, u, s, g, h, grad, spec);
            [Some(v), Some(u)]
        })
    }
}

//! Attention between words and regions as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, AutodiffBackend, Backend, ExtensionType, TensorMetadata};

#[cfg(feature = "flex")]
use super::flex::{Flex, FlexTensor, tensor, values};
use super::node;
use crate::composed;
use crate::cross_attention::{self, CrossSpec, Inputs};

/// Regions and words, and the products that scores are computed from.
#[derive(Debug, Clone, ExtensionType)]
pub(crate) struct CrossTensors<B: Backend> {
    /// `[n, r, d]`
    pub(crate) regions: FloatTensor<B>,
    /// `[words, d]`
    pub(crate) words: FloatTensor<B>,
    /// `[words, n · r]`
    pub(crate) products: FloatTensor<B>,
    /// `[n, r, r]`
    pub(crate) region_grams: FloatTensor<B>,
    /// `[m, l, l]`
    pub(crate) word_grams: FloatTensor<B>,
}

super::operations! {
    /// Scores of all pairs from products and Gram matrices; equations in [`crate::cross_attention`].
    pub(crate) trait CrossAttentionOps: Backend {
        /// Scores `[n, m]` from products and Gram matrices. Only regions and words have a gradient.
        fn cross_scores(
            #[extension_type] of: CrossTensors<Self>,
            spec: CrossSpec,
        ) -> FloatTensor<Self> {
            let CrossTensors { products, region_grams, word_grams, .. } = of;
            composed::cross_attention::forward::<Self>(products, region_grams, word_grams, &spec)
        }

        /// Gradients of regions and words.
        fn cross_scores_backward(
            #[extension_type] of: CrossTensors<Self>,
            grad: FloatTensor<Self>,
            spec: CrossSpec,
        ) -> (FloatTensor<Self>, FloatTensor<Self>) {
            differentiated::<Autodiff<Self>>(of.regions, of.words, grad, &spec)
        }
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

#[cfg(feature = "flex")]
impl CrossAttentionOps for Flex {
    fn cross_scores(of: CrossTensors<Flex>, spec: CrossSpec) -> FlexTensor {
        let CrossSpec { rule, regions, words, thresholds } = &spec;
        let all = [&of.products, &of.region_grams, &of.word_grams];
        let scores = values(all, |[products, region_grams, word_grams]| {
            let inputs = Inputs { products, region_grams, word_grams, regions, words };
            cross_attention::forward(&inputs, rule, thresholds)
        });
        tensor(scores, [regions.len(), words.len()])
    }

    fn cross_scores_backward(
        of: CrossTensors<Flex>,
        grad: FlexTensor,
        spec: CrossSpec,
    ) -> (FlexTensor, FlexTensor) {
        let CrossSpec { rule, regions, words, thresholds } = &spec;
        let all = [&of.regions, &of.words, &of.products, &of.region_grams, &of.word_grams, &grad];
        let gradients = values(all, |[v, u, products, region_grams, word_grams, grad]| {
            let inputs = Inputs { products, region_grams, word_grams, regions, words };
            cross_attention::backward(&inputs, [v, u], rule, thresholds, grad)
        });
        let [of_regions, of_words] = gradients;
        (tensor(of_regions, of.regions.shape()), tensor(of_words, of.words.shape()))
    }
}

impl<B: CrossAttentionOps, C: CheckpointStrategy> CrossAttentionOps for Autodiff<B, C> {
    fn cross_scores(of: CrossTensors<Self>, spec: CrossSpec) -> FloatTensor<Self> {
        let CrossTensors { regions, words, products, region_grams, word_grams } = of;
        let nodes = [regions.node(), words.node()];
        let [regions, words, products, region_grams, word_grams] =
            [regions, words, products, region_grams, word_grams].map(|x| x.into_primitive());
        let of = CrossTensors { regions, words, products, region_grams, word_grams };
        let forward = |_| (B::cross_scores(of.clone(), spec.clone()), Some((of, spec)));
        node::of::<B, C, _, 2>(nodes, forward, |(of, spec), grad, _| {
            let (regions, words) = B::cross_scores_backward(of, grad, spec);
            [Some(regions), Some(words)]
        })
    }
}

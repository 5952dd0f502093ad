//! Self-attention, and softmax alone, as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata};

#[cfg(feature = "flex")]
use super::flex::{Flex, FlexTensor, in_place, tensor, values};
use super::node;
use crate::attention::{self, Heads};
use crate::{composed, softmax};

super::operations! {
    /// Self-attention from packed queries, keys and values, with equations in [`crate::attention`], and softmax
    /// alone: [`crate::softmax`].
    pub(crate) trait AttentionOps: Backend {
        /// `[b, l, 3d]` to `[b, l, d]`.
        fn self_attention(qkv: FloatTensor<Self>, heads: Heads) -> FloatTensor<Self> {
            composed::attention::forward::<Self>(qkv, &heads)
        }

        /// Gradient of `qkv`.
        fn self_attention_backward(
            qkv: FloatTensor<Self>,
            grad: FloatTensor<Self>,
            heads: Heads,
        ) -> FloatTensor<Self> {
            composed::attention::backward::<Self>(qkv, grad, &heads)
        }

        /// Softmax over the columns of `[n, w]`; see [`crate::softmax`] for the counts. Autodiff records the
        /// operations of this composed body.
        fn masked_softmax(x: FloatTensor<Self>, counts: Vec<usize>) -> FloatTensor<Self> {
            composed::attention::masked_softmax::<Self>(x, &counts)
        }
    }
}

#[cfg(feature = "flex")]
impl AttentionOps for Flex {
    fn self_attention(qkv: FlexTensor, heads: Heads) -> FlexTensor {
        let [b, l, d3] = qkv.shape().dims();
        let y = values([&qkv], |[qkv]| attention::forward(qkv, d3 / 3, &heads));
        tensor(y, [b, l, d3 / 3])
    }

    fn self_attention_backward(qkv: FlexTensor, grad: FlexTensor, heads: Heads) -> FlexTensor {
        let [b, l, d3] = qkv.shape().dims();
        let d = values([&qkv, &grad], |[qkv, grad]| attention::backward(qkv, d3 / 3, grad, &heads));
        tensor(d, [b, l, d3])
    }

    fn masked_softmax(x: FlexTensor, counts: Vec<usize>) -> FlexTensor {
        let [_, w] = x.shape().dims();
        in_place(x, |x| softmax::forward(x, w, &counts)).0
    }
}

impl<B: AttentionOps, C: CheckpointStrategy> AttentionOps for Autodiff<B, C> {
    fn self_attention(qkv: FloatTensor<Self>, heads: Heads) -> FloatTensor<Self> {
        let node = qkv.node();
        let qkv = qkv.into_primitive();
        let y = B::self_attention(qkv.clone(), heads.clone());
        node::of_one::<B, C, _>(node, y, (qkv, heads), |(qkv, heads), grad| {
            B::self_attention_backward(qkv, grad, heads)
        })
    }
}

//! Self-attention as a burn backend extension.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, backend_extension};

use super::node;
use crate::attention::Heads;
use crate::composed;

/// Self-attention from packed queries, keys and values; equations in [`crate::attention`].
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
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
}

super::composed_elsewhere!(AttentionOps);

#[cfg(feature = "flex")]
mod flex {
    use burn::backend::Flex;
    use burn::backend::TensorMetadata;
    use burn::backend::flex::FlexTensor;

    use super::AttentionOps;
    use crate::attention::{self, Heads};
    use crate::ops::flex::{tensor, values};

    impl AttentionOps for Flex {
        fn self_attention(qkv: FlexTensor, heads: Heads) -> FlexTensor {
            let [b, l, d3] = qkv.shape().dims();
            let y = values([&qkv], |[qkv]| attention::forward(qkv, d3 / 3, &heads));
            tensor(y, [b, l, d3 / 3])
        }

        fn self_attention_backward(qkv: FlexTensor, grad: FlexTensor, heads: Heads) -> FlexTensor {
            let [b, l, d3] = qkv.shape().dims();
            let d =
                values([&qkv, &grad], |[qkv, grad]| attention::backward(qkv, d3 / 3, grad, &heads));
            tensor(d, [b, l, d3])
        }
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

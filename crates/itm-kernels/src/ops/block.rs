//! A transformer block as a burn backend extension. It keeps its activations, or recomputes them for the gradient.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, AutodiffBackend, TensorMetadata};
use burn::tensor::Shape;
use serde::{Deserialize, Serialize};

use super::tensors::{Tensors, operands, split};
use super::{AttentionOps, ElementwiseOps, LayerNormOps, LinearOps, node};
use crate::Activation;
use crate::attention::Heads;
use crate::dropout::Mask;
use crate::precision::Precision;

/// Where a block normalises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormOrder {
    /// Before each function, `x + f(norm(x))`: ViT.
    Pre,
    /// After each sum, `norm(x + f(x))`: BERT.
    Post,
}

/// What a block keeps of its forward pass for the gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// All activations: 16 d numbers per position, if m = 4 d.
    #[default]
    Keep,
    /// Only its input, d numbers per position; the rest is recomputed, for about a third more time. This is gradient
    /// checkpointing: the gradients are the same, also with dropout.
    Recompute,
}

/// The settings of a block.
#[derive(Debug, Clone)]
pub(crate) struct BlockSpec {
    pub(crate) heads: Heads,
    pub(crate) activation: Activation,
    pub(crate) order: NormOrder,
    pub(crate) memory: Memory,
    /// Precision of the four linear maps: packed, output, up, down.
    pub(crate) precision: [Precision; 4],
    /// ε of the two norms.
    pub(crate) epsilon: [f64; 2],
    /// Dropout of the output of attention and of the output of the MLP.
    pub(crate) masks: [Option<Mask>; 2],
}

/// Number of a block's parameters.
const PARAMETERS: usize = 12;

super::operations! {
    /// A transformer block; equations in [`crate::TransformerBlock`].
    pub(crate) trait BlockOps: LinearOps + AttentionOps + ElementwiseOps + LayerNormOps {
        /// `[b, l, d]` to `[b, l, d]`. The twelve parameters are the first norm, the linear maps packed and output,
        /// the second norm, the maps up and down: each weight before its bias, γ before β.
        fn transformer_block(
            x: FloatTensor<Self>,
            #[extension_type] parameters: Tensors<Self>,
            spec: BlockSpec,
        ) -> FloatTensor<Self> {
            block::<Self>(x, parameters, &spec)
        }
    }
}

/// The block in a backend's operations; autodiff records each of them.
fn block<B: BlockOps>(
    x: FloatTensor<B>,
    parameters: Tensors<B>,
    spec: &BlockSpec,
) -> FloatTensor<B> {
    let [b, l, d] = x.shape().dims();
    let parameters: [_; PARAMETERS] = parameters.0.try_into().expect("the parameters of a block");
    let [gamma_1, beta_1, qkv_w, qkv_b, out_w, out_b, gamma_2, beta_2, up_w, up_b, down_w, down_b] =
        parameters;
    let [epsilon_1, epsilon_2] = spec.epsilon;
    let [of_qkv, of_out, of_up, of_down] = spec.precision;
    let attend = |x: FloatTensor<B>| {
        let qkv = B::linear_rows(x, qkv_w, qkv_b, of_qkv);
        let mixed =
            B::self_attention(B::float_reshape(qkv, Shape::new([b, l, 3 * d])), spec.heads.clone());
        B::linear_rows(B::float_reshape(mixed, Shape::new([b * l, d])), out_w, out_b, of_out)
    };
    let mlp = |x: FloatTensor<B>| {
        let up = B::linear_rows(x, up_w, up_b, of_up);
        B::linear_rows(B::fused_activation(up, spec.activation), down_w, down_b, of_down)
    };
    let x = B::float_reshape(x, Shape::new([b * l, d]));
    let [mask_1, mask_2] = spec.masks;
    let y = match spec.order {
        NormOrder::Pre => {
            let unit = B::fused_layer_norm(x.clone(), gamma_1, beta_1, epsilon_1).0;
            let x = B::fused_sum(attend(unit), x, mask_1);
            let unit = B::fused_layer_norm(x.clone(), gamma_2, beta_2, epsilon_2).0;
            B::fused_sum(mlp(unit), x, mask_2)
        }
        NormOrder::Post => {
            let x = B::fused_sum(attend(x.clone()), x, mask_1);
            let x = B::fused_layer_norm(x, gamma_1, beta_1, epsilon_1).0;
            let x = B::fused_sum(mlp(x.clone()), x, mask_2);
            B::fused_layer_norm(x, gamma_2, beta_2, epsilon_2).0
        }
    };
    B::float_reshape(y, Shape::new([b, l, d]))
}

#[cfg(feature = "flex")]
impl BlockOps for burn::backend::Flex {}

impl<B: BlockOps, C: CheckpointStrategy> BlockOps for Autodiff<B, C> {
    /// A block that keeps only its input runs again for its gradient, in a separate graph. For the gradient g of y, the
    /// gradients of the operands are the gradients of Σ g ⊙ y.
    fn transformer_block(
        x: FloatTensor<Self>,
        parameters: Tensors<Self>,
        spec: BlockSpec,
    ) -> FloatTensor<Self> {
        type Again<B> = Autodiff<B>;
        if spec.memory == Memory::Keep {
            return block::<Self>(x, parameters, &spec);
        }
        let (nodes, operands) = operands(x, parameters);
        let (x, parameters) = split(operands.clone());
        let y = block::<B>(x, parameters, &spec);
        let forward = |_| (y, Some((operands, spec)));
        node::of::<B, C, _, { PARAMETERS + 1 }>(nodes, forward, |(operands, spec), grad, wanted| {
            let leaves = operands.into_iter().zip(wanted).map(|(x, wanted)| {
                let x = Again::<B>::from_inner(x);
                if wanted { x.require_grad() } else { x }
            });
            let leaves: Vec<_> = leaves.collect();
            let (x, parameters) = split(leaves.clone());
            let y = block::<Again<B>>(x, parameters, &spec);
            let sum = Again::<B>::float_sum(Again::<B>::float_mul(y, Again::<B>::from_inner(grad)));
            let mut again = sum.backward();
            let mut of = |k: usize| leaves[k].grad_remove(&mut again).expect("a wanted gradient");
            std::array::from_fn(|k| wanted[k].then(|| of(k)))
        })
    }
}

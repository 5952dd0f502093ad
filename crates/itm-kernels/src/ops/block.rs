//! A transformer block as a burn backend extension. It keeps its activations, or recomputes them for the gradient.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, AutodiffBackend, Backend, TensorMetadata, backend_extension};
use burn::tensor::Shape;
use serde::{Deserialize, Serialize};

use super::linear::{LinearMap, LinearOps};
use super::{ActivationOps, AttentionOps, DropoutOps, LayerNormOps};
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
pub(crate) const PARAMETERS: usize = 12;

/// A transformer block; equations in [`crate::TransformerBlock`].
#[backend_extension(
    Flex: cfg(feature = "flex"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff
)]
#[allow(clippy::too_many_arguments)] // the macro needs every tensor spelt out
pub(crate) trait BlockOps: Backend {
    /// `[b, l, d]` to `[b, l, d]`. The parameters are two norms and the linear maps packed, output, up and down; each
    /// weight comes before its bias.
    fn transformer_block(
        x: FloatTensor<Self>,
        gamma_1: FloatTensor<Self>,
        beta_1: FloatTensor<Self>,
        qkv_weight: FloatTensor<Self>,
        qkv_bias: FloatTensor<Self>,
        out_weight: FloatTensor<Self>,
        out_bias: FloatTensor<Self>,
        gamma_2: FloatTensor<Self>,
        beta_2: FloatTensor<Self>,
        up_weight: FloatTensor<Self>,
        up_bias: FloatTensor<Self>,
        down_weight: FloatTensor<Self>,
        down_bias: FloatTensor<Self>,
        spec: BlockSpec,
    ) -> FloatTensor<Self>;
}

impl<B: Block> BlockOps for B {
    #[rustfmt::skip]
    fn transformer_block(
        x: FloatTensor<Self>,
        gamma_1: FloatTensor<Self>,
        beta_1: FloatTensor<Self>,
        qkv_weight: FloatTensor<Self>,
        qkv_bias: FloatTensor<Self>,
        out_weight: FloatTensor<Self>,
        out_bias: FloatTensor<Self>,
        gamma_2: FloatTensor<Self>,
        beta_2: FloatTensor<Self>,
        up_weight: FloatTensor<Self>,
        up_bias: FloatTensor<Self>,
        down_weight: FloatTensor<Self>,
        down_bias: FloatTensor<Self>,
        spec: BlockSpec,
    ) -> FloatTensor<Self> {
        let parameters = [
            gamma_1, beta_1, qkv_weight, qkv_bias, out_weight, out_bias,
            gamma_2, beta_2, up_weight, up_bias, down_weight, down_bias,
        ];
        B::block(x, parameters, spec)
    }
}

/// The block with its parameters in one array.
pub(crate) trait Block:
    LinearMap + AttentionOps + ActivationOps + LayerNormOps + DropoutOps
{
    /// The block in the backend's operations.
    fn block(
        x: FloatTensor<Self>,
        parameters: [FloatTensor<Self>; PARAMETERS],
        spec: BlockSpec,
    ) -> FloatTensor<Self> {
        block::<Self>(x, parameters, &spec)
    }
}

/// The block in a backend's operations; autodiff records each of them.
fn block<B: Block>(
    x: FloatTensor<B>,
    parameters: [FloatTensor<B>; PARAMETERS],
    spec: &BlockSpec,
) -> FloatTensor<B> {
    let [b, l, d] = x.shape().dims();
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
            let x = add::<B>(attend(unit), x, mask_1);
            let unit = B::fused_layer_norm(x.clone(), gamma_2, beta_2, epsilon_2).0;
            add::<B>(mlp(unit), x, mask_2)
        }
        NormOrder::Post => {
            let x = norm_of_sum::<B>(attend(x.clone()), x, mask_1, [gamma_1, beta_1], epsilon_1);
            norm_of_sum::<B>(mlp(x.clone()), x, mask_2, [gamma_2, beta_2], epsilon_2)
        }
    };
    B::float_reshape(y, Shape::new([b, l, d]))
}

/// `x + dropout(f)`.
fn add<B: Block>(f: FloatTensor<B>, x: FloatTensor<B>, mask: Option<Mask>) -> FloatTensor<B> {
    match mask {
        Some(mask) => B::fused_dropout_sum(f, x, mask),
        None => B::float_add(x, f),
    }
}

/// `N(x + dropout(f))`.
fn norm_of_sum<B: Block>(
    f: FloatTensor<B>,
    x: FloatTensor<B>,
    mask: Option<Mask>,
    [gamma, beta]: [FloatTensor<B>; 2],
    epsilon: f64,
) -> FloatTensor<B> {
    match mask {
        Some(mask) => B::fused_layer_norm(B::fused_dropout_sum(f, x, mask), gamma, beta, epsilon).0,
        None => B::fused_layer_norm_sum(x, f, gamma, beta, epsilon).0,
    }
}

super::composed_elsewhere!(Block);

#[cfg(feature = "flex")]
impl Block for burn::backend::Flex {}

impl<B: Block, C: CheckpointStrategy> Block for Autodiff<B, C> {
    fn block(
        x: FloatTensor<Self>,
        parameters: [FloatTensor<Self>; PARAMETERS],
        spec: BlockSpec,
    ) -> FloatTensor<Self> {
        if spec.memory == Memory::Keep {
            return block::<Self>(x, parameters, &spec);
        }
        let mut nodes = vec![x.node()];
        nodes.extend(parameters.iter().map(|p| p.node()));
        let nodes = nodes.try_into().expect("the input and the parameters");
        let x = x.into_primitive();
        let parameters = parameters.map(|p| p.into_primitive());
        let y = block::<B>(x.clone(), parameters.clone(), &spec);
        match Recomputation.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((x, parameters, spec), y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }
}

/// A block that keeps only its input.
#[derive(Debug)]
struct Recomputation;

impl<B: Block> Backward<B, { PARAMETERS + 1 }> for Recomputation {
    type State = (FloatTensor<B>, [FloatTensor<B>; PARAMETERS], BlockSpec);

    /// Runs and differentiates the block again, in a separate graph. For the gradient g of y, the gradients of the
    /// operands are the gradients of Σ g ⊙ y.
    fn backward(
        self,
        ops: Ops<Self::State, { PARAMETERS + 1 }>,
        grads: &mut Gradients,
        _: &mut Checkpointer,
    ) {
        type Again<B> = Autodiff<B>;
        let grad = grads.consume::<B>(&ops.node);
        let (x, parameters, spec) = ops.state;
        let mut wanted = ops.parents.iter().map(Option::is_some);
        let mut leaf = |x| {
            let x = Again::<B>::from_inner(x);
            if wanted.next() == Some(true) { x.require_grad() } else { x }
        };
        let x = leaf(x);
        let parameters = parameters.map(leaf);
        let y = block::<Again<B>>(x.clone(), parameters.clone(), &spec);
        let sum = Again::<B>::float_sum(Again::<B>::float_mul(y, Again::<B>::from_inner(grad)));
        let mut again = sum.backward();
        for (parent, leaf) in ops.parents.into_iter().zip(std::iter::once(x).chain(parameters)) {
            if let Some(parent) = parent {
                let d = leaf.grad_remove(&mut again).expect("a leaf that asks for its gradient");
                grads.register::<B>(parent.id, d);
            }
        }
    }
}

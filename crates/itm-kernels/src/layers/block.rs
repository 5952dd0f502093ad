//! A transformer's block.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::{Dropout, LayerNorm, Linear, SelfAttention, gelu};
use crate::random::{self, Noise};

/// Where a block normalises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormOrder {
    /// Before each function, `x + f(norm(x))`: ViT.
    Pre,
    /// After each sum, `norm(x + f(x))`: BERT.
    Post,
}

/// Self-attention and two linear maps with a GELU between them, each with a residual.
///
/// ```text
/// Pre:   x ← x + A(N₁ x);   x ← x + F(N₂ x)
/// Post:  x ← N₁(x + A x);   x ← N₂(x + F x)          F x = W_down gelu(W_up x)
/// ```
#[derive(Module, Debug)]
pub struct TransformerBlock {
    /// N₁
    pub norm_1: LayerNorm,
    /// A
    pub attention: SelfAttention,
    /// N₂
    pub norm_2: LayerNorm,
    /// d → m
    pub up: Linear,
    /// m → d
    pub down: Linear,
    /// On the output of A and of F.
    pub dropout: Dropout,
    /// Where the block normalises.
    #[module(skip)]
    pub order: NormOrder,
}

/// Sizes and choices of a [`TransformerBlock`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockShape {
    /// Width d.
    pub width: usize,
    /// Heads h, which divide d.
    pub heads: usize,
    /// Width m between the two linear maps.
    pub mlp: usize,
    /// ε of the layer norms.
    pub epsilon: f64,
    /// Where the block normalises.
    pub order: NormOrder,
    /// Share dropped of A's and F's output.
    pub dropout: f64,
    /// Share dropped of the attention weights.
    pub attention_dropout: f64,
}

impl TransformerBlock {
    /// Weights as [`Linear::seeded`], norms at γ = 1, β = 0.
    ///
    /// # Panics
    /// If the heads do not divide the width, or a dropout is not in `[0, 1)`.
    pub fn seeded(shape: &BlockShape, seed: u64, device: &Device) -> Self {
        let &BlockShape { width, heads, mlp, epsilon, order, dropout, attention_dropout } = shape;
        let seed = |part| random::derive(seed, part);
        Self {
            norm_1: LayerNorm::new(width, epsilon, device),
            attention: SelfAttention::seeded(width, heads, attention_dropout, seed(0), device),
            norm_2: LayerNorm::new(width, epsilon, device),
            up: Linear::seeded(width, mlp, seed(1), device),
            down: Linear::seeded(mlp, width, seed(2), device),
            dropout: Dropout::new(dropout),
            order,
        }
    }

    /// `[b, l, d]` to `[b, l, d]`; `keys` as [`SelfAttention::forward`].
    pub fn forward(&self, x: Tensor<3>, keys: Option<&[usize]>, noise: Noise) -> Tensor<3> {
        let attend = |x| {
            let y = self.attention.forward(x, keys, noise.part(0));
            self.dropout.forward(y, noise.part(1))
        };
        let mlp = |x| {
            let y = self.down.forward(gelu(self.up.forward(x)));
            self.dropout.forward(y, noise.part(2))
        };
        match self.order {
            NormOrder::Pre => {
                let x = x.clone() + attend(self.norm_1.forward(x));
                x.clone() + mlp(self.norm_2.forward(x))
            }
            NormOrder::Post => {
                let x = self.norm_1.forward(x.clone() + attend(x));
                self.norm_2.forward(x.clone() + mlp(x))
            }
        }
    }
}

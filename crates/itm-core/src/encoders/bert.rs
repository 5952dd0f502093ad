//! The BERT encoder.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use itm_kernels::{
    Activation, BlockShape, Dropout, LayerNorm, Noise, NormOrder, Precision, TransformerBlock,
    embedding, random, uniform,
};
use serde::{Deserialize, Serialize};

use super::{TokenBatch, block_values, set_precision, table_values, through};

/// Number of the padding piece, whose row does not learn.
const PADDING: u32 = 0;

/// Sizes and choices of a [`Bert`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BertShape {
    /// Number of word pieces.
    pub vocabulary: usize,
    /// Largest number of word pieces of a caption.
    pub positions: usize,
    /// Number of kinds of text (token types); all captions have kind 0.
    pub kinds: usize,
    /// Width d.
    pub width: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Number of heads, which must divide d.
    pub heads: usize,
    /// Hidden width between the two linear maps of a block.
    pub mlp: usize,
    /// ε of the layer norms.
    pub epsilon: f64,
    /// Dropout probability of the embeddings and of the outputs that each block adds.
    pub dropout: f64,
    /// Dropout probability of the attention weights.
    pub attention_dropout: f64,
}

impl BertShape {
    /// Number of values in maps and tables: nearly all of the model.
    pub(crate) fn values(&self) -> u128 {
        let rows = self.vocabulary.saturating_add(self.positions).saturating_add(self.kinds);
        let blocks = block_values(self.layers, self.width, self.mlp);
        table_values(&[rows, self.width]).saturating_add(blocks)
    }

    /// BERT base uncased: 109 million parameters.
    pub fn base_uncased() -> Self {
        Self {
            vocabulary: 30_522,
            positions: 512,
            kinds: 2,
            width: 768,
            layers: 12,
            heads: 12,
            mlp: 3072,
            epsilon: 1e-12,
            dropout: 0.1,
            attention_dropout: 0.1,
        }
    }
}

/// Encodes captions as one row per word piece.
///
/// ```text
/// x_j = drop(norm(E[id_j] + P[j] + T[0]));   x ← block(x) for each block;   W = x
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | E | `words` | `[vocabulary, d]` |
/// | P | `positions` | `[positions, d]` |
/// | T | `kinds` | `[kinds, d]` |
/// | W | result | `[b, l, d]` |
///
/// No position attends to padding, so the real rows of a caption do not depend on its batch. Padded positions still
/// have rows in the result. As in PyTorch, the row of E for padding gets no gradient. [`PiecePool`](super::PiecePool)
/// turns the rows into one row per caption.
#[derive(Module, Debug)]
pub struct Bert {
    /// `[vocabulary, d]`
    pub words: Param<Tensor<2>>,
    /// `[positions, d]`
    pub positions: Param<Tensor<2>>,
    /// `[kinds, d]`
    pub kinds: Param<Tensor<2>>,
    /// Layer norm of the embeddings.
    pub norm: LayerNorm,
    /// Dropout of the embeddings.
    pub dropout: Dropout,
    /// The blocks, each with its layer norms last.
    pub blocks: Vec<TransformerBlock>,
    /// Sizes.
    #[module(skip)]
    pub shape: BertShape,
}

impl Bert {
    /// Draws embeddings uniformly from ±0.02, and linear maps as [`itm_kernels::Linear::seeded`]. The seed decides all
    /// values.
    ///
    /// # Panics
    /// If the heads do not divide the width, a size is 0, a dropout is not in `[0, 1)`, or memory cannot hold the values.
    pub fn seeded(shape: &BertShape, seed: u64, device: &Device) -> Self {
        let BertShape { vocabulary, positions, kinds, .. } = *shape;
        let some = vocabulary > 0 && positions > 0 && kinds > 0 && shape.values() <= 1 << 40;
        assert!(some, "{vocabulary} pieces, {positions} positions and {kinds} kinds of text");
        let d = shape.width;
        let block = BlockShape {
            width: d,
            heads: shape.heads,
            mlp: shape.mlp,
            epsilon: shape.epsilon,
            activation: Activation::Gelu,
            causal: false,
            order: NormOrder::Post,
            dropout: shape.dropout,
            attention_dropout: shape.attention_dropout,
        };
        let seed = |part| random::derive(seed, part);
        let rows = |n, part| Param::from_tensor(uniform([n, d], 0.02, seed(part), device));
        let block = |i| TransformerBlock::seeded(&block, seed(3 + i as u64), device);
        Self {
            words: rows(shape.vocabulary, 0),
            positions: rows(shape.positions, 1),
            kinds: rows(shape.kinds, 2),
            norm: LayerNorm::new(d, shape.epsilon, device),
            dropout: Dropout::new(shape.dropout),
            blocks: (0..shape.layers).map(block).collect(),
            shape: shape.clone(),
        }
    }

    /// Sets the precision of the products of all blocks; everything else stays f32. bf16 needs the CPU backend:
    /// [`Precision::runs_on`].
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        set_precision(&mut self.blocks, precision);
        self
    }

    /// Encodes word pieces as `[b, l, d]`, not pooled.
    ///
    /// # Panics
    /// As [`embed`](Self::embed).
    pub fn forward(&self, captions: &TokenBatch, noise: Noise) -> Tensor<3> {
        self.encode(self.embed(captions, noise), &captions.lengths, noise)
    }

    /// The input of the first block: `drop(norm(E + P + T[0]))`, `[b, l, d]`.
    ///
    /// # Panics
    /// If the number of a piece is not in the vocabulary, or the captions are wider than the number of positions.
    pub fn embed(&self, captions: &TokenBatch, noise: Noise) -> Tensor<3> {
        let (b, l, d) = (captions.len(), captions.width, self.shape.width);
        captions.check(self.shape.vocabulary);
        let most = self.shape.positions;
        assert!(l <= most, "captions of {l} word pieces for {most} positions");
        let words = embedding(self.words.val(), &captions.ids, Some(PADDING)).reshape([b, l, d]);
        let positions = self.positions.val().narrow(0, 0, l) + self.kinds.val().narrow(0, 0, 1);
        let x = self.norm.forward(words + positions.unsqueeze());
        self.dropout.forward(x, noise.part(0)) // [b, l, d]
    }

    /// Only the blocks, `[b, l, d]` to `[b, l, d]`, for a model that has other inputs than captions.
    ///
    /// `lengths` gives the number of leading positions of each sequence that are attended to. The caller can use the
    /// same noise as for [`embed`](Self::embed): no mask is drawn twice.
    ///
    /// # Panics
    /// If the width or the number of lengths differs, or a length is 0 or more than `l`.
    pub fn encode(&self, x: Tensor<3>, lengths: &[usize], noise: Noise) -> Tensor<3> {
        through(&self.blocks, 0, x, Some(lengths), noise)
    }

    /// The first position of [`encode`](Self::encode) without noise, `[b, d]`. The last block computes only this
    /// position.
    ///
    /// # Panics
    /// As [`encode`](Self::encode).
    pub fn encode_first(&self, x: Tensor<3>, lengths: &[usize]) -> Tensor<2> {
        let ([b, l, d], width) = (x.dims(), self.shape.width);
        assert!(l > 0 && d == width, "input of shape {:?} for a width of {width}", [b, l, d]);
        let Some((last, blocks)) = self.blocks.split_last() else {
            return x.narrow(1, 0, 1).reshape([b, d]);
        };
        last.first(through(blocks, 0, x, Some(lengths), Noise::Off), Some(lengths))
    }
}

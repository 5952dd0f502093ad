//! The text tower.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use itm_kernels::{
    Activation, BlockShape, LayerNorm, Linear, Noise, NormOrder, TransformerBlock, embedding,
    matmul, random, uniform,
};

use super::{DualFamily, DualShape};
use crate::encoders::{TokenBatch, through};
use crate::{Error, Result};

/// Sizes and choices of a [`TextTower`].
#[derive(Debug, Clone, PartialEq)]
pub struct TextTowerShape {
    /// Number of word pieces.
    pub vocabulary: usize,
    /// Largest number of word pieces of a caption: 77 in CLIP, 64 in SigLIP.
    pub positions: usize,
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
    /// The function between the two linear maps of a block.
    pub activation: Activation,
    /// The end piece, whose row is the caption's: CLIP. None: the last of all positions is, padding or not (SigLIP).
    pub end: Option<u32>,
    /// Whether an added word, whose number is above `end`, takes the end piece's place: the row is that of the highest number. So
    /// do open_clip, and `transformers` if `eos_token_id` is 2.
    pub highest: bool,
}

impl TextTowerShape {
    /// Refuses captions that the tower would read wrongly; the error names the caption, from 0.
    pub(crate) fn check(&self, captions: &TokenBatch) -> Result<()> {
        captions.check_sizes();
        let (width, most) = (captions.width, self.positions);
        for (k, (row, &length)) in captions.ids.chunks(width).zip(&captions.lengths).enumerate() {
            let place = format_args!("caption {k} of the batch");
            if let Some(id) = row.iter().find(|&&id| id as usize >= self.vocabulary) {
                let expected =
                    format!("numbers below {}, the size of the vocabulary", self.vocabulary);
                return Err(Error::invalid(place, expected, id));
            }
            Error::unless(width <= most, place, format_args!("at most {most} pieces"), width)?;
            let last = row[length - 1];
            match self.end {
                Some(end) => {
                    let fits = last == end || self.highest && last > end;
                    Error::unless(fits, place, format_args!("the end piece {end} last"), last)?;
                }
                None => {
                    let expected = format_args!("{most} pieces, with padding");
                    Error::unless(length == most, place, expected, length)?;
                }
            }
        }
        Ok(())
    }
}

/// One row per caption from a transformer whose blocks normalise first.
///
/// ```text
/// x_j = E[id_j] + P[j];   x ← block(x) for each block;   u = norm(x)_e W_u + b
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | E | `words` | `[vocabulary, d]` |
/// | P | `positions` | `[positions, d]` |
/// | W_u, b | `projection`, `projection_bias` (SigLIP) | `[d, e]`, `[e]` |
/// | u | `rows` | `[b, e]` |
///
/// CLIP: a piece attends to itself and to those before it, and e is the end piece. So padding changes nothing, and captions
/// need no more padding than to the longest of their batch. SigLIP: every piece attends to all, padding too, and e is the last
/// position. So every caption is padded to all positions.
#[derive(Module, Debug)]
pub struct TextTower {
    /// `[vocabulary, d]`
    pub words: Param<Tensor<2>>,
    /// `[positions, d]`
    pub positions: Param<Tensor<2>>,
    /// The blocks, each with its layer norms first.
    pub blocks: Vec<TransformerBlock>,
    /// The layer norm after the last block.
    pub norm: LayerNorm,
    /// `[d, e]`
    pub projection: Param<Tensor<2>>,
    /// `[e]`
    pub projection_bias: Option<Param<Tensor<1>>>,
    /// Sizes.
    #[module(skip)]
    pub shape: TextTowerShape,
}

impl TextTower {
    pub(super) fn seeded(shape: &DualShape, seed: u64, device: &Device) -> Self {
        let (text, clip) = (&shape.text, shape.family == DualFamily::Clip);
        let (d, seed) = (text.width, |part| random::derive(seed, part));
        let block = BlockShape {
            width: d,
            heads: text.heads,
            mlp: text.mlp,
            epsilon: text.epsilon,
            activation: text.activation,
            causal: clip,
            order: NormOrder::Pre,
            dropout: 0.0,
            attention_dropout: 0.0,
        };
        let rows = |n, part| Param::from_tensor(uniform([n, d], 0.02, seed(part), device));
        let block = |i| TransformerBlock::seeded(&block, seed(3 + i as u64), device);
        let Linear { weight, bias, .. } = Linear::seeded(d, shape.joint, seed(2), device);
        Self {
            words: rows(text.vocabulary, 0),
            positions: rows(text.positions, 1),
            blocks: (0..text.layers).map(block).collect(),
            norm: LayerNorm::new(d, text.epsilon, device),
            projection: weight,
            projection_bias: (!clip).then_some(bias),
            shape: text.clone(),
        }
    }

    /// One row per caption, `[b, e]`, not of unit length. The last block computes only this row.
    ///
    /// # Panics
    /// As [`DualEncoder::texts`](super::DualEncoder::texts).
    pub(crate) fn rows(&self, captions: &TokenBatch) -> Tensor<2> {
        let (b, l, d) = (captions.len(), captions.width, self.shape.width);
        let x = self.states(captions, self.blocks.len().saturating_sub(1));
        let ends = captions.lengths.iter().enumerate().map(|(k, n)| (k * l + n - 1) as i32);
        let ends = TensorData::new(ends.collect::<Vec<i32>>(), [b]);
        let ends = Tensor::<1, Int>::from_data(ends, &x.device());
        let end = x.clone().reshape([b * l, d]).select(0, ends);
        let end = match self.blocks.last() {
            Some(block) => block.one(end, x, Some(&captions.lengths)),
            None => end,
        };
        self.rows_of(self.norm.forward(end))
    }

    /// Rows in the joint space, `[rows, e]`, of some rows of [`tokens`](Self::tokens).
    ///
    /// # Panics
    /// If the width differs.
    pub(crate) fn rows_of(&self, tokens: Tensor<2>) -> Tensor<2> {
        let rows = matmul(tokens, self.projection.val());
        match &self.projection_bias {
            Some(bias) => rows + bias.val().unsqueeze(),
            None => rows,
        }
    }

    /// All rows after the last layer norm, `[b, l, d]`. Padding has rows too.
    ///
    /// # Panics
    /// As `rows`.
    pub(crate) fn tokens(&self, captions: &TokenBatch) -> Tensor<3> {
        self.norm.forward(self.states(captions, self.blocks.len()))
    }

    /// The states after some blocks.
    fn states(&self, captions: &TokenBatch, blocks: usize) -> Tensor<3> {
        self.shape.check(captions).unwrap_or_else(|error| panic!("{error}"));
        let (b, l, d) = (captions.len(), captions.width, self.shape.width);
        let words = embedding(self.words.val(), &captions.ids, None).reshape([b, l, d]);
        let x = words + self.positions.val().narrow(0, 0, l).unsqueeze();
        through(&self.blocks[..blocks], 0, x, None, Noise::Off)
    }
}

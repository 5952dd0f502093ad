//! The encoders that are timed, at their published sizes.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use itm_kernels::{
    BlockShape, Dropout, LayerNorm, Linear, Noise, NormOrder, TransformerBlock, uniform,
};

pub(crate) const WIDTH: usize = 768;
pub(crate) const WORDS: usize = 30_522;
const PATCH: usize = 16;

fn blocks(order: NormOrder, dropout: f64, device: &Device) -> Vec<TransformerBlock> {
    let shape = BlockShape {
        width: WIDTH,
        heads: 12,
        mlp: 4 * WIDTH,
        epsilon: 1e-12,
        order,
        dropout,
        attention_dropout: dropout,
    };
    (0..12).map(|k| TransformerBlock::seeded(&shape, k, device)).collect()
}

/// ViT-B/16.
#[derive(Module, Debug)]
pub(crate) struct Vit {
    patches: Linear,
    cls: Param<Tensor<3>>,
    positions: Param<Tensor<3>>,
    blocks: Vec<TransformerBlock>,
    norm: LayerNorm,
}

impl Vit {
    pub(crate) fn new(size: usize, device: &Device) -> Self {
        let tokens = (size / PATCH).pow(2) + 1;
        Self {
            patches: Linear::seeded(3 * PATCH * PATCH, WIDTH, 1, device),
            cls: Param::from_tensor(uniform([1, 1, WIDTH], 0.02, 2, device)),
            positions: Param::from_tensor(uniform([1, tokens, WIDTH], 0.02, 3, device)),
            blocks: blocks(NormOrder::Pre, 0.0, device),
            norm: LayerNorm::new(WIDTH, 1e-12, device),
        }
    }

    /// `[b, 3, s, s]` to `[b, l, d]`.
    pub(crate) fn forward(&self, pixels: Tensor<4>) -> Tensor<3> {
        let [b, c, s, _] = pixels.dims();
        let n = s / PATCH;
        let cut = pixels.reshape([b, c, n, PATCH, n, PATCH]).permute([0, 2, 4, 1, 3, 5]);
        let x = self.patches.forward(cut.reshape([b, n * n, c * PATCH * PATCH]));
        let cls = self.cls.val().expand([b, 1, WIDTH]);
        let x = Tensor::cat(vec![cls, x], 1) + self.positions.val();
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x, None, Noise::Off));
        self.norm.forward(x)
    }
}

/// BERT-base.
#[derive(Module, Debug)]
pub(crate) struct Bert {
    words: Param<Tensor<2>>,
    positions: Param<Tensor<2>>,
    types: Param<Tensor<2>>,
    norm: LayerNorm,
    dropout: Dropout,
    blocks: Vec<TransformerBlock>,
}

impl Bert {
    pub(crate) fn new(device: &Device) -> Self {
        let table = |n, seed| Param::from_tensor(uniform([n, WIDTH], 0.02, seed, device));
        Self {
            words: table(WORDS, 1),
            positions: table(512, 2),
            types: table(2, 3),
            norm: LayerNorm::new(WIDTH, 1e-12, device),
            dropout: Dropout::new(0.1),
            blocks: blocks(NormOrder::Post, 0.1, device),
        }
    }

    /// `[b, l]` to `[b, l, d]`.
    pub(crate) fn forward(&self, words: Tensor<2, Int>, noise: Noise) -> Tensor<3> {
        let [b, l] = words.dims();
        let x = self.words.val().select(0, words.reshape([b * l])).reshape([b, l, WIDTH]);
        let positions = self.positions.val().narrow(0, 0, l).unsqueeze();
        let x = x + positions + self.types.val().narrow(0, 0, 1).unsqueeze();
        let x = self.dropout.forward(self.norm.forward(x), noise.part(0));
        self.blocks.iter().zip(1..).fold(x, |x, (block, k)| block.forward(x, None, noise.part(k)))
    }
}

//! The vision transformer.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use itm_kernels::{
    Activation, BlockShape, Dropout, LayerNorm, Linear, Noise, NormOrder, Precision,
    TransformerBlock, matmul, random, uniform,
};
use serde::{Deserialize, Serialize};

use super::{ImagePool, block_values, resize_positions, set_precision, table_values, through};

/// What the first layers of a [`Vit`] are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VitForm {
    /// A class row; patches with a bias: ViT, DINOv2.
    #[default]
    Plain,
    /// A class row; patches without a bias; a layer norm before the blocks: CLIP.
    Clip,
    /// No class row; patches with a bias: SigLIP.
    Siglip,
}

/// Sizes and choices of a [`Vit`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VitShape {
    /// Height and width in pixels of the images for which the position embeddings are made.
    pub image: [usize; 2],
    /// Side of a patch, in pixels.
    pub patch: usize,
    /// Channels of an image.
    pub channels: usize,
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
    /// The function between the two linear maps of a block.
    #[serde(skip)]
    pub activation: Activation,
    /// The first layers.
    #[serde(skip)]
    pub form: VitForm,
}

impl VitShape {
    /// ViT-B/16 at 384 px, as in FNE: 86 million parameters.
    pub fn base_16_384() -> Self {
        Self {
            image: [384, 384],
            patch: 16,
            channels: 3,
            width: 768,
            layers: 12,
            heads: 12,
            mlp: 3072,
            epsilon: 1e-12,
            dropout: 0.0,
            attention_dropout: 0.0,
            activation: Activation::Gelu,
            form: VitForm::Plain,
        }
    }

    /// Number of patches down and across. Pixels that do not fill a patch are left out.
    ///
    /// # Panics
    /// If the patch is 0.
    pub fn grid(&self) -> [usize; 2] {
        assert!(self.patch > 0, "patch: expected at least 1 pixel, got 0");
        self.image.map(|side| side / self.patch)
    }

    /// Number of values in maps and tables: nearly all of the model.
    pub(crate) fn values(&self) -> u128 {
        let [h, w] = self.grid();
        let pixels = self.channels.saturating_mul(self.patch).saturating_mul(self.patch);
        let rows = h.saturating_mul(w).saturating_add(pixels);
        let blocks = block_values(self.layers, self.width, self.mlp);
        table_values(&[rows, self.width]).saturating_add(blocks)
    }

    /// Rows before the patches: 1 for a class token.
    pub(crate) fn class_rows(&self) -> usize {
        usize::from(self.form != VitForm::Siglip)
    }
}

/// Encodes an image as one row per patch, after one row for the class token.
///
/// ```text
/// x = [c; patches W + b] + P;   x ← N(x);   x ← block(x) for each block;   V = norm(x)
/// ```
///
/// [`VitForm`] says which of c, b and N there are.
///
/// | symbol | here | shape |
/// |---|---|---|
/// | W, b | `patches`, `patch_bias` | channels · patch² → d |
/// | c | `class` | `[d]` |
/// | N | `pre_norm` | d |
/// | P | `positions` | `[1 + n, d]` |
/// | V | result | `[b, 1 + n, d]` |
///
/// Images of another size have another number of patches; [`resize_positions`] resizes P to that number.
/// [`ImagePool`](super::ImagePool) turns the rows into one row per image.
#[derive(Module, Debug)]
pub struct Vit {
    /// `[channels · patch², d]`: channel, then row, then column.
    pub patches: Param<Tensor<2>>,
    /// `[d]`
    pub patch_bias: Option<Param<Tensor<1>>>,
    /// `[d]`
    pub class: Option<Param<Tensor<1>>>,
    /// `[1 + n, d]`: the class token, if there is one, then the grid row by row.
    pub positions: Param<Tensor<2>>,
    /// The layer norm before the first block.
    pub pre_norm: Option<LayerNorm>,
    /// Dropout of the embeddings.
    pub dropout: Dropout,
    /// The blocks, each with its layer norms first.
    pub blocks: Vec<TransformerBlock>,
    /// The layer norm after the last block.
    pub norm: LayerNorm,
    /// Sizes.
    #[module(skip)]
    pub shape: VitShape,
}

/// Pictures on a device, `[b, 3, size, size]`.
#[cfg(feature = "images")]
pub(crate) fn pixels(size: usize, values: Vec<f32>, device: &Device) -> Tensor<4> {
    let shape = [values.len() / (3 * size * size), 3, size, size];
    Tensor::from_data(burn::tensor::TensorData::new(values, shape), device)
}

/// The states of a [`Vit`] after its first blocks.
#[derive(Debug, Clone)]
pub(crate) struct EarlyStates {
    /// `[b, 1 + n, d]`, before the last layer norm.
    pub values: Tensor<3>,
    /// The number of these blocks.
    pub blocks: usize,
}

impl Vit {
    /// Draws class token and positions uniformly from ±0.02, and linear maps as [`Linear::seeded`]. The seed decides
    /// all values.
    ///
    /// # Panics
    /// If the heads do not divide the width, a width is 0, the image holds no patch, a dropout is not in `[0, 1)`, or memory
    /// cannot hold the values.
    pub fn seeded(shape: &VitShape, seed: u64, device: &Device) -> Self {
        let ([h, w], d) = (shape.grid(), shape.width);
        assert!(h > 0 && w > 0, "images of {:?} hold no patch of {}", shape.image, shape.patch);
        let fits = shape.values() <= 1 << 40;
        assert!(fits, "no memory for {:?}", shape.image);
        let block = BlockShape {
            width: d,
            heads: shape.heads,
            mlp: shape.mlp,
            epsilon: shape.epsilon,
            activation: shape.activation,
            causal: false,
            order: NormOrder::Pre,
            dropout: shape.dropout,
            attention_dropout: shape.attention_dropout,
        };
        let seed = |part| random::derive(seed, part);
        let block = |i| TransformerBlock::seeded(&block, seed(3 + i as u64), device);
        let pixels = shape.channels * shape.patch * shape.patch;
        let Linear { weight, bias, .. } = Linear::seeded(pixels, d, seed(0), device);
        let (clip, rows) = (shape.form == VitForm::Clip, shape.class_rows());
        let class = || Param::from_tensor(uniform([d], 0.02, seed(1), device));
        Self {
            patches: weight,
            patch_bias: (!clip).then_some(bias),
            class: (rows == 1).then(class),
            positions: Param::from_tensor(uniform([rows + h * w, d], 0.02, seed(2), device)),
            pre_norm: clip.then(|| LayerNorm::new(d, shape.epsilon, device)),
            dropout: Dropout::new(shape.dropout),
            blocks: (0..shape.layers).map(block).collect(),
            norm: LayerNorm::new(d, shape.epsilon, device),
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

    /// Encodes normalised pixels, `[b, channels, h, w]`, as `[b, 1 + n, d]`. Pixels at the right and the bottom that do
    /// not fill a patch are left out.
    ///
    /// # Panics
    /// If there is no image, the channels differ, or an image holds no patch.
    pub fn forward(&self, images: Tensor<4>, noise: Noise) -> Tensor<3> {
        self.finished(self.begun(images, 0, noise), noise)
    }

    /// [`forward`](Self::forward) from the states after some blocks.
    pub(crate) fn finished(&self, begun: EarlyStates, noise: Noise) -> Tensor<3> {
        self.norm.forward(self.through(begun, self.blocks.len(), noise).values)
    }

    /// The first row of [`forward`](Self::forward) without noise, `[b, d]`: the class token. The last block computes only
    /// this row.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn class_row(&self, images: Tensor<4>) -> Tensor<2> {
        self.class_row_of(self.begun(images, 0, Noise::Off))
    }

    /// [`class_row`](Self::class_row) from the states after some blocks.
    pub(crate) fn class_row_of(&self, begun: EarlyStates) -> Tensor<2> {
        match self.blocks.split_last() {
            Some((last, before)) if begun.blocks <= before.len() => {
                let x = self.through(begun, before.len(), Noise::Off).values;
                self.norm.forward(last.first(x, None))
            }
            _ => ImagePool::Class.pool(self.finished(begun, Noise::Off)),
        }
    }

    /// The states after the first blocks.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub(crate) fn begun(&self, images: Tensor<4>, blocks: usize, noise: Noise) -> EarlyStates {
        let ([b, _, height, width], d) = (images.dims(), self.shape.width);
        let grid = [height / self.shape.patch, width / self.shape.patch];
        let pixels = self.unfold(images);
        let patches = match &self.patch_bias {
            Some(bias) => Linear::new(self.patches.clone(), bias.clone()).forward(pixels),
            None => matmul(pixels, self.patches.val()),
        };
        let mut rows = vec![patches.reshape([b, grid[0] * grid[1], d])];
        if let Some(class) = &self.class {
            rows.insert(0, class.val().reshape([1, 1, d]).expand([b, 1, d]));
        }
        let x = Tensor::cat(rows, 1) + self.positions_of(grid).unsqueeze();
        let x = self.pre_norm.iter().fold(x, |x, norm| norm.forward(x));
        let values = self.dropout.forward(x, noise.part(0)); // [b, 1 + n, d]
        self.through(EarlyStates { values, blocks: 0 }, blocks, noise)
    }

    /// The states after further blocks, up to a number of blocks in all.
    fn through(&self, begun: EarlyStates, blocks: usize, noise: Noise) -> EarlyStates {
        let EarlyStates { values, blocks: first } = begun;
        EarlyStates { values: through(&self.blocks[..blocks], first, values, None, noise), blocks }
    }

    /// The pixels of each patch as a row, `[b·n, channels · patch²]`, so that the patch convolution is one product.
    fn unfold(&self, images: Tensor<4>) -> Tensor<2> {
        let (dims, p) = (images.dims(), self.shape.patch);
        let [b, c, h, w] = [dims[0], dims[1], dims[2] / p, dims[3] / p];
        let fits = b > 0 && c == self.shape.channels && h * w > 0;
        assert!(fits, "images {dims:?} for {:?}", self.shape);
        let whole = images.narrow(2, 0, h * p).narrow(3, 0, w * p);
        let tiles = whole.reshape([b, c, h, p, w, p]).permute([0, 2, 4, 1, 3, 5]); // [b, h, w, c, p, p]
        tiles.reshape([b * h * w, c * p * p])
    }

    /// P, resized to a grid, `[1 + n, d]`.
    fn positions_of(&self, grid: [usize; 2]) -> Tensor<2> {
        let (own, positions) = (self.shape.grid(), self.positions.val());
        if grid == own {
            return positions;
        }
        let first = self.shape.class_rows();
        let patches = positions.clone().narrow(0, first, own[0] * own[1]);
        let patches = resize_positions(patches, own, grid);
        if first == 0 {
            return patches;
        }
        Tensor::cat(vec![positions.narrow(0, 0, first), patches], 0)
    }
}

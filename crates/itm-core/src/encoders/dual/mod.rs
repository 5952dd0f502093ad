//! Dual encoders with published weights: CLIP and SigLIP.

mod config;
mod files;
mod image;
mod open_clip;
#[cfg(feature = "pieces")]
mod pieces;
#[cfg(test)]
mod tests;
mod text;
#[cfg(not(feature = "pieces"))]
mod unread;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use itm_kernels::{Activation, Precision, normalize_rows, random};

pub use files::DualLayout;
pub use image::ImageTower;
#[cfg(feature = "pieces")]
pub use pieces::DualPieces;
pub use text::{TextTower, TextTowerShape};
#[cfg(not(feature = "pieces"))]
pub use unread::DualPieces;

use super::{TokenBatch, VitForm, VitShape, set_precision};

/// The published dual encoders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DualFamily {
    /// CLIP of OpenAI, LAION, DataComp, MetaCLIP: class row, causal captions, InfoNCE.
    Clip,
    /// SigLIP, and SigLIP 2 of a fixed resolution: attention pool, padded captions, pairwise sigmoid.
    Siglip,
}

/// Sizes and choices of a [`DualEncoder`].
#[derive(Debug, Clone, PartialEq)]
pub struct DualShape {
    /// Which family.
    pub family: DualFamily,
    /// The image tower.
    pub image: VitShape,
    /// The text tower.
    pub text: TextTowerShape,
    /// Width e of the joint space.
    pub joint: usize,
}

impl DualShape {
    /// CLIP ViT-B/32 at 224 px, as OpenAI published it: 151 million parameters.
    pub fn clip_base_32() -> Self {
        let activation = Activation::QuickGelu;
        let image = VitShape {
            image: [224, 224],
            patch: 32,
            epsilon: 1e-5,
            activation,
            form: VitForm::Clip,
            ..VitShape::base_16_384()
        };
        let text = TextTowerShape {
            vocabulary: 49_408,
            positions: 77,
            width: 512,
            layers: 12,
            heads: 8,
            mlp: 2048,
            epsilon: 1e-5,
            activation,
            end: Some(49_407),
            highest: false,
        };
        Self { family: DualFamily::Clip, image, text, joint: 512 }
    }
}

/// Two towers whose unit rows are compared by their product, and the scale of the comparison.
///
/// ```text
/// v = image(x) / ‖image(x)‖,   u = text(c) / ‖text(c)‖,   logit = exp(θ) v·u + β
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | x | normalised pixels: [`crate::vision::Transform`] | `[b, 3, h, w]` |
/// | c | numbers of word pieces: `DualPieces` | [`TokenBatch`] |
/// | v, u | [`images`](Self::images), [`texts`](Self::texts) | `[b, e]` |
/// | θ | `scale` | `[1]` |
/// | β | `bias`, in SigLIP | `[1]` |
///
/// Ranks need neither θ nor β. θ is taken as it is, also above log 100. Source: Radford et al. 2021 (arXiv 2103.00020), Zhai
/// et al. 2023 (arXiv 2303.15343).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use itm_core::encoders::{DualEncoder, DualShape, TokenBatch};
///
/// let mut shape = DualShape::clip_base_32(); // a small one
/// (shape.image.layers, shape.image.width, shape.image.mlp) = (1, 24, 48);
/// (shape.text.layers, shape.text.width, shape.text.mlp, shape.text.vocabulary) = (1, 16, 32, 100);
/// shape.text.end = Some(99);
/// let model = DualEncoder::seeded(&shape, 1, &Device::flex());
/// let images = model.images(Tensor::zeros([2, 3, 224, 224], &Device::flex()));
/// let texts = model.texts(&TokenBatch::new(&[&[98, 5, 7, 99][..], &[98, 4, 99]]));
/// assert_eq!((images.dims(), texts.dims()), ([2, 512], [2, 512]));
/// ```
#[derive(Module, Debug)]
pub struct DualEncoder {
    /// The image tower.
    pub image: ImageTower,
    /// The text tower.
    pub text: TextTower,
    /// θ
    pub scale: Param<Tensor<1>>,
    /// β
    pub bias: Option<Param<Tensor<1>>>,
    /// Sizes.
    #[module(skip)]
    pub shape: DualShape,
}

impl DualEncoder {
    /// Draws linear maps as [`itm_kernels::Linear::seeded`] and tables uniformly from ±0.02; θ and β begin where the papers
    /// begin. The seed decides all values.
    ///
    /// # Panics
    /// If the heads do not divide a width, or the image holds no patch.
    pub fn seeded(shape: &DualShape, seed: u64, device: &Device) -> Self {
        let one = |value: f64| Param::from_tensor(Tensor::from_floats([value as f32], device));
        let seed = |part| random::derive(seed, part);
        let (theta, beta) = match shape.family {
            DualFamily::Clip => ((1.0f64 / 0.07).ln(), None),
            DualFamily::Siglip => (10.0f64.ln(), Some(one(-10.0))),
        };
        Self {
            image: ImageTower::seeded(shape, seed(0), device),
            text: TextTower::seeded(shape, seed(1), device),
            scale: one(theta),
            bias: beta,
            shape: shape.clone(),
        }
    }

    /// Sets the precision of the products of all blocks; everything else stays f32. bf16 needs the CPU backend:
    /// [`Precision::runs_on`].
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        set_precision(&mut self.image.vit.blocks, precision);
        set_precision(&mut self.text.blocks, precision);
        self
    }

    /// Unit rows of normalised pixels, `[b, 3, h, w]` to `[b, e]`.
    ///
    /// # Panics
    /// If there are not three channels, or an image holds no patch.
    pub fn images(&self, pixels: Tensor<4>) -> Tensor<2> {
        normalize_rows(self.image.rows(pixels))
    }

    /// Unit rows of captions, `[b, e]`.
    ///
    /// # Panics
    /// If a number is outside the vocabulary, a caption has more pieces than positions, a caption of CLIP does not end with the
    /// end piece, or captions of SigLIP are not padded to all positions.
    pub fn texts(&self, captions: &TokenBatch) -> Tensor<2> {
        normalize_rows(self.text.rows(captions))
    }

    /// `exp(θ) s + β` for scores, which are products of unit rows.
    pub fn logits(&self, scores: Tensor<2>) -> Tensor<2> {
        let scaled = scores * self.scale.val().exp().unsqueeze();
        match &self.bias {
            Some(bias) => scaled + bias.val().unsqueeze(),
            None => scaled,
        }
    }
}

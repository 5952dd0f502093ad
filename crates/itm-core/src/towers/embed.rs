//! Embeddings of a split, block by block.

use burn::tensor::Tensor;

use super::{CaptionInput, ImageConfig, ImageEncoder, TextConfig, TextEncoder};
use crate::encoders::{BLOCK, embed_features, embed_texts};
use crate::learn::{ImageItems, Images};
use crate::{Error, Result, host};

/// Captions that an encoder with blocks encodes at once. Fewer than the rows of a small encoder, because it has a dozen blocks.
pub const TEXTS: usize = 64;

impl ImageEncoder {
    /// Embeddings of the images of a split, `[images, d]` row-major. `encode` embeds one block.
    ///
    /// # Errors
    /// If the images are of another kind, width or size than the encoder's, a picture cannot be read, or a feature is not finite.
    pub fn embed(
        &self,
        config: &ImageConfig,
        images: ImageItems,
        encode: impl Fn(Images) -> Tensor<2>,
    ) -> Result<Vec<f32>> {
        match (self.feature_width(), images) {
            (Some(width), images) => {
                let features = images.features(width)?;
                let place = |at| format!("features, row {}", at / width.max(1));
                Error::unless_finite(&features.values, place, "finite numbers")?;
                Ok(embed_features(features, |block| {
                    let rows = block.len() / features.dim;
                    encode(config.prepared(Images::Features(block), rows).part(0, rows))
                }))
            }
            (None, ImageItems::Pictures(pictures)) => {
                let all: Vec<usize> = (0..pictures.len()).collect();
                let mut out = vec![];
                for pictures in pictures.some(&all) {
                    let pictures = pictures?;
                    self.check(Images::from(&pictures), pictures.images)?;
                    out.extend(host(encode(Images::from(&pictures))));
                }
                Ok(out)
            }
            (None, images) => Err(Error::invalid("images", "pictures", images.kind())),
        }
    }
}

impl TextEncoder {
    /// Embeddings of captions, `[captions, d]` row-major, in the given order. `encode` embeds one block. Captions are cut as in
    /// evaluation.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn embed<C: AsRef<[u32]>>(
        &self,
        config: &TextConfig,
        captions: &[C],
        encode: impl Fn(&CaptionInput) -> Tensor<2>,
    ) -> Result<Vec<f32>> {
        let texts: Vec<_> = captions.iter().map(|text| config.evaluation(text.as_ref())).collect();
        self.check(&texts)?;
        let block = if self.most_words().is_some() { TEXTS } else { BLOCK };
        let width = config.evaluation_width();
        Ok(embed_texts(&texts, block, |some| encode(&self.read(some, width))))
    }
}

//! Embeddings of the online encoders, for evaluation.

use burn::module::Module;
use itm_core::Result;
use itm_core::learn::{ImageItems, Images, Items};
use itm_core::scored::{EmbeddingRows, Similarity};
use itm_core::towers::{CaptionInput, TowerDropout};

use crate::step::Fne;

impl Fne {
    /// v̄ and w̄ of a split, from the online encoders in evaluation mode.
    pub(crate) fn embed(&self, items: Items) -> Result<EmbeddingRows> {
        let (images, texts) = (self.embed_images(items.images)?, self.embed_texts(items.texts)?);
        let dim = self.config.model.embed_dim;
        Ok(EmbeddingRows { dim, images, texts, similarity: Similarity::Cosine })
    }

    /// v̄ of images, `[images, d]` row-major.
    pub(crate) fn embed_images(&self, images: ImageItems) -> Result<Vec<f32>> {
        let model = self.online().valid();
        let encode = |images: Images<'_>| model.images(images, TowerDropout::Off);
        model.image.embed(&self.config.model.image, images, encode)
    }

    /// w̄ of texts, `[texts, d]` row-major, in the given order.
    pub(crate) fn embed_texts<C: AsRef<[u32]>>(&self, texts: &[C]) -> Result<Vec<f32>> {
        let model = self.online().valid();
        let encode = |captions: &CaptionInput| model.captions(captions, TowerDropout::Off);
        model.text.embed(&self.config.model.text, texts, encode)
    }
}

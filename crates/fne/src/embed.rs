//! Embeddings of the online encoders, for evaluation.

use burn::module::Module;
use itm_core::Result;
use itm_core::learn::{ImageItems, Images};
use itm_core::towers::{CaptionInput, TowerDropout};

use crate::step::Fne;

impl Fne {
    /// v̄ of images, from the online encoders in evaluation mode: `[images, d]` row-major.
    pub(crate) fn embed_images(&self, images: ImageItems) -> Result<Vec<f32>> {
        let model = self.online().valid();
        let encode = |images: Images<'_>| model.image.encode(images, TowerDropout::OFF);
        model.image.embed(&self.config.model.image, images, encode)
    }

    /// w̄ of texts, `[texts, d]` row-major, in the given order.
    pub(crate) fn embed_texts<C: AsRef<[u32]>>(&self, texts: &[C]) -> Result<Vec<f32>> {
        let model = self.online().valid();
        let encode = |captions: &CaptionInput| model.text.encode(captions, TowerDropout::OFF);
        model.text.embed(&self.config.model.text, texts, encode)
    }
}

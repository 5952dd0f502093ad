//! Embeddings of the online encoders, for evaluation.

use burn::module::Module;
use itm_core::data::Features;
use itm_core::learn::{BLOCK, ImageItems, Images, Items, embed_features, embed_texts};
use itm_core::scored::{EmbeddingRows, Similarity};
use itm_core::vision::PictureBatch;
use itm_core::{Error, Result, host};

use crate::checks;
use crate::step::Fne;
use itm_core::towers::TowerDropout;

/// Captions that BERT encodes at once. Fewer than [`BLOCK`], because BERT has a dozen blocks.
pub(crate) const TEXTS: usize = 64;

impl Fne {
    /// v̄ and w̄ of a split, from the online encoders in evaluation mode.
    pub(crate) fn embed(&self, items: Items) -> Result<EmbeddingRows> {
        let images = match (self.online().image.feature_width(), items.images) {
            (Some(width), images) => {
                let features = images.features(width)?;
                checks::finite_values("features", &features.values, width)?;
                self.embed_images(features)
            }
            (None, ImageItems::Pictures(pictures)) => {
                let all: Vec<usize> = (0..pictures.len()).collect();
                self.embed_pictures(pictures.some(&all))?
            }
            (None, images) => return Err(Error::invalid("images", "pictures", images.kind())),
        };
        let (dim, texts) = (self.config.model.embed_dim, self.embed_texts(items.texts)?);
        Ok(EmbeddingRows { dim, images, texts, similarity: Similarity::Cosine })
    }

    /// v̄ of features, `[rows, d]` row-major.
    pub(crate) fn embed_images(&self, features: &Features) -> Vec<f32> {
        let (model, config) = (self.online().valid(), &self.config.model.image);
        embed_features(features, |block| {
            let rows = block.len() / features.dim;
            let block = config.prepared(Images::Features(block), rows);
            model.images(block.part(0, rows), TowerDropout::Off)
        })
    }

    /// v̄ of pictures, batch after batch: `[pictures, d]` row-major.
    pub(crate) fn embed_pictures(
        &self,
        batches: impl IntoIterator<Item = Result<PictureBatch>>,
    ) -> Result<Vec<f32>> {
        let (model, mut out) = (self.online().valid(), vec![]);
        for pictures in batches {
            let pictures = pictures?;
            model.image.check(Images::from(&pictures), pictures.images)?;
            out.extend(host(model.images(Images::from(&pictures), TowerDropout::Off)));
        }
        Ok(out)
    }

    /// w̄ of texts, `[texts, d]` row-major, in the given order.
    pub(crate) fn embed_texts<C: AsRef<[u32]>>(&self, texts: &[C]) -> Result<Vec<f32>> {
        let (model, config) = (self.online().valid(), &self.config.model.text);
        let texts: Vec<_> = texts.iter().map(|text| config.evaluation(text.as_ref())).collect();
        model.text.check(&texts)?;
        let block = if model.text.most_words().is_some() { TEXTS } else { BLOCK };
        Ok(embed_texts(&texts, block, |some| {
            let captions = model.text.read(some, config.evaluation_width());
            model.captions(&captions, TowerDropout::Off)
        }))
    }
}

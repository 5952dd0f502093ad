//! Embeddings of the online encoders, for evaluation.

use burn::module::Module;
use itm_core::data::Features;
use itm_core::encoders::TokenBatch;
use itm_core::vision::PictureBatch;
use itm_core::{Result, host};

use crate::model::{Dropout, Images};
use crate::step::{Fne, check_texts};

/// Rows of features encoded at once.
const BLOCK: usize = 512;
/// Captions encoded at once: word pieces have a dozen blocks to pass.
const TEXTS: usize = 64;

impl Fne {
    /// v̄ of the online encoder in evaluation mode, `[rows, d]` row-major.
    ///
    /// # Panics
    /// If the encoder is one of pictures.
    pub fn embed_images(&self, features: &Features) -> Vec<f32> {
        let model = self.online.valid();
        let mut out = Vec::with_capacity(features.rows() * self.width());
        for block in features.values.chunks(BLOCK * features.dim.max(1)) {
            let rows = block.len() / features.dim;
            let block = self.config.model.image.prepared(Images::Features(block), rows);
            out.extend(host(model.images(block.part(0, rows), Dropout::Off)));
        }
        out
    }

    /// v̄ of pictures, batch after batch: `[pictures, d]` row-major.
    ///
    /// # Errors
    /// The first of the batches that is one.
    ///
    /// # Panics
    /// If the encoder is one of features, or of another size.
    pub fn embed_pictures(
        &self,
        batches: impl IntoIterator<Item = Result<PictureBatch>>,
    ) -> Result<Vec<f32>> {
        let (model, mut out) = (self.online.valid(), vec![]);
        for pictures in batches {
            out.extend(host(model.images(Images::from(&pictures?), Dropout::Off)));
        }
        Ok(out)
    }

    /// w̄ of the online encoder in evaluation mode, `[texts, d]` row-major, in the given order.
    ///
    /// # Panics
    /// If a text has no word or one outside the vocabulary.
    pub fn embed_texts<C: AsRef<[u32]>>(&self, texts: &[C]) -> Vec<f32> {
        let (model, d, config) = (self.online.valid(), self.width(), &self.config.model.text);
        let texts: Vec<_> = texts.iter().map(|text| config.evaluation(text.as_ref())).collect();
        if let Err(error) = check_texts(&texts, &self.online) {
            panic!("{error}");
        }
        let most = if model.text.most_words().is_some() { TEXTS } else { BLOCK };
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&i| texts[i].len()); // little padding in a block
        let mut out = vec![0.0; texts.len() * d];
        for block in order.chunks(most) {
            let tokens: Vec<&[u32]> = block.iter().map(|&i| texts[i].as_slice()).collect();
            let tokens = match config.evaluation_width() {
                Some(width) => TokenBatch::padded_to(&tokens, width),
                None => TokenBatch::new(&tokens),
            };
            let rows = host(model.texts(&tokens, Dropout::Off));
            for (&i, row) in block.iter().zip(rows.chunks_exact(d)) {
                out[i * d..(i + 1) * d].copy_from_slice(row);
            }
        }
        out
    }
}

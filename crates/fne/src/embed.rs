//! Embeddings of the online encoders, for evaluation.

use burn::module::Module;
use itm_core::data::Features;
use itm_core::encoders::TokenBatch;

use crate::host::host;
use crate::model::Dropout;
use crate::step::Fne;

/// Rows encoded at once.
const BLOCK: usize = 512;

impl Fne {
    /// v̄ of the online encoder in evaluation mode, `[rows, d]` row-major.
    pub fn embed_images(&self, features: &Features) -> Vec<f32> {
        let model = self.online.valid();
        let mut out = Vec::with_capacity(features.rows() * self.width());
        for block in features.values.chunks(BLOCK * features.dim.max(1)) {
            let mut rows = block.to_vec();
            rows.chunks_exact_mut(features.dim).for_each(|r| self.config.model.features.apply(r));
            out.extend(host(model.images(&rows, Dropout::Off)));
        }
        out
    }

    /// w̄ of the online encoder in evaluation mode, `[texts, d]` row-major, in the given order.
    ///
    /// # Panics
    /// If a text has no word or one outside the vocabulary.
    pub fn embed_texts<C: AsRef<[u32]>>(&self, texts: &[C]) -> Vec<f32> {
        let (model, d) = (self.online.valid(), self.width());
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&i| texts[i].as_ref().len()); // little padding in a block
        let mut out = vec![0.0; texts.len() * d];
        for block in order.chunks(BLOCK) {
            let tokens: Vec<&[u32]> = block.iter().map(|&i| texts[i].as_ref()).collect();
            let rows = host(model.texts(&TokenBatch::new(&tokens), Dropout::Off));
            for (&i, row) in block.iter().zip(rows.chunks_exact(d)) {
                out[i * d..(i + 1) * d].copy_from_slice(row);
            }
        }
        out
    }
}

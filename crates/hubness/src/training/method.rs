//! HAL as a training loop uses it.

use std::path::Path;

use burn::module::Module;
use itm_core::Result;
use itm_core::encoders::InputDropout;
use itm_core::learn::{
    BLOCK, Batch, Items, Method, Observe, Rows, Step, embed_features, embed_texts, first_non_finite,
};
use itm_core::scored::{EmbeddingRows, Scored};

use super::bank::MemoryBank;
use super::step::Hal;

impl Method for Hal {
    /// Drops the memory bank, and makes a new one if the objective has one.
    ///
    /// # Errors
    /// If the images are pictures or features of another width, or if a value that the bank needs is not finite.
    fn begin_epoch(&mut self, epoch: usize, train: Items) -> Result<()> {
        train.images.features(self.image_dim())?;
        self.learner.begin_epoch(epoch);
        self.bank = MemoryBank::default();
        for captions in self.bank_batches(train.pairs.texts()) {
            self.remember(&Rows::of(&train, &captions).batch())?;
        }
        Ok(())
    }

    /// One update of the encoders. Only dropout is random.
    ///
    /// # Errors
    /// If a value of an image, the loss or the norm of its gradients is not finite, if the images are pictures, or a caption
    /// has no word.
    ///
    /// # Panics
    /// If the parts of the batch differ in their number of rows, the features have another width, or a word's number is outside
    /// the vocabulary.
    fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        self.step_by(batch, seed, observe)
    }

    fn scored<'a>(&'a self, items: Items<'a>) -> Result<Box<dyn Scored + 'a>> {
        let (model, config) = (self.encoders().valid(), &self.config.model);
        let features = items.images.features(self.image_dim())?;
        model.text.check(items.texts)?;
        Ok(Box::new(EmbeddingRows {
            dim: config.embed_dim,
            images: embed_features(features, |block| model.images(block, InputDropout::Off)),
            texts: embed_texts(items.texts, BLOCK, |some| model.texts(some, InputDropout::Off)),
            similarity: config.similarity,
        }))
    }

    fn non_finite(&self) -> Option<String> {
        first_non_finite("encoders", self.encoders())
    }

    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        self.write(write)
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        *self = self.read(folder)?;
        Ok(())
    }

    fn start_from(&mut self, folder: &Path) -> Result<()> {
        *self = self.begun_from(folder)?;
        Ok(())
    }
}

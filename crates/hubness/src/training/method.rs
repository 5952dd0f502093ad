//! HAL as a training loop uses it.

use std::path::Path;

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use itm_core::checkpoint::CheckpointWriter;
use itm_core::encoders::InputDropout;
use itm_core::learn::{
    Batch, ImageItems, Images, Items, Method, Observe, Rows, SavedState, Step, first_non_finite,
};
use itm_core::scored::{EmbeddingRows, Scored, Similarity};
use itm_core::towers::CaptionInput;
use itm_core::{Error, Result};

use super::bank::MemoryBank;
use super::step::Hal;

/// The name of this method in the kinds of the files.
const METHOD: &str = "hal";

impl Method for Hal {
    /// Drops the memory bank, and makes a new one if the objective has one.
    ///
    /// # Errors
    /// If the encoder reads features, and the images are of another kind or width. If the objective has a bank, also if a picture cannot be read, or
    /// [`step`](Self::step) refuses images or captions that the bank needs.
    fn begin_epoch(&mut self, epoch: usize, train: Items) -> Result<()> {
        if let Some(width) = self.encoders().image.feature_width() {
            train.images.features(width)?;
        }
        self.learner.epoch = epoch;
        self.bank = MemoryBank::default();
        for captions in self.bank_batches(train.pairs.texts()) {
            let ImageItems::Pictures(pictures) = train.images else {
                self.remember(&Rows::of(&train, &captions).batch())?;
                continue;
            };
            let images: Vec<_> = captions.iter().map(|&c| train.pairs.image_of(c)).collect();
            let parts = captions.chunks(pictures.batch()).zip(pictures.some(&images));
            for (captions, pictures) in parts {
                let (rows, pictures) = (Rows::of(&train, captions), pictures?);
                self.remember(&rows.with_images(Images::from(&pictures)))?;
            }
        }
        Ok(())
    }

    /// One update of the encoders. Only dropout is random.
    ///
    /// # Errors
    /// If the parts of the batch do not have one row per pair; if the images are of another kind, width or size than the encoder's; if
    /// a value of an image, the loss or the norm of its gradients is not finite; if a caption has no word (except for a bag of words), a
    /// word's number outside the vocabulary, or more pieces than BERT has positions. A step that fails changes nothing.
    fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        self.step_by(batch, seed, observe)
    }

    fn scored<'a>(&'a self, items: Items<'a>) -> Result<Box<dyn Scored + 'a>> {
        let (model, config) = (self.encoders().valid(), &self.config.model);
        let images = |images: Images<'_>| config.images(&model, images, InputDropout::OFF);
        let texts = |captions: &CaptionInput| config.texts(&model, captions, InputDropout::OFF);
        Ok(Box::new(EmbeddingRows {
            dim: config.embed_dim,
            images: model.image.embed(&config.image, items.images, images)?,
            texts: model.text.embed(&config.text, items.texts, texts)?,
            similarity: config.similarity,
        }))
    }

    fn non_finite(&self) -> Option<String> {
        first_non_finite("encoders", self.encoders())
    }

    /// Beside its state: with LoRA also the [files of PEFT](itm_core::towers::LearningParts::save).
    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        let model = self.config.model.towers();
        self.config.train.parts.save(self.encoders(), &model, write)?;
        let modules = |model: &mut CheckpointWriter| model.module("encoders", self.encoders());
        self.learner.save(METHOD, write, modules, |state, updates| {
            let (n, d) = (self.bank.captions.len(), self.config.model.embed_dim);
            let [images, texts] = self.bank.embeddings();
            state.values("bank.images", &[n, d], &images);
            state.values("bank.texts", &[n, d], &texts);
            state.values("bank.captions", &[n], &self.bank.captions);
            [updates, n as i64]
        })
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        let saved = SavedState::open(METHOD, folder)?;
        let [.., updates, n] = saved.counts;
        let encoders = saved.model.module("encoders", self.encoders().clone())?;
        let learner = self.learner.restored(encoders, &saved, updates)?;
        let (n, d) = (n as usize, self.config.model.embed_dim);
        let device = self.encoders().devices().into_iter().next().unwrap_or_default().inner();
        let rows = |name: &str| -> Result<Tensor<2>> {
            let values = saved.state.values::<f32>(name, &[n, d])?;
            let place = |at| format!("{name}, row {}", at / d.max(1));
            Error::unless_finite(&values, place, "finite numbers")?;
            Ok(Tensor::from_data(TensorData::new(values, [n, d]), &device))
        };
        let (images, texts) = (rows("bank.images")?, rows("bank.texts")?);
        let captions = saved.state.values::<i64>("bank.captions", &[n])?;
        saved.nothing_else()?;
        self.learner = learner;
        self.keep_states(0);
        self.bank = MemoryBank::default();
        if n > 0 {
            self.bank.push(images, texts, &captions);
        }
        Ok(())
    }

    fn start_from(&mut self, folder: &Path) -> Result<()> {
        let SavedState { model, .. } = SavedState::open(METHOD, folder)?;
        let encoders = model.module("encoders", self.encoders().clone())?;
        model.nothing_else()?;
        self.learner = self.learner.begun(encoders);
        self.keep_states(0);
        self.bank = MemoryBank::default();
        Ok(())
    }

    fn keep_states(&self, bytes: u64) {
        self.encoders().keep_states(bytes);
    }

    fn export(&self, folder: &Path) -> Result<()> {
        let cosine = self.config.model.similarity == Similarity::Cosine;
        Error::unless(cosine, "model.similarity", "cosine, by which others compare", "order")?;
        self.encoders().save(&self.config.model.towers(), folder)
    }
}

//! One training step.

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Device;
use itm_core::Result;
use itm_core::encoders::TokenBatch;
use itm_core::learn::{Batch, Learner, Numbers, Observe, Step, check_texts};
use itm_kernels::{AdamOptions, random};

use super::bank::{MemoryBank, chosen_batches};
use super::config::{HalConfig, Objective};
use super::model::Encoders;
use super::objective::{Negatives, outcome};
use crate::losses::BankScores;

/// A model in training: encoders, optimiser, and the memory bank of the one objective that has one. It learns as a
/// [`Method`](itm_core::learn::Method).
///
/// Nothing in a step is random. The same batches in the same order give the same weights.
#[derive(Debug, Clone)]
pub struct Hal {
    pub(super) config: HalConfig,
    pub(super) learner: Learner<Encoders>,
    pub(super) bank: MemoryBank,
}

impl Hal {
    /// Random encoders: a function of `seed`.
    ///
    /// `device` is one without autodiff or with; the step differentiates by itself.
    ///
    /// # Errors
    /// If the config holds a value nothing can be trained with.
    pub fn new(
        config: &HalConfig,
        image_dim: usize,
        vocabulary: usize,
        device: &Device,
        seed: u64,
    ) -> Result<Self> {
        config.validate()?;
        let device = if device.is_autodiff() { device.clone() } else { device.clone().autodiff() };
        let encoders = Encoders::new(&config.model, image_dim, vocabulary, seed, &device);
        let learner = Learner::new(encoders, options(config));
        Ok(Self { learner, bank: MemoryBank::default(), config: config.clone() })
    }

    /// Which of `captions` captions have the pairs that make this epoch's bank, batch by batch: none in the first epoch, and none
    /// for objectives without a bank. A function of the config's seed and the epoch.
    pub(super) fn bank_batches(&self, captions: usize) -> Vec<Vec<usize>> {
        let epoch = self.learner.epoch();
        if self.config.loss.objective != Objective::HalAaaiBank || epoch == 0 {
            return vec![];
        }
        let seed = random::derive(self.config.train.seed, (1 << 32) | epoch as u64);
        chosen_batches(captions, self.config.train.batch, self.config.bank.mb_rate, seed)
    }

    /// Adds the pairs of a batch to the bank, as the encoders see them now in evaluation mode.
    pub(super) fn remember(&mut self, batch: &Batch) -> Result<()> {
        let features = self.check(batch)?;
        let model = self.encoders().valid();
        let texts = model.texts(&TokenBatch::new(batch.texts));
        self.bank.push(model.images(features), texts, batch.caption_ids);
        Ok(())
    }

    /// One update of the encoders, and its negatives if `observe` asks for them: images as anchors, texts as anchors.
    pub(super) fn step_by(
        &mut self,
        batch: &Batch,
        observe: Observe,
    ) -> Result<(Step, Option<[Negatives; 2]>)> {
        let features = self.check(batch)?;
        let images = self.encoders().images(features);
        let texts = self.encoders().texts(&TokenBatch::new(batch.texts));
        let bank = match self.bank.is_empty() {
            true => BankScores::default(),
            false => {
                let (v, w) = (images.clone().inner(), texts.clone().inner());
                self.bank.scores(v, w, batch.caption_ids)
            }
        };
        let scores = self.encoders().scores(images, texts);
        let outcome = outcome(&self.config, scores.clone(), batch.image_ids, &bank);
        let negatives = matches!(observe, Observe::Against(_))
            .then(|| outcome.negatives(&self.config, batch, &scores.clone().inner()));
        drop(scores); // its graph would hold the parameters that are updated in place
        let rate = self.config.train.rate(self.learner.epoch());
        let active = outcome.active;
        let [loss, grad_norm] = self.learner.update(rate, outcome.loss, |encoders, loss| {
            GradientsParams::from_grads(loss.backward(), encoders)
        })?;
        let numbers = Numbers::from([("learning_rate", rate)]);
        let step = Step { loss, grad_norm, active, numbers, draws: None, candidates: None };
        Ok((step, negatives))
    }

    /// The features of a batch that can be trained with.
    fn check<'a>(&self, batch: &Batch<'a>) -> Result<&'a [f32]> {
        let b = batch.pairs()?;
        check_texts(batch.texts, None)?;
        batch.images.features(b, self.image_dim())
    }

    /// The config it was made with.
    pub fn config(&self) -> &HalConfig {
        &self.config
    }

    /// The encoders.
    pub fn encoders(&self) -> &Encoders {
        self.learner.module()
    }

    /// The memory.
    pub fn bank(&self) -> &MemoryBank {
        &self.bank
    }

    pub(super) fn image_dim(&self) -> usize {
        self.encoders().image.linear.weight.dims()[0]
    }
}

fn options(config: &HalConfig) -> AdamOptions {
    let clip = config.train.grad_clip;
    AdamOptions { clip: (clip > 0.0).then_some(clip), ..AdamOptions::default() }
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests;

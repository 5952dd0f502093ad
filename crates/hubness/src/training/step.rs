//! One training step, its scores and its state.

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Device;
use itm_core::encoders::TokenBatch;
use itm_core::{Error, Result, host};
use itm_kernels::{AdamOptions, AdamW, random};

use super::bank::{MemoryBank, chosen_batches};
use super::config::{HalConfig, ModelConfig, Objective};
use super::model::Encoders;
use super::objective::{Negatives, outcome};
use crate::losses::BankScores;

/// Pairs of one step: row i of each belongs to pair i.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// Image features, `[b, image_dim]` row-major, as they stand in the data.
    pub features: &'a [f32],
    /// Word numbers of each caption.
    pub texts: &'a [&'a [u32]],
    /// Image ids, `[b]`.
    pub image_ids: &'a [i64],
    /// Caption numbers, `[b]`: what a memory bank leaves out, and what an audit asks about.
    pub caption_ids: &'a [i64],
}

/// Whether a step should also hand back its negatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observe {
    /// No.
    Off,
    /// Yes, with all scores, for an audit.
    On,
}

/// What a step did.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// The loss before the update.
    pub loss: f64,
    /// Norm of all gradients before clipping.
    pub grad_norm: f64,
    /// Share of the hinges that were active; for the AAAI objectives, of the negatives with scores above e.
    pub active: f64,
    /// Rate of the update.
    pub learning_rate: f64,
    /// Negatives of both directions, if asked for: images as anchors, texts as anchors.
    pub negatives: Option<[Negatives; 2]>,
}

/// A model in training: encoders, optimiser, and the memory bank of the one objective that has one.
///
/// Nothing in a step is random. The same batches in the same order give the same weights.
#[derive(Debug, Clone)]
pub struct Hal {
    pub(super) config: HalConfig,
    pub(super) encoders: Encoders,
    /// Stands in for the encoders while the optimiser has them: parameters that two hold are not updated in place.
    placeholder: Encoders,
    pub(super) optimizer: AdamW,
    pub(super) bank: MemoryBank,
    pub(super) epoch: usize,
    pub(super) steps: u64,
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
        let clip = config.train.grad_clip;
        let options = AdamOptions { clip: (clip > 0.0).then_some(clip), ..AdamOptions::default() };
        let small = ModelConfig { embed_dim: 1, word_dim: 1, ..config.model.clone() };
        Ok(Self {
            placeholder: Encoders::new(&small, 1, 1, seed, &device),
            encoders: Encoders::new(&config.model, image_dim, vocabulary, seed, &device),
            optimizer: AdamW::new(options),
            bank: MemoryBank::default(),
            config: config.clone(),
            epoch: 0,
            steps: 0,
        })
    }

    /// Starts an epoch, counted from 0; the memory bank is dropped.
    ///
    /// With the objective `hal_aaai_bank`, [`remember`](Self::remember) every batch of
    /// [`bank_batches`](Self::bank_batches) before the first step.
    pub fn begin_epoch(&mut self, epoch: usize) {
        self.epoch = epoch;
        self.bank = MemoryBank::default();
    }

    /// The captions, of so many, whose pairs make this epoch's bank, batch by batch: none in the first epoch, and none
    /// for objectives without a bank. A function of the config's seed and the epoch.
    pub fn bank_batches(&self, captions: usize) -> Vec<Vec<usize>> {
        if self.config.loss.objective != Objective::HalAaaiBank || self.epoch == 0 {
            return vec![];
        }
        let seed = random::derive(self.config.train.seed, (1 << 32) | self.epoch as u64);
        chosen_batches(captions, self.config.train.batch, self.config.bank.mb_rate, seed)
    }

    /// Adds the pairs of a batch to the bank, as the encoders see them now in evaluation mode.
    ///
    /// # Panics
    /// If the parts of the batch differ in their number of rows, or a text has no word or one
    /// outside the vocabulary.
    pub fn remember(&mut self, batch: &Batch) {
        batch.check(self.image_dim());
        let model = self.encoders.valid();
        let texts = model.texts(&TokenBatch::new(batch.texts));
        self.bank.push(model.images(batch.features), texts, batch.caption_ids);
    }

    /// One update of the encoders.
    ///
    /// # Errors
    /// If the loss or the norm of its gradients is not finite: the message names epoch and step, and the encoders are as
    /// they were.
    ///
    /// # Panics
    /// If the parts of the batch differ in their number of rows, or a text has no word or one
    /// outside the vocabulary.
    pub fn step(&mut self, batch: &Batch, observe: Observe) -> Result<StepReport> {
        batch.check(self.image_dim());
        let images = self.encoders.images(batch.features);
        let texts = self.encoders.texts(&TokenBatch::new(batch.texts));
        let bank = match self.bank.is_empty() {
            true => BankScores::default(),
            false => {
                let (v, w) = (images.clone().inner(), texts.clone().inner());
                self.bank.scores(v, w, batch.caption_ids)
            }
        };
        let scores = self.encoders.scores(images, texts);
        let outcome = outcome(&self.config, scores.clone(), batch.image_ids, &bank);
        let negatives = (observe == Observe::On)
            .then(|| outcome.negatives(&self.config, batch, &scores.clone().inner()));
        drop(scores);
        let active = outcome.active;
        let loss = f64::from(host(outcome.loss.clone())[0]);
        let place = format!("epoch {}, step {}", self.epoch, self.steps);
        if !loss.is_finite() {
            return Err(Error::invalid(place, "a finite loss", loss));
        }
        let grads = GradientsParams::from_grads(outcome.loss.backward(), &self.encoders);
        let learning_rate = self.config.train.rate(self.epoch);
        drop(outcome); // its graph would hold the parameters that are updated in place
        let encoders = std::mem::replace(&mut self.encoders, self.placeholder.clone());
        let (encoders, grad_norm) = self.optimizer.step(encoders, grads, learning_rate);
        self.encoders = encoders;
        if !grad_norm.is_finite() {
            return Err(Error::invalid(place, "gradients of a finite norm", grad_norm));
        }
        self.steps += 1;
        Ok(StepReport { loss, grad_norm, active, learning_rate, negatives })
    }

    /// Width d of an embedding.
    pub fn width(&self) -> usize {
        self.config.model.embed_dim
    }

    /// The config it was made with.
    pub fn config(&self) -> &HalConfig {
        &self.config
    }

    /// The encoders.
    pub fn encoders(&self) -> &Encoders {
        &self.encoders
    }

    /// The memory.
    pub fn bank(&self) -> &MemoryBank {
        &self.bank
    }

    /// Epoch of the last [`begin_epoch`](Self::begin_epoch), and updates made in all.
    pub fn progress(&self) -> (usize, u64) {
        (self.epoch, self.steps)
    }

    pub(super) fn image_dim(&self) -> usize {
        self.encoders.image.linear.weight.dims()[0]
    }
}

impl Batch<'_> {
    fn check(&self, image_dim: usize) {
        let b = self.image_ids.len();
        assert!(b > 0, "a batch has at least one pair");
        assert_eq!(self.features.len(), b * image_dim, "features are [{b}, {image_dim}]");
        assert_eq!(self.texts.len(), b, "one text a pair");
        assert_eq!(self.caption_ids.len(), b, "one caption number a pair");
    }
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests;

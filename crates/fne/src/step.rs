//! One training step, its scores and its state.

mod objective;
mod parts;

use burn::module::Module;
use burn::tensor::Device;
use itm_core::{Error, Result, ema};
use itm_kernels::{AdamOptions, AdamW};

use self::objective::Kept;
use self::parts::Parts;
use crate::audit::Observation;
use crate::bank::{Bank, check_ids};
use crate::config::FneConfig;
use crate::host::host;
use crate::model::{Encoders, derive, drop_words};
use crate::statistics::{Snapshot, Statistics};

/// Pairs of one step: row i of each belongs to pair i.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// Image features, `[b, image_dim]` row-major, as they stand in the data.
    pub features: &'a [f32],
    /// Word numbers of each caption; 1 stands for an unknown word.
    pub texts: &'a [&'a [u32]],
    /// Image ids, `[b]`; anything but −100.
    pub image_ids: &'a [i64],
    /// Caption numbers, `[b]`; for audits.
    pub caption_ids: &'a [i64],
}

/// Whether a step should also hand back its candidates.
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
    /// Share of this step's hinges that were active.
    pub active: f64,
    /// Rate of the update.
    pub learning_rate: f64,
    /// Statistics after this batch.
    pub statistics: Snapshot,
    /// Candidates and choices, if asked for and this step's negatives came one per anchor.
    pub observation: Option<Observation>,
}

/// A model in training: encoders, momentum encoders, bank, statistics, optimiser.
///
/// [`step`](Self::step) has the order of the released code: forward, momentum update, loss, enqueue, clipped AdamW. What
/// is random in it is a function of the seed given to it.
#[derive(Debug, Clone)]
pub struct Fne {
    pub(crate) config: FneConfig,
    pub(crate) online: Encoders,
    pub(crate) momentum: Encoders,
    pub(crate) optimizer: AdamW,
    pub(crate) bank: Bank,
    pub(crate) statistics: Statistics,
    pub(crate) epoch: usize,
    pub(crate) steps: u64,
}

/// Streams of a step's seed.
mod stream {
    pub(super) const WORDS: u64 = 1;
    pub(super) const ONLINE: u64 = 2;
    pub(super) const MOMENTUM: u64 = 3;
    pub(super) const IMAGE_TO_TEXT: u64 = 4;
    pub(super) const TEXT_TO_IMAGE: u64 = 5;
}

impl Fne {
    /// Random encoders, momentum copies of them, an unwritten bank: a function of `seed`.
    ///
    /// `device` is one without autodiff or with; the step differentiates by itself.
    ///
    /// # Errors
    /// If the config holds a value nothing can be trained with.
    pub fn new(
        config: &FneConfig,
        image_dim: usize,
        vocabulary: usize,
        device: &Device,
        seed: u64,
    ) -> Result<Self> {
        config.validate()?;
        let device = if device.is_autodiff() { device.clone() } else { device.clone().autodiff() };
        let online = Encoders::new(&config.model, image_dim, vocabulary, seed, &device);
        let sampler = &config.sampler;
        Ok(Self {
            momentum: online.clone().valid(),
            online,
            optimizer: AdamW::new(AdamOptions {
                weight_decay: config.train.weight_decay,
                clip: Some(config.train.grad_clip),
                ..AdamOptions::default()
            }),
            bank: Bank::new(sampler.bank_size, config.model.embed_dim, derive(seed, 3)),
            statistics: Statistics::new(sampler.variance, sampler.reset),
            config: config.clone(),
            epoch: 0,
            steps: 0,
        })
    }

    /// Starts an epoch, counted from 0: statistics start anew, the bank stays.
    pub fn begin_epoch(&mut self, epoch: usize) {
        self.epoch = epoch;
        self.statistics.begin_epoch();
    }

    /// One update of the online encoders.
    ///
    /// # Errors
    /// If an image id is −100, or the loss or the norm of its gradients is not finite: the message names epoch and step,
    /// and the online encoders are as they were.
    ///
    /// # Panics
    /// If the parts of the batch differ in their number of rows, or a text has no word or one
    /// outside the vocabulary.
    pub fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<StepReport> {
        let b = batch.check(&self.config, self.online.image.linear.weight.dims()[0])?;
        let train = self.config.train.clone();
        let mut features = batch.features.to_vec();
        let dim = features.len() / b;
        features.chunks_exact_mut(dim).for_each(|row| self.config.model.features.apply(row));
        let parts = if train.word_dropout > 0.0 {
            let texts = drop_words(batch.texts, train.word_dropout, derive(seed, stream::WORDS));
            Parts::new(&features, &texts, train.micro_batch, train.dropout)
        } else {
            Parts::new(&features, batch.texts, train.micro_batch, train.dropout)
        };
        let noise = derive(seed, stream::ONLINE);
        let embedded = parts.embed(&self.online, noise);
        let (images, texts) = (embedded.images.clone(), embedded.texts.clone());
        let has_momentum = self.config.sampler.has_momentum();
        if has_momentum {
            let m = self.config.sampler.momentum;
            // Moved out and in: it is averaged in place if nobody else holds it.
            let momentum = std::mem::replace(&mut self.momentum, self.online.clone());
            self.momentum = ema(momentum, &self.online, m);
        }

        let (loss, active, observation) = if self.config.sampler.in_batch(self.epoch) {
            self.in_batch(batch, images, texts, observe)
        } else if has_momentum {
            let [own_images, own_texts] =
                parts.embed_plainly(&self.momentum, derive(seed, stream::MOMENTUM));
            let kept = Kept { images: own_images, texts: own_texts };
            self.with_memory(batch, images, texts, &kept, seed, observe)?
        } else {
            self.without_memory(batch, images, texts, seed, observe)
        };

        let value = f64::from(host(loss.clone())[0]);
        if !value.is_finite() {
            let place = format!("epoch {}, step {}", self.epoch, self.steps);
            return Err(Error::invalid(place, "a finite loss", value));
        }
        let grads = parts.gradients(&self.online, &embedded, &loss, noise);
        drop((embedded, loss)); // or the graph would hold the parameters that are updated in place
        let learning_rate = train.rate(self.epoch);
        let online = std::mem::replace(&mut self.online, self.momentum.clone()); // as above
        let (online, grad_norm) = self.optimizer.step(online, grads, learning_rate);
        self.online = online;
        if !grad_norm.is_finite() {
            let place = format!("epoch {}, step {}", self.epoch, self.steps);
            return Err(Error::invalid(place, "gradients of a finite norm", grad_norm));
        }
        self.steps += 1;
        let statistics = self.statistics.snapshot();
        Ok(StepReport { loss: value, grad_norm, active, learning_rate, statistics, observation })
    }

    /// Width d of an embedding.
    pub fn width(&self) -> usize {
        self.config.model.embed_dim
    }

    /// The config it was made with.
    pub fn config(&self) -> &FneConfig {
        &self.config
    }

    /// The statistics now.
    pub fn statistics(&self) -> Snapshot {
        self.statistics.snapshot()
    }

    /// The memory.
    pub fn bank(&self) -> &Bank {
        &self.bank
    }

    /// The encoders that learn.
    pub fn online(&self) -> &Encoders {
        &self.online
    }

    /// Their moving average.
    pub fn momentum(&self) -> &Encoders {
        &self.momentum
    }

    /// Epoch of the last [`begin_epoch`](Self::begin_epoch), and updates made in all.
    pub fn progress(&self) -> (usize, u64) {
        (self.epoch, self.steps)
    }
}

impl Batch<'_> {
    /// The number of pairs.
    fn check(&self, config: &FneConfig, image_dim: usize) -> Result<usize> {
        let b = self.image_ids.len();
        assert!(b > 0, "a batch has at least one pair (config: {})", config.train.batch);
        assert_eq!(self.features.len(), b * image_dim, "features are [{b}, {image_dim}]");
        assert_eq!(self.texts.len(), b, "one text a pair");
        assert_eq!(self.caption_ids.len(), b, "one caption number a pair");
        check_ids(self.image_ids)?;
        Ok(b)
    }
}

#[cfg(test)]
mod tests;

//! One training step, its scores and its state.

mod objective;
mod parts;

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::Device;
use itm_core::weights::LoadReport;
use itm_core::{Error, Result, ema, host};
use itm_kernels::{AdamOptions, AdamW};

use self::objective::{Chance, Kept};
use self::parts::Parts;
use crate::audit::Observation;
use crate::bank::{Bank, check_ids};
use crate::config::{DropoutAfterValidation, Exclude, FneConfig};
use crate::model::{Dropout, Encoders, Images, derive, drop_words};
use crate::statistics::{Snapshot, Statistics};

/// Pairs of one step: row i of each belongs to pair i.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// Features or pixels, as the configuration's kind of images.
    pub images: Images<'a>,
    /// Word numbers of each caption; 1 stands for an unknown word. BERT's pieces from `[CLS]` to `[SEP]`, not cut.
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
    steps_per_epoch: Option<u64>,
    truth: Option<Truth>,
    loaded: Vec<LoadReport>,
}

/// Whether an image and a caption, by their ids, match.
#[derive(Clone)]
struct Truth(Arc<dyn Fn(i64, i64) -> bool + Send + Sync>);

impl Truth {
    fn holds(&self, image: i64, caption: i64) -> bool {
        (self.0)(image, caption)
    }
}

impl std::fmt::Debug for Truth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Truth")
    }
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
    /// Random encoders or published ones, momentum copies of them, an unwritten bank: a function of `seed`.
    ///
    /// `image_dim` is the width of a row of features; with pictures nobody asks for it. `vocabulary` counts words or word
    /// pieces. `device` is one without autodiff or with; the step differentiates by itself.
    ///
    /// # Errors
    /// If the config holds a value nothing can be trained with, or published weights are not to be found, not whole, or of
    /// another size than the config says.
    pub fn new(
        config: &FneConfig,
        image_dim: usize,
        vocabulary: usize,
        device: &Device,
        seed: u64,
    ) -> Result<Self> {
        config.validate()?;
        let device = if device.is_autodiff() { device.clone() } else { device.clone().autodiff() };
        let (online, loaded) = Encoders::open(&config.model, image_dim, vocabulary, seed, &device)?;
        let (sampler, d) = (&config.sampler, config.model.embed_dim);
        Ok(Self {
            momentum: online.clone().valid(),
            online,
            optimizer: AdamW::new(AdamOptions {
                weight_decay: config.train.weight_decay,
                clip: Some(config.train.grad_clip),
                ..AdamOptions::default()
            }),
            bank: Bank::new(sampler.bank_size, d, derive(seed, 3), &device.inner()),
            statistics: Statistics::new(sampler.variance, sampler.reset),
            config: config.clone(),
            epoch: 0,
            steps: 0,
            steps_per_epoch: None,
            truth: None,
            loaded,
        })
    }

    /// Tells how many steps an epoch has: `dropout_after_validation = "off"` counts by it.
    pub fn with_epochs_of(self, steps: usize) -> Self {
        Self { steps_per_epoch: Some(steps as u64), ..self }
    }

    /// Tells which image and caption, by their ids, match: [`Exclude::Truth`](crate::Exclude::Truth) leaves these out.
    pub fn with_truth(self, truth: impl Fn(i64, i64) -> bool + Send + Sync + 'static) -> Self {
        Self { truth: Some(Truth(Arc::new(truth))), ..self }
    }

    /// Starts an epoch, counted from 0: statistics start anew, the bank stays.
    pub fn begin_epoch(&mut self, epoch: usize) {
        self.epoch = epoch;
        self.statistics.begin_epoch();
    }

    /// One update of the online encoders.
    ///
    /// # Errors
    /// If [`Exclude::Truth`] is asked for and no truth was told, an image id is −100, a caption has no word or more than BERT
    /// has positions, or the loss or the norm of its gradients is not finite: the message names epoch and step, and the
    /// online encoders are as they were.
    ///
    /// # Panics
    /// If the parts of the batch differ in their number of rows, the images are of another kind or size than the
    /// configuration says, or a word's number is outside the vocabulary.
    pub fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<StepReport> {
        self.step_by(batch, &Chance::seeded(seed), observe)
    }

    /// [`step`](Self::step), with negatives that may be given.
    fn step_by(&mut self, batch: &Batch, chance: &Chance, observe: Observe) -> Result<StepReport> {
        let (seed, b) = (chance.seed, batch.check(&self.online)?);
        if self.config.sampler.exclude == Exclude::Truth && self.truth.is_none() {
            return Err(Error::invalid(
                "sampler.exclude",
                "the truth of the training pairs",
                "none",
            ));
        }
        let train = self.config.train.clone();
        let images = self.config.model.image.prepared(batch.images, b);
        let mut texts: Vec<_> =
            batch.texts.iter().map(|text| self.config.model.text.training(text)).collect();
        check_texts(&texts, &self.online)?; // as they were cut, P3
        if train.word_dropout > 0.0 {
            texts = drop_words(&texts, train.word_dropout, derive(seed, stream::WORDS));
        }
        let parts = Parts::new(&images, &texts, train.micro_batch, &self.config.model.text);
        let dropped = self.drops()?;
        let noise = |stream| match dropped {
            true => Dropout::On { share: train.dropout, seed: derive(seed, stream) },
            false => Dropout::Off,
        };

        // Before the online encoders' graph is there: its activations and those of this pass are not held together.
        let has_momentum = self.config.sampler.has_momentum();
        let in_batch = self.config.sampler.in_batch(self.epoch);
        if has_momentum {
            let m = self.config.sampler.momentum;
            // Moved out and in: it is averaged in place if nobody else holds it.
            let momentum = std::mem::replace(&mut self.momentum, self.online.clone());
            self.momentum = ema(momentum, &self.online, m);
        }
        let kept = (has_momentum && !in_batch).then(|| {
            let [images, texts] = parts.joined(&self.momentum, noise(stream::MOMENTUM));
            Kept { images, texts }
        });
        let noise = noise(stream::ONLINE);
        let embedded = parts.embed(&self.online, noise);
        let (images, texts) = (embedded.images.clone(), embedded.texts.clone());
        let (loss, active, observation) = match kept {
            _ if in_batch => self.in_batch(batch, images, texts, observe),
            Some(kept) => self.with_memory(batch, images, texts, kept, chance, observe)?,
            None => self.without_memory(batch, images, texts, chance, observe),
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

    /// Whether the next step drops anything: P24.
    ///
    /// ```text
    /// off   if a multiple of ⌊n/3⌋ lies in (e·n, k],   k steps made, e the epoch, n its steps
    /// ```
    fn drops(&self) -> Result<bool> {
        if self.config.train.dropout_after_validation == DropoutAfterValidation::On {
            return Ok(true);
        }
        let Some(n) = self.steps_per_epoch else {
            let key = "train.dropout_after_validation";
            let got = "\"off\" for epochs of unknown length";
            return Err(Error::invalid(key, "the number of steps of an epoch", got));
        };
        let (third, begin) = (n / 3, self.epoch as u64 * n);
        Ok(third == 0 || self.steps / third <= begin / third)
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

    /// What was read of published weights.
    pub fn loaded(&self) -> &[LoadReport] {
        &self.loaded
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
    fn check(&self, online: &Encoders) -> Result<usize> {
        let b = self.image_ids.len();
        assert!(b > 0, "a batch has at least one pair");
        if let (Some(dim), Images::Features(values)) = (online.image.feature_width(), self.images) {
            assert_eq!(values.len(), b * dim, "features are [{b}, {dim}]");
        }
        assert_eq!(self.texts.len(), b, "one text a pair");
        assert_eq!(self.caption_ids.len(), b, "one caption number a pair");
        check_ids(self.image_ids)?;
        Ok(b)
    }
}

/// Refuses captions without a word, and those with more than there are positions.
pub(crate) fn check_texts<C: AsRef<[u32]>>(texts: &[C], online: &Encoders) -> Result<()> {
    let most = online.text.most_words().unwrap_or(usize::MAX);
    let bad = texts.iter().position(|text| !(1..=most).contains(&text.as_ref().len()));
    let Some(row) = bad else { return Ok(()) };
    let (place, got) = (format!("caption {row} of the batch"), texts[row].as_ref().len());
    let expected = match got {
        0 => "at least one word; [CLS] and [SEP] or <unk> for a text without any".to_owned(),
        _ => format!("at most {most} word pieces"),
    };
    Err(Error::invalid(place, expected, got))
}

#[cfg(test)]
mod tests;

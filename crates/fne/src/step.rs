//! One training step.

mod objective;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use itm_core::audit::NegativeSet;
use itm_core::contrastive::Contrast;
use itm_core::learn::{Batch, Images, Numbers, Observe, Step, Trainer, precision_of};
use itm_core::start::{InputStatistics, Start};
use itm_core::weights::LoadReport;
use itm_core::{Error, Relevance, Result, ema};
use itm_kernels::{AdamOptions, AdamW, Noise};

use self::objective::entries;
use crate::bank::Bank;
use crate::checks;
use crate::config::{self, DropoutAfterValidation, Enqueue, Exclude, FneConfig};
use crate::statistics::{Snapshot, Statistics};
use itm_core::towers::{CaptionInput, Encoders, StepInputs, TowerDropout, derive, drop_words};

pub(crate) use self::objective::Chance;

/// A model in training: encoders, momentum encoders, bank, statistics, optimiser. Train it with the functions of
/// [`Method`](itm_core::learn::Method).
///
/// A step has the order of the released code: forward, momentum update, loss, enqueue, clipped AdamW. Everything random in
/// it is a function of the step's seed.
///
/// A refused step changes nothing: encoders, momentum encoders, bank, statistics, optimiser and counts keep their bits. So a loop
/// can skip that batch and go on, and the state that it saves then is the state before the step.
///
/// # Departures
/// With [`Enqueue::After`], a batch is enqueued after the update, not before the update. No number differs, because the loss has
/// already read the bank.
#[derive(Debug, Clone)]
pub struct Fne {
    pub(crate) config: FneConfig,
    /// The online encoders.
    pub(crate) learner: Trainer<Encoders>,
    pub(crate) momentum: Encoders,
    pub(crate) bank: Bank,
    pub(crate) statistics: Statistics,
    truth: Option<Relevance>,
    loaded: Vec<LoadReport>,
    replicas: Vec<Device>,
}

/// Streams of a step's seed.
mod stream {
    pub(super) const WORDS: u64 = 1;
    pub(super) const ONLINE: u64 = 2;
    pub(super) const MOMENTUM: u64 = 3;
    /// Images as anchors, texts as anchors.
    pub(super) const DRAWS: [u64; 2] = [4, 5];
}

/// The loss of a step's embeddings.
struct StepLoss {
    value: Tensor<1>,
    /// Share of the hinges above 0.
    active: f64,
    negatives: Option<[NegativeSet; 2]>,
}

impl Fne {
    /// Random or published encoders, momentum copies of them, and an unwritten bank. All are functions of `config.train.seed`.
    ///
    /// `image_dim` is the width of a row of features; it is unused for pictures. `vocabulary` counts words or word pieces: their
    /// numbers are below it. `device` may be with or without autodiff; the step differentiates in both cases.
    ///
    /// # Errors
    /// If the config holds a value that cannot be trained with, a size is 0, memory cannot hold the bank, published weights are
    /// missing, damaged, or of another size than the config says, or the device cannot compute in `train.precision`.
    pub fn new(
        config: &FneConfig,
        image_dim: usize,
        vocabulary: usize,
        device: &Device,
    ) -> Result<Self> {
        config.validate()?;
        let seed = config.train.seed;
        let device = if device.is_autodiff() { device.clone() } else { device.clone().autodiff() };
        let (mut online, loaded) =
            Encoders::open(&config.model, image_dim, vocabulary, seed, &device)?;
        precision_of("train.precision", config.train.precision, &device)?;
        online = online.with_precision(config.train.precision);
        online = online.with_learning(&config.train.parts, &config.model, seed)?;
        online.contrast = config.train.contrast().map(|options| Contrast::new(options, &device));
        if config.train.loss == config::Loss::InfoNce {
            online.contrast = online.contrast.map(Contrast::without_bias);
        }
        let (sampler, rows) = (&config.sampler, config.sampler.bank_size);
        let bank = Bank::within(rows, config.model.embed_dim, derive(seed, 3), &device.inner());
        let large = || Error::invalid("sampler.bank_size", "rows that memory can hold", rows);
        Ok(Self {
            momentum: online.clone().valid(),
            learner: learner(online, config),
            bank: bank.ok_or_else(large)?,
            statistics: Statistics::new(sampler.variance, sampler.reset),
            config: config.clone(),
            truth: None,
            loaded,
            replicas: vec![],
        })
    }

    /// Gives parts of a step to further devices of the same kind: part k of `train.micro_batch` pairs is on device k mod n, and device 0 is
    /// the one of [`new`](Self::new). The numbers stay the same, bit for bit.
    #[must_use]
    pub fn with_replicas(self, replicas: &[Device]) -> Self {
        Self { replicas: replicas.to_vec(), ..self }
    }

    /// Sets the number of steps per epoch, which `dropout_after_validation = "off"` and `schedule = "cosine"` need.
    pub fn with_epochs_of(mut self, steps: usize) -> Self {
        self.learner.steps_of_epoch = Some(steps as u64);
        self
    }

    /// Gives the encoders the statistics of the training data: the deviation of the features and the idf of the stems. Call it
    /// before the first step.
    ///
    /// # Errors
    /// If the number of idf values is not the number of stems, a number is not above 0, or a step was made.
    pub fn with_inputs(self, inputs: &InputStatistics) -> Result<Self> {
        self.with_online(|online| online.with_inputs(inputs))
    }

    /// Begins with these maps instead of random weights. Call it before the first step.
    ///
    /// # Errors
    /// If the encoders are not a map of features and a bag of words, the maps are of another shape, or a step was made.
    pub fn with_start(self, start: &Start) -> Result<Self> {
        self.with_online(|online| online.with_start(start))
    }

    fn with_online(self, change: impl FnOnce(Encoders) -> Result<Encoders>) -> Result<Self> {
        let learner = self.learner.changed(change)?;
        Ok(Self { momentum: learner.module().clone().valid(), learner, ..self })
    }

    /// Sets which images and captions match, by their ids. With [`Exclude::Truth`](crate::Exclude::Truth) they are never
    /// negatives of each other.
    pub fn with_truth(self, truth: Relevance) -> Self {
        Self { truth: Some(truth), ..self }
    }

    /// One update of the online encoders. `chance` may give the negatives.
    pub(crate) fn step_by(
        &mut self,
        batch: &Batch,
        chance: &Chance,
        observe: Observe,
    ) -> Result<Step> {
        let (seed, b) = (chance.seed, self.check(batch)?);
        let (train, model) = (self.config.train.clone(), &self.config.model);
        let replicas = self.replicas.clone();
        let images = model.image.prepared(batch.images, b);
        let mut texts: Vec<_> = batch.texts.iter().map(|text| model.text.training(text)).collect();
        let text = &self.online().text;
        text.check(&texts)?; // after the cut, P3
        let (epoch, done) = (self.learner.epoch, self.learner.done(train.epochs));
        let rate = train.schedule.rate(train.learning_rate, train.rate(epoch), done)?;
        if train.word_dropout > 0.0 && text.has_unknown_word() {
            texts = drop_words(&texts, train.word_dropout, derive(seed, stream::WORDS));
        }
        let parts = StepInputs::new(&images, &texts, train.micro_batch, (text, &model.text))
            .with_replicas(&replicas);
        let dropped = self.drops()?;
        let (share, words) = (train.dropout, train.word_dropout);
        let noise = |stream| match dropped {
            true => TowerDropout { share, words, noise: Noise::Seeded(derive(seed, stream)) },
            false => TowerDropout::OFF,
        };

        // This pass runs before the online encoders build their graph, so that the activations of both are not held at once. It
        // uses a temporary average: the momentum encoders move only when it is certain that the update will be made.
        let (has_momentum, m) = (self.config.has_momentum(), self.config.sampler.momentum);
        let in_batch = self.config.sampler.in_batch(epoch);
        let kept = (has_momentum && !in_batch).then(|| {
            let averaged = ema(self.momentum.clone(), self.online(), m); // Eq. 14
            parts.joined(&averaged, &encoder(noise(stream::MOMENTUM)))
        });
        let encode = encoder(noise(stream::ONLINE));
        let embedded = parts.embed(self.online(), &encode);
        let both = [embedded.images.clone(), embedded.texts.clone()];

        let seen = self.statistics.snapshot();
        let enqueue = self.config.sampler.enqueue;
        let before = kept.is_some() && enqueue == Enqueue::Before;
        let overwritten = before.then(|| self.bank.oldest(b));
        let loss = match &kept {
            _ if train.loss != config::Loss::Triplet => Ok(self.contrastive(batch, both)),
            _ if in_batch => self.in_batch(batch, both, observe),
            Some(kept) => self.with_memory(batch, both, kept.clone(), chance, observe),
            None => self.without_memory(batch, both, chance, observe),
        };
        let updated = loss.and_then(|StepLoss { value, active, negatives }| {
            let momentum = &mut self.momentum;
            let [loss, grad_norm] = self.learner.update(rate, value, |online, loss| {
                let grads = parts.gradients(online, embedded, loss, &encode);
                if has_momentum && AdamW::norm(online, &grads).is_finite() {
                    // Moved out and in, so that `ema` works in place if nothing else holds the weights.
                    let before = std::mem::replace(momentum, online.clone());
                    *momentum = ema(before, online, m); // Eq. 14, before the optimiser
                }
                grads
            })?;
            self.learner.adjust(Encoders::bounded);
            let numbers = numbers(rate, &self.statistics.snapshot());
            Ok(Step { loss, grad_norm, active, numbers, negatives })
        });
        if updated.is_err() {
            self.statistics.restore(seen);
            overwritten.into_iter().for_each(|rows| self.bank.restore(rows));
            return updated;
        }
        if let Some(kept) = kept.filter(|_| enqueue == Enqueue::After) {
            self.bank.enqueue(entries(kept, batch));
        }
        updated
    }

    /// Refuses a batch that cannot be trained with. Returns the number of its pairs.
    fn check(&self, batch: &Batch) -> Result<usize> {
        let b = batch.pairs()?;
        self.online().image.check(batch.images, b)?;
        checks::ids("batch row", batch.image_ids)?;
        if self.config.sampler.exclude == Exclude::Truth {
            let missing =
                || Error::invalid("sampler.exclude", "the truth of the training pairs", "none");
            let truth = self.truth.as_ref().ok_or_else(missing)?;
            let known = |(&i, &c): (&i64, &i64)| {
                i == crate::NEVER || (i as usize) < truth.images() && (c as usize) < truth.texts()
            };
            for (what, ids, captions) in [
                ("batch", batch.image_ids, batch.caption_ids),
                ("bank", self.bank.ids(), self.bank.captions()),
            ] {
                if let Some(row) = ids.iter().zip(captions).position(|pair| !known(pair)) {
                    let got = format!("image {}, caption {}", ids[row], captions[row]);
                    let place = format!("{what} row {row}");
                    return Err(Error::invalid(place, "ids that the truth knows", got));
                }
            }
        }
        Ok(b)
    }

    /// Whether the next step has dropout: P24.
    ///
    /// ```text
    /// off   if a multiple of ⌊n/3⌋ lies in (e·n, k],   k steps made, e the epoch, n its steps
    /// ```
    fn drops(&self) -> Result<bool> {
        if self.config.train.dropout_after_validation == DropoutAfterValidation::On {
            return Ok(true);
        }
        let n = self.learner.steps_of_epoch.ok_or_else(|| {
            let (key, got) =
                ("train.dropout_after_validation", "\"off\" for epochs of unknown length");
            Error::invalid(key, "the number of steps of an epoch", got)
        })?;
        let (third, begin) = (n / 3, self.learner.epoch as u64 * n);
        Ok(third == 0 || self.learner.steps() / third <= begin / third)
    }

    /// The config that this model was made with.
    pub fn config(&self) -> &FneConfig {
        &self.config
    }

    /// The statistics after the last step.
    pub fn statistics(&self) -> Snapshot {
        self.statistics.snapshot()
    }

    /// A report of each file of published weights that was read.
    pub fn loaded(&self) -> &[LoadReport] {
        &self.loaded
    }

    /// The memory of momentum embeddings.
    pub fn bank(&self) -> &Bank {
        &self.bank
    }

    /// The encoders that learn.
    pub fn online(&self) -> &Encoders {
        self.learner.module()
    }

    /// The moving average of the encoders that learn, Eq. 14. Without a bank, or with a contrastive loss, nothing reads it, and it stays
    /// at their start.
    pub fn momentum(&self) -> &Encoders {
        &self.momentum
    }
}

/// Encodes the parts of a batch with this dropout.
fn encoder(
    dropout: TowerDropout,
) -> impl Fn(&Encoders, Images, &CaptionInput, u64) -> [Tensor<2>; 2] {
    move |model, images, captions, number| {
        let dropout = dropout.of_part(number);
        [model.image.encode(images, dropout), model.text.encode(captions, dropout)]
    }
}

fn learner(online: Encoders, config: &FneConfig) -> Trainer<Encoders> {
    let (weight_decay, clip) = (config.train.weight_decay, Some(config.train.grad_clip));
    let options = AdamOptions { weight_decay, clip, ..AdamOptions::default() };
    online.learner(options, config.train.layer_decay)
}

/// The learning rate and the current statistics.
fn numbers(rate: f64, seen: &Snapshot) -> Numbers {
    let mut numbers = Numbers::from([("learning_rate", rate)]);
    for (name, moments) in [("positive", seen.positive), ("negative", seen.negative)] {
        let both = [("mean", moments.mean), ("deviation", moments.variance().sqrt())];
        // One value has a mean but no deviation.
        for (what, value) in both.into_iter().take(moments.count as usize) {
            numbers.add(&Numbers::from([(&*format!("{name}_{what}"), value)]));
        }
    }
    numbers
}

#[cfg(test)]
mod tests;

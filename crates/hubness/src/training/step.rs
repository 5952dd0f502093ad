//! One training step.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use itm_core::Result;
use itm_core::encoders::InputDropout;
use itm_core::learn::{Batch, Images, Numbers, Observe, Step, Trainer};
use itm_core::start::{InputStatistics, Start};
use itm_core::towers::{CaptionInput, Encoders, ImageInput, StepInputs};
use itm_core::weights::LoadReport;
use itm_kernels::{AdamOptions, Noise, random};

use super::bank::{MemoryBank, chosen_batches};
use super::config::{HalConfig, HalModelConfig, Objective};
use super::model::encoders;
use super::objective::outcome;

/// A model in training: encoders, optimiser, and a memory bank, which only one objective has. It is trained as a
/// [`Method`](itm_core::learn::Method).
///
/// Only dropout is random; the seed of a step decides it. The same batches in the same order give the same weights.
#[derive(Debug, Clone)]
pub struct Hal {
    pub(super) config: HalConfig,
    pub(super) learner: Trainer<Encoders>,
    pub(super) bank: MemoryBank,
    loaded: Vec<LoadReport>,
    replicas: Vec<Device>,
}

impl Hal {
    /// Random encoders, a function of `seed`, or published ones.
    ///
    /// `image_dim` is the width of a row of features; it is unused for pictures. `vocabulary` counts words, stems or word pieces.
    /// `device` may come with or without autodiff; where it is missing, it is added.
    ///
    /// # Errors
    /// If the config holds a value that training cannot use, published weights are missing, damaged, or of another size than the config
    /// says, or the device cannot compute in `train.precision`.
    pub fn new(
        config: &HalConfig,
        image_dim: usize,
        vocabulary: usize,
        device: &Device,
        seed: u64,
    ) -> Result<Self> {
        config.validate()?;
        let device = if device.is_autodiff() { device.clone() } else { device.clone().autodiff() };
        let (encoders, loaded) = encoders(config, image_dim, vocabulary, seed, &device)?;
        let learner = learner(encoders, config);
        let (bank, config) = (MemoryBank::default(), config.clone());
        Ok(Self { learner, bank, config, loaded, replicas: vec![] })
    }

    /// Gives parts of a step to further devices of the same kind: part k of `train.micro_batch` pairs is on device k mod n, and device 0 is
    /// the one of [`new`](Self::new). The numbers stay the same, bit for bit.
    #[must_use]
    pub fn with_replicas(self, replicas: &[Device]) -> Self {
        Self { replicas: replicas.to_vec(), ..self }
    }

    /// Sets the number of steps per epoch, which `schedule = "cosine"` needs.
    pub fn with_epochs_of(mut self, steps: usize) -> Self {
        self.learner.steps_of_epoch = Some(steps as u64);
        self
    }

    /// Sets the statistics of the training data that the encoders hold: the deviation of the features and the idf of the
    /// stems. Call it before the first step.
    ///
    /// # Errors
    /// If the number of idf values is not the number of stems, a value is not above 0, or a step was made.
    pub fn with_inputs(self, inputs: &InputStatistics) -> Result<Self> {
        Ok(Self { learner: self.learner.changed(|encoders| encoders.with_inputs(inputs))?, ..self })
    }

    /// Begins with these maps instead of random weights. Call it before the first step.
    ///
    /// # Errors
    /// As [`Encoders::with_start`], and if a step was made.
    pub fn with_start(self, start: &Start) -> Result<Self> {
        Ok(Self { learner: self.learner.changed(|encoders| encoders.with_start(start))?, ..self })
    }

    /// The captions, below `captions`, whose pairs make the bank of this epoch, batch by batch. There are none in the first
    /// epoch and none for objectives without a bank. A function of the config's seed and the epoch.
    pub(super) fn bank_batches(&self, captions: usize) -> Vec<Vec<usize>> {
        let epoch = self.learner.epoch;
        if self.config.loss.objective != Objective::HalAaaiBank || epoch == 0 {
            return vec![];
        }
        let seed = random::derive(self.config.train.seed, (1 << 32) | epoch as u64);
        chosen_batches(captions, self.config.train.batch, self.config.bank.mb_rate, seed)
    }

    /// Adds the pairs of a batch to the bank, as the encoders see them now in evaluation mode.
    pub(super) fn remember(&mut self, batch: &Batch) -> Result<()> {
        let (texts, model) = (self.check(batch)?, self.encoders().valid());
        let input = self.config.model.image.prepared(batch.images, texts.len());
        let encode = encoder(&self.config.model, InputDropout::OFF, InputDropout::OFF);
        let inputs = self.inputs(&input, &texts).with_replicas(&self.replicas);
        let [images, texts] = inputs.joined(&model, &encode);
        self.bank.push(images, texts, batch.caption_ids);
        Ok(())
    }

    /// A batch in parts.
    fn inputs<'a>(&self, images: &'a ImageInput<'a>, texts: &[Vec<u32>]) -> StepInputs<'a> {
        let (config, text) = (&self.config, &self.encoders().text);
        StepInputs::new(images, texts, config.train.micro_batch(), (text, &config.model.text))
    }

    /// One update of the encoders.
    pub(super) fn step_by(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        let texts = self.check(batch)?;
        let (train, model) = (&self.config.train, self.config.model.clone());
        let dropout = |share, part| InputDropout { share, noise: Noise::Seeded(seed).part(part) };
        let input = model.image.prepared(batch.images, texts.len());
        let replicas = self.replicas.clone();
        let inputs = self.inputs(&input, &texts).with_replicas(&replicas);
        let encode = encoder(&model, dropout(train.dropout, 1), dropout(train.word_dropout, 2));
        let embedded = inputs.embed(self.encoders(), &encode);
        let (images, texts) = (embedded.images.clone(), embedded.texts.clone());
        let (v, w) = (images.clone().inner(), texts.clone().inner());
        let bank = self.bank.scores(v, w, batch.caption_ids);
        let scores = model.scores(images, texts);
        let contrast = self.encoders().contrast.as_ref();
        let outcome = outcome(&self.config, contrast, scores.clone(), batch.image_ids, &bank);
        let negatives = (observe == Observe::Negatives)
            .then(|| outcome.negatives(&self.config, batch, &scores.clone().inner()));
        drop(scores); // its graph would hold the parameters that are updated in place
        let (epoch, done) = (self.learner.epoch, self.learner.done(train.epochs));
        let rate = train.schedule.rate(train.learning_rate, train.rate(epoch), done)?;
        let active = outcome.active;
        let [loss, grad_norm] = self.learner.update(rate, outcome.loss, |encoders, loss| {
            inputs.gradients(encoders, embedded, loss, &encode)
        })?;
        self.learner.adjust(Encoders::bounded);
        let numbers = Numbers::from([("learning_rate", rate)]);
        Ok(Step { loss, grad_norm, active, numbers, negatives })
    }

    /// Checks a batch and returns its captions as they are trained.
    fn check(&self, batch: &Batch) -> Result<Vec<Vec<u32>>> {
        let b = batch.pairs()?;
        let texts: Vec<_> =
            batch.texts.iter().map(|text| self.config.model.text.training(text)).collect();
        self.encoders().text.check(&texts)?;
        self.encoders().image.check(batch.images, b)?;
        Ok(texts)
    }

    /// The config that the model was made with.
    pub fn config(&self) -> &HalConfig {
        &self.config
    }

    /// The encoders.
    pub fn encoders(&self) -> &Encoders {
        self.learner.module()
    }

    /// A report of each file of published weights that was read.
    pub fn loaded(&self) -> &[LoadReport] {
        &self.loaded
    }
}

/// Encodes the parts of a batch. Each part has its own masks, and the first has those of an undivided batch.
fn encoder(
    model: &HalModelConfig,
    images: InputDropout,
    texts: InputDropout,
) -> impl Fn(&Encoders, Images, &CaptionInput, u64) -> [Tensor<2>; 2] {
    let of_part = |dropout: InputDropout, number: u64| match number {
        0 => dropout,
        _ => InputDropout { noise: dropout.noise.part(16 + number), ..dropout },
    };
    move |encoders, values, captions, number| {
        let images = model.images(encoders, values, of_part(images, number));
        [images, model.texts(encoders, captions, of_part(texts, number))]
    }
}

fn learner(encoders: Encoders, config: &HalConfig) -> Trainer<Encoders> {
    let train = &config.train;
    let clip = (train.grad_clip > 0.0).then_some(train.grad_clip);
    let weight_decay = train.weight_decay.unwrap_or(0.0);
    let options = AdamOptions { weight_decay, clip, ..AdamOptions::default() };
    encoders.learner(options, train.layer_decay)
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests;

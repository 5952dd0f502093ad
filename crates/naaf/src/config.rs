//! What a config file says: every key is required, an unknown one is an error.

use itm_core::learn::{Schedule as Rates, above_zero, at_least_one, at_least_zero, within};
use itm_core::start::{StartFrom, StartOptions};
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::attention::Attention;
use crate::mining::MiningConfig;

/// Everything [`Naaf`](crate::Naaf) needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NaafConfig {
    /// Encoders, and what becomes of their rows.
    pub model: ModelConfig,
    /// Eq. 6 to 12, or SCAN; of the score `attention`.
    pub attention: Attention,
    /// Eq. 1 to 5, 13 and 14; of negative-aware attention.
    pub mining: MiningConfig,
    /// Steps and rates.
    pub train: TrainConfig,
    /// Eq. 15.
    pub loss: LossConfig,
}

/// Encoders of regions and of words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Width d of the joint space, and of the states of each direction of a BiGRU.
    pub embed_dim: usize,
    /// The weights before the first step: random ones, or the weights of [`Naaf::with_start`](crate::Naaf::with_start).
    pub start: StartFrom,
    /// Which closed form the weights begin with, where `start` asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cca: Option<StartOptions>,
    /// How rows of regions and words become a score.
    pub score: Score,
    /// The map of regions.
    pub region_map: RegionMapKind,
    /// What reads captions.
    pub text: TextKind,
    /// Width of a word vector, for a BiGRU.
    pub word_dim: usize,
    /// What the word vectors of a BiGRU begin with.
    pub word_vectors: VectorsFrom,
    /// Whether the word vectors of a BiGRU stay as they are.
    pub freeze_embedding: bool,
}

/// How rows of regions and words become a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Score {
    /// By `[attention]`.
    Attention,
    /// The cosine of the mean region and the mean word, both means of rows before they get unit length: what attention is compared with.
    Global,
}

/// The map of regions to the joint space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegionMapKind {
    /// Weight uniform in ±√(6 / (in + out)), bias 0.
    Xavier,
    /// `g · V / ‖V‖` with one g for the whole matrix; V and bias uniform in ±1/√in, g = ‖V‖ at first.
    WeightNorm,
}

/// What reads captions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextKind {
    /// Word vectors and a recurrent unit in both directions (the paper).
    Bigru,
    /// A table of word vectors; each word gets the mean of its caption.
    Words,
}

/// What the word vectors of a BiGRU begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorsFrom {
    /// Random numbers, uniform in ±0.1.
    Random,
    /// Ready vectors for the words that have one, by [`Naaf::with_vectors`](crate::Naaf::with_vectors): N13.
    Given,
}

/// The course of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Seed of weights and order.
    pub seed: u64,
    /// Passes over all captions; 0 trains nothing.
    pub epochs: usize,
    /// Pairs per step.
    pub batch: usize,
    /// Of Adam.
    pub learning_rate: f64,
    /// How the rate falls.
    pub schedule: Rates,
    /// Epochs after which the rate is multiplied by `lr_decay`, again and again, with the schedule `steps`.
    pub decay_every: usize,
    /// N14: 0.1, or 0.9 as the paper may be read.
    pub lr_decay: f64,
    /// Largest norm of all gradients together; 0: not clipped.
    pub grad_clip: f64,
    /// Share of the features of regions that is set to 0 in training: the same ones for all regions of an image.
    pub region_dropout: f64,
    /// Share of words whose vector is set to 0 in training.
    pub word_dropout: f64,
}

impl TrainConfig {
    /// The rate of an epoch with the schedule `steps`, counted from 0: `lr · decay^⌊epoch / decay_every⌋`.
    pub fn rate(&self, epoch: usize) -> f64 {
        self.learning_rate * self.lr_decay.powi((epoch / self.decay_every) as i32)
    }
}

/// The loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossConfig {
    /// γ of Eq. 15.
    pub margin: f64,
    /// N16: whether another caption of the same image is no negative.
    pub mask_same_image: bool,
    /// What becomes of the hinges of a batch.
    pub reduction: Reduction,
    /// Epochs of the warm-up.
    pub warmup_epochs: usize,
    /// Their negatives.
    pub warmup_loss: WarmupLoss,
}

/// What becomes of the hinges of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// They are added up (paper): how much the gradient is clipped depends on it.
    Sum,
    /// Their sum is divided by the number of pairs.
    Mean,
}

/// Which hinges count in the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarmupLoss {
    /// The largest of each row and column, as after it.
    Hardest,
    /// All of them. Ours: from random weights, hardest negatives can pull every row to one point.
    Sum,
}

impl LossConfig {
    /// Which hinges count in an epoch.
    pub(crate) fn counts(&self, epoch: usize) -> WarmupLoss {
        if epoch < self.warmup_epochs { self.warmup_loss } else { WarmupLoss::Hardest }
    }
}

impl NaafConfig {
    /// Refuses values that nothing can be trained with.
    ///
    /// # Errors
    /// Names the key, its range and its value.
    pub fn check(&self) -> Result<()> {
        let Self { model, attention, mining, train, loss } = self;
        model.check()?;
        attention.check()?;
        mining.check()?;
        train.check()?;
        at_least_zero("loss.margin", loss.margin)
    }
}

impl TrainConfig {
    fn check(&self) -> Result<()> {
        at_least_one("train.batch", self.batch)?;
        at_least_one("train.decay_every", self.decay_every)?;
        above_zero("train.learning_rate", self.learning_rate)?;
        within("train.lr_decay", self.lr_decay, "in (0, 1]", |x| x > 0.0 && x <= 1.0)?;
        at_least_zero("train.grad_clip", self.grad_clip)?;
        let share = |x: f64| (0.0..1.0).contains(&x);
        within("train.region_dropout", self.region_dropout, "in [0, 1)", share)?;
        within("train.word_dropout", self.word_dropout, "in [0, 1)", share)
    }
}

impl ModelConfig {
    /// The closed form that the weights begin with, if they do.
    pub fn closed_form(&self) -> Option<&StartOptions> {
        self.cca.as_ref().filter(|_| self.start == StartFrom::Cca)
    }

    fn check(&self) -> Result<()> {
        at_least_one("model.embed_dim", self.embed_dim)?;
        at_least_one("model.word_dim", self.word_dim)?;
        if self.freeze_embedding && self.text == TextKind::Words {
            let expected = "false with text = \"words\", where nothing but the table learns";
            return Err(Error::invalid("model.freeze_embedding", expected, true));
        }
        if (self.word_vectors, self.text) == (VectorsFrom::Given, TextKind::Words) {
            let expected =
                "\"random\" with text = \"words\": ready vectors are of a recurrent unit";
            return Err(Error::invalid("model.word_vectors", expected, "\"given\""));
        }
        if let Some(cca) = &self.cca {
            cca.validate()?;
        }
        let wrong = |expected, got| Err(Error::invalid("model.start", expected, got));
        match (&self.cca, self.start, self.text) {
            (_, StartFrom::Random, _) => Ok(()),
            (None, StartFrom::Cca, _) => wrong("\"cca\" with a section [model.cca]", "none"),
            (Some(_), StartFrom::Cca, TextKind::Bigru) => {
                wrong("\"cca\" with text = \"words\"", "a recurrent unit")
            }
            (Some(cca), StartFrom::Cca, TextKind::Words) => cca.fits(self.embed_dim),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

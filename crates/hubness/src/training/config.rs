//! What a config file says: every key is required, an unknown one is an error.

use itm_core::encoders::TextPool;
use itm_core::learn::{above_zero, at_least_one, at_least_zero, within};
use itm_core::scored::Similarity;
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::losses::{AaaiOptions, BankOptions, HubOptions};

/// Everything [`Hal`](super::Hal) needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HalConfig {
    /// Encoders and their similarity.
    pub model: ModelConfig,
    /// Steps and rates.
    pub train: TrainConfig,
    /// The loss.
    pub loss: LossConfig,
    /// Eq. 4; of the objectives `hal` and `max_hal`.
    pub hubs: HubOptions,
    /// Exponents of the AAAI objectives.
    pub aaai: AaaiOptions,
    /// The memory bank of `hal_aaai_bank`.
    pub bank: BankOptions,
}

/// Encoders over precomputed global image features and word numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Width d of the joint space; also that of the GRU's state.
    pub embed_dim: usize,
    /// Width of a word vector.
    pub word_dim: usize,
    /// How a text's word states become one vector.
    pub text_pool: TextPool,
    /// How embeddings are compared: Eq. 1, or order embeddings (Vendrov et al.), of the embeddings' absolute values.
    pub similarity: Similarity,
    /// Whether image embeddings are scaled to unit length.
    pub image_norm: ImageNorm,
    /// The weights before the first step.
    pub initialisation: Initialisation,
}

/// Whether image embeddings are scaled to unit length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageNorm {
    /// They are.
    Unit,
    /// They are not: the released code's `no_imgnorm`.
    Off,
}

/// The weights before the first step. The projection is Xavier uniform with a bias of 0 in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initialisation {
    /// Words uniform in ±0.1, the GRU in ±1/√d (released code).
    Released,
    /// Words and each gate of the GRU Xavier uniform, ±√(6 / (in + out)), biases 0 (paper).
    Xavier,
}

/// The course of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Seed of weights, order and bank.
    pub seed: u64,
    /// Passes over all captions.
    pub epochs: usize,
    /// Pairs a step.
    pub batch: usize,
    /// Of Adam.
    pub learning_rate: f64,
    /// Epochs after which the rate is divided by ten, again and again.
    pub decay_every: usize,
    /// Largest norm of all gradients together; 0: not clipped.
    pub grad_clip: f64,
}

impl TrainConfig {
    /// The rate of an epoch, counted from 0: `lr · 0.1^⌊epoch / decay_every⌋`.
    pub fn rate(&self, epoch: usize) -> f64 {
        self.learning_rate * 0.1f64.powi((epoch / self.decay_every) as i32)
    }
}

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Eq. 2.
    Sum,
    /// Eq. 3.
    Max,
    /// Eq. 4 in Eq. 2.
    Hal,
    /// Eq. 4 in Eq. 3.
    MaxHal,
    /// The later loss, within the batch.
    HalAaaiLocal,
    /// The later loss, with a memory bank.
    HalAaaiBank,
}

/// The loss and its negatives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossConfig {
    /// What is minimised.
    pub objective: Objective,
    /// α of Eq. 2 and 3.
    pub margin: f64,
    /// Whether another caption of the same image is no negative. Not of the AAAI objectives.
    pub mask_same_image: bool,
}

impl HalConfig {
    /// The paper's training of an objective: 30 epochs of batches of 128; 1e-3 divided by ten every 10 epochs, for MAX
    /// and MAX + HAL 2e-4 every 15. The AAAI objectives, which are not the paper's, have the released code's constants
    /// and 1e-3.
    pub fn paper(objective: Objective) -> Self {
        let max = matches!(objective, Objective::Max | Objective::MaxHal);
        let (learning_rate, decay_every) = if max { (2e-4, 15) } else { (1e-3, 10) };
        Self {
            model: ModelConfig {
                embed_dim: 1024,
                word_dim: 300,
                text_pool: TextPool::Last,
                similarity: Similarity::Cosine,
                image_norm: ImageNorm::Unit,
                initialisation: Initialisation::Released,
            },
            train: TrainConfig {
                seed: 0,
                epochs: 30,
                batch: 128,
                learning_rate,
                decay_every,
                grad_clip: 2.0,
            },
            loss: LossConfig { objective, margin: 0.2, mask_same_image: false },
            hubs: HubOptions::default(),
            aaai: AaaiOptions::FLICKR30K,
            bank: BankOptions::default(),
        }
    }

    /// Refuses values nothing can be trained with.
    ///
    /// # Errors
    /// Names the key, its range and its value.
    pub fn validate(&self) -> Result<()> {
        let Self { model, train, loss, hubs, aaai, bank } = self;
        at_least_one("model.embed_dim", model.embed_dim)?;
        at_least_one("model.word_dim", model.word_dim)?;
        at_least_one("train.epochs", train.epochs)?;
        at_least_one("train.batch", train.batch)?;
        at_least_one("train.decay_every", train.decay_every)?;
        above_zero("train.learning_rate", train.learning_rate)?;
        at_least_zero("train.grad_clip", train.grad_clip)?;
        at_least_zero("loss.margin", loss.margin)?;
        at_least_one("hubs.neighbours", hubs.neighbours)?;
        above_zero("aaai.local_alpha", aaai.local_alpha)?;
        within("aaai.local_ep", aaai.local_ep, "a number", |_| true)?;
        above_zero("bank.alpha", bank.alpha)?;
        above_zero("bank.beta", bank.beta)?;
        within("bank.ep1", bank.ep1, "a number", |_| true)?;
        within("bank.ep2", bank.ep2, "a number", |_| true)?;
        at_least_one("bank.mb_k", bank.mb_k)?;
        within("bank.mb_rate", bank.mb_rate, "in [0, 1]", |x| (0.0..=1.0).contains(&x))?;
        if loss.objective == Objective::HalAaaiBank && model.similarity == Similarity::Order {
            let expected = "cosine with the objective hal_aaai_bank";
            return Err(Error::invalid("model.similarity", expected, "order"));
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(feature = "flex")]
pub(in crate::training) mod tests;

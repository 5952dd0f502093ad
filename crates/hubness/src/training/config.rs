//! The contents of a config file. Every key is required, except optional sections; an unknown key is an error.

use itm_core::contrastive::ContrastiveOptions;
use itm_core::encoders::TextPool;
use itm_core::learn::{Schedule, above_zero, at_least_one, at_least_zero, within};
use itm_core::scored::Similarity;
use itm_core::start::{StartFrom, StartOptions};
use itm_core::towers::{
    FeatureTransform, FeaturesConfig, GruConfig, ImageConfig, LearningParts, ModelConfig,
    TextConfig,
};
use itm_core::{Error, Result};
use itm_kernels::Precision;
use serde::{Deserialize, Serialize};

use crate::losses::{AaaiOptions, BankOptions, HubOptions};

/// Everything [`Hal`](super::Hal) needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HalConfig {
    /// Encoders and their similarity.
    pub model: HalModelConfig,
    /// Steps and rates.
    pub train: HalTrainConfig,
    /// The loss.
    pub loss: HalLossConfig,
    /// Eq. 4, for the objectives `hal` and `max_hal`.
    pub hubs: HubOptions,
    /// Exponents of the AAAI objectives.
    pub aaai: AaaiOptions,
    /// The memory bank of `hal_aaai_bank`.
    pub bank: BankOptions,
}

/// A pair of towers, and how their rows are compared. Any image encoder goes with any text encoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HalModelConfig {
    /// Width d of the joint space.
    pub embed_dim: usize,
    /// The weights before the first step: random ones, or the weights of [`Hal::with_start`](super::Hal::with_start).
    pub start: StartFrom,
    /// The closed form that the weights begin with, if `start` needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cca: Option<StartOptions>,
    /// The encoder of images.
    pub image: ImageConfig,
    /// The encoder of captions.
    pub text: TextConfig,
    /// How embeddings are compared: Eq. 1, or order embeddings (Vendrov et al.) on their absolute values.
    pub similarity: Similarity,
    /// Whether image embeddings are scaled to unit length.
    pub image_norm: ImageNorm,
    /// How random weights are drawn.
    pub initialisation: Initialisation,
}

/// Whether image embeddings are scaled to unit length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ImageNorm {
    /// Scaled to unit length.
    Unit,
    /// Not scaled: the released code's `no_imgnorm`.
    Off,
}

/// How random weights are drawn. In both variants the projection is Xavier uniform with a bias of 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Initialisation {
    /// Words uniform in ±0.1, the GRU in ±1/√d (released code).
    Released,
    /// Words and each gate of the GRU Xavier uniform, ±√(6 / (in + out)), biases 0 (paper).
    Xavier,
}

/// The course of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HalTrainConfig {
    /// Seed of order and bank; `Hal::new` takes the seed of the weights. In a target's file it is 0: `--seeds` counts from it.
    pub seed: u64,
    /// Passes over all captions; 0 leaves the weights as they begin.
    pub epochs: usize,
    /// Pairs per step.
    pub batch: usize,
    /// Pairs whose activations are kept at once; by default all of a batch. A value below `batch` saves memory but costs one more
    /// forward pass per step. The loss and its gradient are the same as for the whole batch, except for the dropout masks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_batch: Option<usize>,
    /// Which parameters learn: `"all"`, `"heads"`, `{ last = 2 }`, or `{ lora = { rank = 8, alpha = 8, maps = ["query", "value"] } }`: these
    /// values are the defaults, and other maps are `key`, `out`, `up` and `down`.
    #[serde(default, skip_serializing_if = "LearningParts::is_all")]
    pub parts: LearningParts,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// Layer-wise decay δ of the rate, above 0 and at most 1: block l of the L blocks of an encoder learns at the rate η · δ^(L + 1 − l),
    /// what is before the blocks at η · δ^(L + 1), what is behind them at η: [`Encoders::learner`](itm_core::towers::Encoders::learner).
    /// By default all learn at η.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer_decay: Option<f64>,
    /// Decoupled decay of AdamW, on linear maps and tables of words: not on gains, biases, positions, class rows, temperature.
    /// By default there is none: Adam.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_decay: Option<f64>,
    /// How the rate falls.
    pub schedule: Schedule,
    /// With the schedule `steps`: the rate is divided by ten each time this number of epochs has passed.
    pub decay_every: usize,
    /// Largest norm of all gradients together; 0: not clipped.
    pub grad_clip: f64,
    /// Share of image features that is set to 0 in training. Encoders of pictures have their own rates.
    pub dropout: f64,
    /// Share of stems that a bag of words leaves out in training.
    pub word_dropout: f64,
    /// Precision of the products in the blocks of ViT, CLIP and BERT. `"bf16"` rounds the operands of these products to bf16; sums,
    /// weights and everything else stay f32. It needs the backend `cpu`, and saves time on processors with AVX512-BF16; other processors
    /// compute in f32. The default is `"f32"`.
    #[serde(default, skip_serializing_if = "Precision::is_f32")]
    pub precision: Precision,
}

impl HalTrainConfig {
    /// Pairs whose activations are kept at once.
    pub fn micro_batch(&self) -> usize {
        self.micro_batch.unwrap_or(self.batch)
    }

    /// The rate of an epoch with the schedule `steps`, counted from 0: `lr · 0.1^⌊epoch / decay_every⌋`.
    ///
    /// # Panics
    /// If `decay_every` is 0: a checked configuration never has it.
    pub(crate) fn rate(&self, epoch: usize) -> f64 {
        self.learning_rate * 0.1f64.powi((epoch / self.decay_every) as i32)
    }
}

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// The sum of all hinges, equation 2.
    Sum,
    /// The largest hinge, equation 3.
    Max,
    /// SUM of reweighted scores, equation 4.
    Hal,
    /// MAX of reweighted scores, equation 4.
    MaxHal,
    /// The later loss, within the batch.
    HalAaaiLocal,
    /// The later loss, with a memory bank.
    HalAaaiBank,
    /// InfoNCE, a baseline that is not in the paper: [`itm_core::contrastive::info_nce`].
    InfoNce,
    /// SigLIP's pairwise sigmoid, another such baseline: [`itm_core::contrastive::sigmoid_pairs`].
    Sigmoid,
}

impl Objective {
    /// Whether the objective compares every pair with all others of the batch.
    pub(crate) fn is_contrastive(self) -> bool {
        matches!(self, Self::InfoNce | Self::Sigmoid)
    }
}

/// The loss and its negatives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HalLossConfig {
    /// What is minimised.
    pub objective: Objective,
    /// α of Eq. 2 and 3.
    pub margin: f64,
    /// Whether other captions of the same image are left out of the negatives. The AAAI objectives ignore this key.
    pub mask_same_image: bool,
    /// Temperature and bias of the contrastive objectives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrastive: Option<ContrastiveOptions>,
}

impl HalConfig {
    /// The values of [`Preset::Default`](crate::Preset::Default) for an objective: rates and epochs of the paper. The released
    /// program gives what the paper leaves open.
    pub fn new(objective: Objective) -> Self {
        let max = matches!(objective, Objective::Max | Objective::MaxHal);
        let (learning_rate, decay_every) = if max { (2e-4, 15) } else { (1e-3, 10) };
        Self {
            model: HalModelConfig {
                embed_dim: 1024,
                start: StartFrom::Random,
                cca: None,
                image: ImageConfig::Features(FeaturesConfig {
                    transform: FeatureTransform::Raw,
                    residual: None,
                }),
                text: TextConfig::Gru(GruConfig { word_dim: 300, pool: TextPool::Last }),
                similarity: Similarity::Cosine,
                image_norm: ImageNorm::Unit,
                initialisation: Initialisation::Released,
            },
            train: HalTrainConfig {
                seed: 0,
                epochs: 30,
                batch: 128,
                micro_batch: None,
                parts: LearningParts::All,
                learning_rate,
                layer_decay: None,
                weight_decay: None,
                schedule: Schedule::Steps,
                decay_every,
                grad_clip: 2.0,
                dropout: 0.0,
                word_dropout: 0.0,
                precision: Precision::F32,
            },
            loss: HalLossConfig {
                objective,
                margin: 0.2,
                mask_same_image: false,
                contrastive: None,
            },
            hubs: HubOptions::default(),
            aaai: AaaiOptions::FLICKR30K,
            bank: BankOptions::default(),
        }
    }

    /// Refuses values that training cannot use.
    ///
    /// # Errors
    /// Names the key, its range and its value.
    pub fn validate(&self) -> Result<()> {
        let Self { model, train, loss, hubs, aaai, bank } = self;
        model.towers().validate()?;
        let features = matches!(model.image, ImageConfig::Features(_));
        let (fits, place) = (features || model.image_norm == ImageNorm::Unit, "model.image_norm");
        Error::unless(fits, place, "\"unit\" with an encoder of pictures", "\"off\"")?;
        let share = |x: f64| (0.0..1.0).contains(&x);
        within("train.dropout", train.dropout, "in [0, 1)", share)?;
        within("train.word_dropout", train.word_dropout, "in [0, 1)", share)?;
        if !features {
            let none = "0: the weights of the image encoder name its rates";
            within("train.dropout", train.dropout, none, |x| x == 0.0)?;
        }
        if !matches!(model.text, TextConfig::Bag(_)) {
            let none = "0: only a bag of words leaves stems out";
            within("train.word_dropout", train.word_dropout, none, |x| x == 0.0)?;
        }
        loss.contrastive.as_ref().map_or(Ok(()), ContrastiveOptions::validate)?;
        let fits = loss.contrastive.is_some() || !loss.objective.is_contrastive();
        let expected = "a section [loss.contrastive] for this objective";
        Error::unless(fits, "loss.objective", expected, "none")?;
        at_least_one("train.batch", train.batch)?;
        at_least_one("train.micro_batch", train.micro_batch())?;
        model.towers().check_training(&train.parts, train.layer_decay, train.precision)?;
        at_least_one("train.decay_every", train.decay_every)?;
        above_zero("train.learning_rate", train.learning_rate)?;
        at_least_zero("train.weight_decay", train.weight_decay.unwrap_or(0.0))?;
        at_least_zero("train.grad_clip", train.grad_clip)?;
        at_least_zero("loss.margin", loss.margin)?;
        at_least_one("hubs.neighbours", hubs.neighbours)?;
        let normal = |x: f64| x > 0.0 && (x as f32).is_normal();
        within("aaai.local_alpha", aaai.local_alpha, "above 0", normal)?;
        within("aaai.local_ep", aaai.local_ep, "a number", |x| (x as f32).is_finite())?;
        above_zero("bank.alpha", bank.alpha)?;
        above_zero("bank.beta", bank.beta)?;
        within("bank.ep1", bank.ep1, "a number", |_| true)?;
        within("bank.ep2", bank.ep2, "a number", |_| true)?;
        at_least_one("bank.mb_k", bank.mb_k)?;
        within("bank.mb_rate", bank.mb_rate, "in [0, 1]", |x| (0.0..=1.0).contains(&x))?;
        let cosine = loss.objective == Objective::HalAaaiBank;
        let fits = !cosine || model.similarity == Similarity::Cosine;
        let expected = "cosine with the objective hal_aaai_bank";
        Error::unless(fits, "model.similarity", expected, "order")
    }
}

impl HalModelConfig {
    /// The pair of towers.
    pub fn towers(&self) -> ModelConfig {
        ModelConfig {
            embed_dim: self.embed_dim,
            start: self.start,
            cca: self.cca.clone(),
            image: self.image.clone(),
            text: self.text.clone(),
        }
    }
}

#[cfg(test)]
#[cfg(feature = "flex")]
pub(in crate::training) mod tests;

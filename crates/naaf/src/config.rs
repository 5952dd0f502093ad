//! The sections of a config file. An unknown key is an error, and so is a missing key that has no default.

use itm_core::encoders::ImagePool;
use itm_core::learn::{
    Schedule as Rates, above_zero, at_least_one, at_least_zero, size_within, within,
};
use itm_core::start::{StartFrom, StartOptions};
use itm_core::towers::{ImageConfig, LearningParts, ModelConfig, TextConfig};
use itm_core::{Error, Result, WarmupLoss};
use itm_kernels::Precision;
use serde::{Deserialize, Serialize};

use crate::attention::Attention;
use crate::mining::MiningConfig;

/// The configuration of [`Naaf`](crate::Naaf).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NaafConfig {
    /// Encoders, and how their rows become a score.
    pub model: NaafModelConfig,
    /// Eq. 6 to 12, or SCAN. For `score = "attention"`.
    pub attention: Attention,
    /// Eq. 1 to 5, 13 and 14. For negative-aware attention.
    pub mining: MiningConfig,
    /// Steps and rates.
    pub train: NaafTrainConfig,
    /// Eq. 15.
    pub loss: NaafLossConfig,
}

/// Encoders of regions and of words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NaafModelConfig {
    /// Width d of the joint space, and of the states of each direction of a BiGRU.
    pub embed_dim: usize,
    /// The weights before the first step: random ones, or the weights of [`NaafEncoders::with_start`](crate::NaafEncoders::with_start).
    pub start: StartFrom,
    /// Which closed form the weights begin with, if `start` is `cca`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cca: Option<StartOptions>,
    /// How rows of regions and words become a score.
    pub score: Score,
    /// Encoders of pictures and word pieces in place of `region_map`, `text` and the keys of words: every patch is a region, every piece a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub towers: Option<NaafTowers>,
    /// The map of regions.
    pub region_map: RegionMapKind,
    /// The encoder of captions.
    pub text: TextKind,
    /// Width of a word vector, for a BiGRU.
    pub word_dim: usize,
    /// The initial word vectors of a BiGRU.
    pub word_vectors: VectorsFrom,
    /// Whether the word vectors of a BiGRU are frozen.
    pub freeze_embedding: bool,
}

/// Encoders whose patches are the regions and whose word pieces are the words: ViT, CLIP or SigLIP, and BERT, CLIP or SigLIP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NaafTowers {
    /// Pictures to rows of patches.
    pub image: ImageConfig,
    /// Captions to rows of word pieces.
    pub text: TextConfig,
}

/// How rows of regions and words become a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Score {
    /// By `[attention]`.
    Attention,
    /// The cosine of the mean region and the mean word, both taken before normalisation. A baseline for attention.
    Global,
}

/// The map of regions to the joint space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RegionMapKind {
    /// Weight uniform in ±√(6 / (in + out)), bias 0.
    Xavier,
    /// `g · V / ‖V‖` with one g for the whole matrix; V and bias uniform in ±1/√in, g = ‖V‖ at first.
    WeightNorm,
}

/// The encoder of captions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TextKind {
    /// Word vectors and a bidirectional recurrent unit (paper).
    Bigru,
    /// A table of word vectors; each word gets the mean of its caption.
    Words,
}

/// The initial word vectors of a BiGRU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VectorsFrom {
    /// Random numbers, uniform in ±0.1.
    Random,
    /// N13: given vectors for the words that have one, by [`NaafEncoders::with_vectors`](crate::NaafEncoders::with_vectors).
    Given,
}

/// How the model is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NaafTrainConfig {
    /// Seed of weights and order. In a target's file it is 0: `--seeds` counts from it.
    pub seed: u64,
    /// Passes over all captions; 0 keeps the initial weights.
    pub epochs: usize,
    /// Pairs per step.
    pub batch: usize,
    /// With `model.towers`, pairs whose activations are kept at once; by default all of a batch. A value below `batch` saves memory but
    /// costs one more forward pass per step. The loss and its gradient are the same as for the whole batch, except for the dropout masks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_batch: Option<usize>,
    /// With `model.towers`, which of their parameters learn: `"all"`, `"heads"`, `{ last = 2 }`, or `{ lora = { rank = 8, alpha = 8, maps = ["query", "value"] } }`: these
    /// values are the defaults, and other maps are `key`, `out`, `up` and `down`.
    #[serde(default, skip_serializing_if = "LearningParts::is_all")]
    pub parts: LearningParts,
    /// The learning rate of Adam.
    pub learning_rate: f64,
    /// With `model.towers`, layer-wise decay δ of the rate, above 0 and at most 1:
    /// [`Encoders::learner`](itm_core::towers::Encoders::learner). By default all learn at the same rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer_decay: Option<f64>,
    /// Decoupled decay of AdamW, on linear maps and tables of words: not on gains, biases, positions, class rows. By default there is
    /// none: Adam.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_decay: Option<f64>,
    /// How the learning rate falls.
    pub schedule: Rates,
    /// With the schedule `steps`: number of epochs after which the rate is multiplied by `lr_decay`, each time.
    pub decay_every: usize,
    /// N14: 0.1; or 0.9, the paper read literally.
    pub lr_decay: f64,
    /// Largest norm of all gradients together; 0 means no clipping.
    pub grad_clip: f64,
    /// Share of the features of regions that is set to 0 in training. All regions of an image lose the same features.
    pub region_dropout: f64,
    /// Share of words whose vector is set to 0 in training.
    pub word_dropout: f64,
    /// With `model.towers`, precision of the products in the blocks of ViT, CLIP and BERT. `"bf16"` rounds the operands of these products to bf16; sums,
    /// weights and everything else stay f32. It needs the backend `cpu`, and saves time on processors with AVX512-BF16; other processors
    /// compute in f32. The default is `"f32"`.
    #[serde(default, skip_serializing_if = "Precision::is_f32")]
    pub precision: Precision,
}

impl NaafTrainConfig {
    /// Pairs whose activations are kept at once.
    pub fn micro_batch(&self) -> usize {
        self.micro_batch.unwrap_or(self.batch)
    }

    /// The rate of an epoch with the schedule `steps`, counted from 0: `lr · decay^⌊epoch / decay_every⌋`.
    ///
    /// # Panics
    /// If `decay_every` is 0: a checked configuration never has it.
    pub(crate) fn rate(&self, epoch: usize) -> f64 {
        self.learning_rate * self.lr_decay.powi((epoch / self.decay_every) as i32)
    }
}

/// The loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NaafLossConfig {
    /// γ of Eq. 15.
    pub margin: f64,
    /// N16: whether other captions of the same image are never negatives.
    pub mask_same_image: bool,
    /// How the hinges of a batch are reduced.
    pub reduction: Reduction,
    /// Epochs of the warm-up.
    pub warmup_epochs: usize,
    /// Which hinges count in the warm-up.
    pub warmup_loss: WarmupLoss,
}

/// How the hinges of a batch are reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Their sum (paper). The choice changes how much the gradient is clipped.
    Sum,
    /// Their sum, divided by the number of pairs.
    Mean,
}

impl NaafLossConfig {
    /// Which hinges count in an epoch.
    pub(crate) fn counts(&self, epoch: usize) -> WarmupLoss {
        if epoch < self.warmup_epochs { self.warmup_loss } else { WarmupLoss::Hardest }
    }
}

impl NaafConfig {
    /// Refuses values that cannot be trained with.
    ///
    /// # Errors
    /// The error names the key, its range and its value.
    pub fn check(&self) -> Result<()> {
        let Self { model, attention, mining, train, loss } = self;
        model.check()?;
        attention.check()?;
        mining.check()?;
        train.check()?;
        match model.pair() {
            Some(pair) => {
                pair.check_training(&train.parts, train.layer_decay, train.precision)?;
                let none = "0 with model.towers, whose weights name their rates";
                within("train.region_dropout", train.region_dropout, none, |x| x == 0.0)?;
                within("train.word_dropout", train.word_dropout, none, |x| x == 0.0)?;
            }
            None => train.check_without_towers()?,
        }
        at_least_zero("loss.margin", loss.margin)
    }
}

impl NaafTrainConfig {
    /// Refuses what only towers have.
    fn check_without_towers(&self) -> Result<()> {
        let (key, expected, got) = if !self.parts.is_all() {
            ("train.parts", "\"all\"", format!("{:?}", self.parts))
        } else if !self.precision.is_f32() {
            ("train.precision", "\"f32\"", "\"bf16\"".to_owned())
        } else if let Some(pairs) = self.micro_batch {
            ("train.micro_batch", "no such key", pairs.to_string())
        } else if let Some(decay) = self.layer_decay {
            ("train.layer_decay", "no such key", decay.to_string())
        } else {
            return Ok(());
        };
        Err(Error::invalid(key, format!("{expected} without model.towers"), got))
    }

    fn check(&self) -> Result<()> {
        at_least_one("train.batch", self.batch)?;
        at_least_one("train.micro_batch", self.micro_batch())?;
        at_least_zero("train.weight_decay", self.weight_decay.unwrap_or(0.0))?;
        at_least_one("train.decay_every", self.decay_every)?;
        above_zero("train.learning_rate", self.learning_rate)?;
        within("train.lr_decay", self.lr_decay, "in (0, 1]", |x| x > 0.0 && x <= 1.0)?;
        at_least_zero("train.grad_clip", self.grad_clip)?;
        let share = |x: f64| (0.0..1.0).contains(&x);
        within("train.region_dropout", self.region_dropout, "in [0, 1)", share)?;
        within("train.word_dropout", self.word_dropout, "in [0, 1)", share)
    }
}

impl NaafModelConfig {
    /// Refuses a config whose weights are not random before the first step.
    pub(crate) fn check_random(&self) -> Result<()> {
        let expected = "\"random\"; Naaf::from_encoders takes encoders with given weights";
        Error::unless(self.start == StartFrom::Random, "model.start", expected, "\"cca\"")?;
        let random = self.word_vectors == VectorsFrom::Random;
        Error::unless(random, "model.word_vectors", expected, "\"given\"")
    }

    /// The towers as a pair of encoders of one width.
    pub fn pair(&self) -> Option<ModelConfig> {
        let NaafTowers { image, text } = self.towers.clone()?;
        Some(ModelConfig { image, text, ..ModelConfig::new(self.embed_dim, 1) })
    }

    /// Refuses towers without patches or word pieces, and beginnings that they do not have.
    fn check_towers(&self, pair: &ModelConfig) -> Result<()> {
        let wrong = |key, expected, got| Err(Error::invalid(key, expected, got));
        let (image, text) = ("model.towers.image", "model.towers.text");
        match (&pair.image, &pair.text) {
            (ImageConfig::Features(_), _) => wrong(image, "an encoder of pictures", "features"),
            (ImageConfig::Vit(vit), _) if vit.pool == ImagePool::ClassPatches => {
                wrong(image, "a pool of rows that are as wide as one", "class_patches")
            }
            (_, TextConfig::Gru(_)) => wrong(text, "an encoder of word pieces", "gru"),
            (_, TextConfig::Bag(_)) => wrong(text, "an encoder of word pieces", "bag"),
            _ if self.start == StartFrom::Cca => {
                wrong("model.start", "\"random\" with model.towers", "\"cca\"")
            }
            _ if self.word_vectors == VectorsFrom::Given => {
                wrong("model.word_vectors", "\"random\" with model.towers", "\"given\"")
            }
            _ if self.freeze_embedding => {
                wrong("model.freeze_embedding", "false with model.towers", "true")
            }
            _ => pair.validate(),
        }
    }

    /// The closed form that the weights begin with, if `start` is `cca`.
    pub fn closed_form(&self) -> Option<&StartOptions> {
        self.cca.as_ref().filter(|_| self.start == StartFrom::Cca)
    }

    pub(crate) fn check(&self) -> Result<()> {
        size_within("model.embed_dim", self.embed_dim)?;
        size_within("model.word_dim", self.word_dim)?;
        if let Some(pair) = self.pair() {
            return self.check_towers(&pair);
        }
        let unit = self.text == TextKind::Bigru;
        let expected = "false with text = \"words\", where only the table learns";
        Error::unless(unit || !self.freeze_embedding, "model.freeze_embedding", expected, true)?;
        let fits = unit || self.word_vectors == VectorsFrom::Random;
        let expected = "\"random\" with text = \"words\": given vectors need a recurrent unit";
        Error::unless(fits, "model.word_vectors", expected, "\"given\"")?;
        let Some(cca) = self.start.options(self.cca.as_ref())? else { return Ok(()) };
        let expected = "\"cca\" with text = \"words\"";
        Error::unless(!unit, "model.start", expected, "a recurrent unit")?;
        cca.fits(self.embed_dim)
    }
}

#[cfg(test)]
pub(crate) mod tests;

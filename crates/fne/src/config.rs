//! The sections of a config file. An unknown key is an error, and so is a missing key that has no default.

mod preset;

use itm_core::contrastive::ContrastiveOptions;
use itm_core::learn::{Schedule, above_zero, at_least_one, at_least_zero, within};
use itm_core::towers::{ImageConfig, LearningParts, ModelConfig, TextConfig};
use itm_core::{Error, Result, WarmupLoss};
use itm_kernels::Precision;
use serde::{Deserialize, Serialize};

use crate::statistics::{Reset, Variance};

/// The configuration of [`Fne`](crate::Fne).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FneConfig {
    /// Encoders.
    pub model: ModelConfig,
    /// Steps, rates, noise.
    pub train: TrainConfig,
    /// Negatives: bank, statistics, weights.
    pub sampler: SamplerConfig,
}

/// How the model is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Seed of the weights and the bank before the first step. The draws and the noise of a step come from the seed that
    /// [`step`](itm_core::learn::Method::step) gets. The runner derives the step's seed from this number and the number of the step.
    /// In a target's file it is 0: `--seeds` counts from it.
    pub seed: u64,
    /// Passes over all captions; 0 keeps the initial weights.
    pub epochs: usize,
    /// Pairs per step.
    pub batch: usize,
    /// Pairs whose activations are kept at once. A value below `batch` saves memory but costs one more forward pass per step. The
    /// loss and its gradient are the same as for the whole batch, except for the dropout masks.
    pub micro_batch: usize,
    /// Which parameters learn: `"all"`, `"heads"`, `{ last = 2 }`, or `{ lora = { rank = 8, alpha = 8, maps = ["query", "value"] } }`: these
    /// values are the defaults, and other maps are `key`, `out`, `up` and `down`.
    #[serde(default, skip_serializing_if = "LearningParts::is_all")]
    pub parts: LearningParts,
    /// What is minimised.
    pub loss: Loss,
    /// Temperature and bias of the contrastive losses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrastive: Option<ContrastiveOptions>,
    /// The learning rate of Adam.
    pub learning_rate: f64,
    /// Layer-wise decay δ of the rate, above 0 and at most 1: block l of the L blocks of an encoder learns at the rate η · δ^(L + 1 − l),
    /// what is before the blocks at η · δ^(L + 1), what is behind them at η: [`Encoders::learner`](itm_core::towers::Encoders::learner).
    /// By default all learn at η.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer_decay: Option<f64>,
    /// How the learning rate falls.
    pub schedule: Schedule,
    /// With the schedule `steps`: the epochs (from 0) at whose start the learning rate is divided by ten.
    pub milestones: Vec<usize>,
    /// Decoupled decay of AdamW, on linear maps and tables of words: not on gains, biases, positions, class rows, temperature.
    /// 0 is Adam.
    pub weight_decay: f64,
    /// Largest norm of all gradients together.
    pub grad_clip: f64,
    /// Share of the values of image features and word vectors that is set to 0 in training, in the online
    /// and the momentum encoders. ViT, CLIP and BERT have their own rates, which their weights name.
    pub dropout: f64,
    /// In training, a gated recurrent unit reads `<unk>` for this share of words; a bag of words drops this share of stems.
    pub word_dropout: f64,
    /// P24: whether dropout stays on after a validation within the epoch.
    pub dropout_after_validation: DropoutAfterValidation,
    /// Precision of the products in the blocks of ViT, CLIP and BERT. `"bf16"` rounds the operands of these products to bf16; sums,
    /// weights and everything else stay f32. It needs the backend `cpu`, and saves time on processors with AVX512-BF16; other
    /// processors compute in f32. The default is `"f32"`.
    #[serde(default, skip_serializing_if = "Precision::is_f32")]
    pub precision: Precision,
}

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Hinges of drawn negatives, in the warm-up of all or the hardest of the batch. Eq. 15 and 3.
    #[default]
    Triplet,
    /// InfoNCE over the batch, a baseline that the paper does not have: [`itm_core::contrastive::info_nce`].
    InfoNce,
    /// SigLIP's pairwise sigmoid over the batch, another such baseline: [`itm_core::contrastive::sigmoid_pairs`].
    Sigmoid,
}

/// P24: what happens to dropout after the first validation within an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DropoutAfterValidation {
    /// Dropout stays on.
    #[default]
    On,
    /// Dropout is off until the epoch ends, in the online and the momentum encoders (released code, by mistake). The program
    /// validates after every step whose number, counted over all epochs, is a multiple of a third of an epoch.
    Off,
}

impl TrainConfig {
    /// Temperature and bias of the loss, if it is contrastive.
    pub(crate) fn contrast(&self) -> Option<&ContrastiveOptions> {
        self.contrastive.as_ref().filter(|_| self.loss != Loss::Triplet)
    }

    /// The rate of an epoch with the schedule `steps`: divided by ten at each of `milestones`.
    pub(crate) fn rate(&self, epoch: usize) -> f64 {
        let passed = self.milestones.iter().filter(|&&e| e <= epoch).count();
        self.learning_rate * 0.1f64.powi(passed as i32)
    }
}

/// Which candidate becomes the negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NegativeChoice {
    /// Drawn by the weights of Eq. 13 (the paper's "Full").
    Fne,
    /// The candidate with the largest hinge (the paper's "w/o FNE").
    Hardest,
    /// Any item of another image, with equal probability: the baseline of an audit.
    Uniform,
    /// The hardest item of the batch, without a bank (the paper's "w/o MMM+FNE").
    InBatch,
}

/// When the batch enters the bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Enqueue {
    /// After the loss: candidates are the batch and the bank, B + K (released code).
    After,
    /// Before the loss: candidates are the bank, K (paper).
    Before,
}

/// Which similarity of a pair is its positive score s⁺.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Positive {
    /// Online × momentum; gradient into the online side only (released code).
    Momentum,
    /// Online × online; gradient into both (paper).
    Online,
}

/// Which candidates are never negatives of an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Exclude {
    /// Candidates of the anchor's own image, as annotated.
    SameImage,
    /// All candidates that truly match the anchor, annotated or not. Ours: an upper bound for every elimination of false
    /// negatives, on data whose truth is known ([`Fne::with_truth`](crate::Fne::with_truth)).
    Truth,
}

/// Which equation weighs a candidate whose posterior is exactly λ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Tie {
    /// Eq. 12 (released code).
    Easy,
    /// Eq. 11 (the printed Eq. 13: easy means P < λ).
    NonEasy,
}

/// How P(c|s) is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Density {
    /// In log-odds, which saturate.
    #[default]
    LogOdds,
    /// As a quotient of f32 densities (released code). Far from both means it is 0/0, and the candidate stays easy.
    F32,
}

/// The memory, the statistics and the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SamplerConfig {
    /// Which candidate becomes the negative after the warm-up.
    pub negatives: NegativeChoice,
    /// Which candidates are never negatives.
    pub exclude: Exclude,
    /// γ of Eq. 3.
    pub margin: f64,
    /// Rows K of each bank. 0 is the paper's "w/o MMM": the candidates are the online embeddings of the batch.
    pub bank_size: usize,
    /// When the batch enters the bank. Without a bank it does not count.
    pub enqueue: Enqueue,
    /// m of Eq. 14.
    pub momentum: f64,
    /// Which similarity of a pair is its positive score s⁺. Without a bank it is online × online.
    pub positive: Positive,
    /// Epochs of the in-batch loss before the bank is used.
    pub warmup_epochs: usize,
    /// Loss of the warm-up epochs.
    pub warmup_loss: WarmupLoss,
    /// Whether other captions of the same image are ignored in the warm-up, the statistics and the contrastive losses too.
    pub mask_same_image_everywhere: bool,
    /// p of Eq. 10.
    pub prior: f64,
    /// λ of Eq. 13.
    pub lambda: f64,
    /// Which side P = λ belongs to.
    pub tie: Tie,
    /// τ in exp(−τ P), Eq. 11.
    pub tau: f64,
    /// α of Eq. 12.
    pub alpha: f64,
    /// Whether s ≤ μ⁺ − γ gets no weight.
    pub margin_cut: bool,
    /// The posterior is used when n⁺ exceeds this number.
    pub min_count: u64,
    /// How the posterior is evaluated.
    pub density: Density,
    /// How the variance is accumulated.
    pub variance: Variance,
    /// When the statistics are reset.
    pub reset: Reset,
}

/// The largest τ and α: in f32 their products with 0 stay 0.
const MOST: f64 = 1e30;

impl SamplerConfig {
    /// Refuses a number of the weights that is out of its range. The message starts with `section` and the number's name.
    pub(crate) fn check(&self, section: &str) -> Result<()> {
        let key = |name: &str| format!("{section}.{name}");
        at_least_zero(&key("margin"), self.margin)?;
        let open = |x| x > 0.0 && x < 1.0;
        within(&key("prior"), self.prior, "a number above 0 and below 1", open)?;
        let closed = |x: f64| (0.0..=1.0).contains(&x);
        within(&key("lambda"), self.lambda, "a number from 0 to 1", closed)?;
        let exponent = |x: f64| (0.0..=MOST).contains(&x);
        within(&key("tau"), self.tau, "from 0 to 1e30", exponent)?;
        within(&key("alpha"), self.alpha, "from 0 to 1e30", exponent)
    }

    /// Whether the in-batch loss is used in `epoch`.
    pub(crate) fn in_batch(&self, epoch: usize) -> bool {
        epoch < self.warmup_epochs || self.negatives == NegativeChoice::InBatch
    }
}

impl FneConfig {
    /// Whether training uses the momentum encoders.
    pub(crate) fn has_momentum(&self) -> bool {
        let Self { train, sampler, .. } = self;
        train.loss == Loss::Triplet
            && sampler.bank_size > 0
            && sampler.negatives != NegativeChoice::InBatch
    }

    /// Refuses values that cannot be trained with.
    ///
    /// # Errors
    /// The error names the key, its range and its value.
    pub fn validate(&self) -> Result<()> {
        let Self { model, train, sampler } = self;
        model.validate()?;
        at_least_one("train.batch", train.batch)?;
        at_least_one("train.micro_batch", train.micro_batch)?;
        model.check_training(&train.parts, train.layer_decay, train.precision)?;
        train.contrastive.as_ref().map_or(Ok(()), ContrastiveOptions::validate)?;
        let fits = train.contrastive.is_some() || train.loss == Loss::Triplet;
        let expected = "a section [train.contrastive] for this loss";
        Error::unless(fits, "train.loss", expected, "none")?;
        above_zero("train.learning_rate", train.learning_rate)?;
        at_least_zero("train.weight_decay", train.weight_decay)?;
        above_zero("train.grad_clip", train.grad_clip)?;
        let share = |x: f64| (0.0..1.0).contains(&x);
        let range = "a number of at least 0 and below 1";
        within("train.dropout", train.dropout, range, share)?;
        within("train.word_dropout", train.word_dropout, range, share)?;
        if matches!(model.text, TextConfig::Bert(_) | TextConfig::Clip(_)) {
            let none = "0: word pieces have no <unk> of their own";
            within("train.word_dropout", train.word_dropout, none, |x| x == 0.0)?;
        }
        let dropped = matches!(model.image, ImageConfig::Features(_))
            || matches!(model.text, TextConfig::Gru(_));
        let none = "0: only image features and word vectors are dropped";
        within("train.dropout", train.dropout, none, |x| x == 0.0 || dropped)?;
        let in_batch = sampler.negatives == NegativeChoice::InBatch || train.loss != Loss::Triplet;
        let fits = sampler.exclude == Exclude::SameImage || !in_batch;
        let expected = "\"same_image\" with negatives = \"in_batch\" or a contrastive loss";
        Error::unless(fits, "sampler.exclude", expected, "\"truth\"")?;
        let share = |x| (0.0..=1.0).contains(&x);
        within("sampler.momentum", sampler.momentum, "a number from 0 to 1", share)?;
        sampler.check("sampler")
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! The keys of a config file. A key without a default is required, and an unknown key is an error.

mod train;

use std::path::PathBuf;

use itm_core::learn::{above_zero, at_least_one, at_least_zero, within};
use itm_core::start::{StartFrom, StartOptions};
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::evidence::below_one;
use crate::model::UniterShape;
use crate::phrases::Duplicates;
use crate::{Choice, MaskBy, Repeat};

pub use self::train::TrainConfig;
pub use crate::CorrectionTargets;

/// The configuration of a [`TagsDc`](crate::train::TagsDc).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TagsDcConfig {
    /// The backbone.
    pub model: ModelConfig,
    /// Masked words of captions without their images, before all else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captions: Option<CaptionsConfig>,
    /// Masking, for the word loss and for synthetic sentences.
    pub masking: MaskingConfig,
    /// Synthetic sentences, made from the masked ones.
    pub synthetic: SyntheticConfig,
    /// Negatives from the training split.
    pub retrieval: RetrievalConfig,
    /// Weights of the losses.
    pub loss: LossConfig,
    /// Steps and rates.
    pub train: TrainConfig,
}

/// Sizes of a UNITER.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Width d of all states.
    pub embed_dim: usize,
    /// Number of attention heads, which divides the width.
    pub heads: usize,
    /// Number of blocks.
    pub layers: usize,
    /// The most tokens of a text, `[CLS]` and `[SEP]` included.
    pub positions: usize,
    /// Share of values that training drops in embeddings, attention and outputs.
    pub hidden_dropout: f64,
    /// Standard deviation of random matrices and tables.
    pub initializer_range: f64,
    /// The weights before the first step: random ones, or the weights of [`TagsDc::with_start`](crate::train::TagsDc::with_start).
    #[serde(default)]
    pub start: StartFrom,
    /// The closed form, if `start = "cca"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cca: Option<StartOptions>,
    /// A term of the match logit that is good already, if `start = "cca"`. Without this key there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<PriorKind>,
    /// Published weights of these sizes to begin with. Without this key the weights are random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
}

/// A term of the match logit that is good before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PriorKind {
    /// The cosine of closed-form CCA: [`Uniter::with_prior`](crate::model::Uniter::with_prior). The row then begins with CCA's scores.
    Cca,
}

impl ModelConfig {
    /// The closed form that the weights begin with; `None` if they begin otherwise.
    pub fn closed_form(&self) -> Option<&StartOptions> {
        self.cca.as_ref().filter(|_| self.start == StartFrom::Cca)
    }

    /// The width of the start: with a prior, all dimensions of CCA.
    pub fn start_width(&self) -> usize {
        let dims = |cca: &StartOptions| cca.dims.max(self.embed_dim);
        self.cca.as_ref().filter(|_| self.prior.is_some()).map_or(self.embed_dim, dims)
    }

    fn check_start(&self) -> Result<()> {
        let cca = self.start.options(self.cca.as_ref())?;
        let has_maps = self.prior.is_none() || cca.is_some();
        let expected = "model.start = \"cca\", whose maps it takes";
        Error::unless(has_maps, "model.prior", expected, "another start")?;
        let Some(cca) = cca else { return Ok(()) };
        let expected = "\"cca\" without model.published";
        Error::unless(self.published.is_none(), "model.start", expected, "both")?;
        cca.fits(self.start_width())
    }
}

/// Published weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// A file that [`Uniter::open`](crate::model::Uniter::open) reads.
    pub weights: PathBuf,
    /// Folder of the vocabulary: `tokenizer.json`, or `vocab.txt` and `tokenizer_config.json`.
    pub vocabulary: PathBuf,
}

/// The first updates of a training: masked words of captions alone, Eq. 1 without regions. A generator learns here which words may stand
/// where: the model in training, or the model of `synthetic.generator = "own"`. The other updates have their own warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CaptionsConfig {
    /// How many of the training's updates; the pairs get the others.
    pub first_updates: usize,
    /// Captions per update, drawn from the training split, each masked once.
    pub batch: usize,
    /// The largest learning rate of these updates.
    pub learning_rate: f64,
}

/// Masked sentences of an anchor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MaskingConfig {
    /// What is masked together.
    pub by: MaskBy,
    /// Whether a phrase that a caption has twice counts twice.
    pub duplicates: Duplicates,
    /// K: independent maskings per sentence.
    pub maskings: usize,
    /// Share of tokens that become targets, before the fallback.
    pub rate: f64,
}

/// Synthetic sentences of an anchor (§3.3 to §3.7), which are made only if a loss needs them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SyntheticConfig {
    /// Which model fills the masks.
    pub generator: GeneratorKind,
    /// Whether a dynamic generator draws with noise. A static generator never has noise.
    pub sampling: Sampling,
    /// L: refills per masking.
    pub refills: usize,
    /// τ of the draw.
    pub temperature: f64,
    /// Whether `[PAD] [UNK] [CLS] [SEP] [MASK]` are never drawn (departure 13).
    pub forbid_special: bool,
    /// Which sentences are no negatives.
    pub filter: FilterKind,
    /// Which of equal sentences stays.
    pub repeat: Repeat,
    /// Which of the other sentences become negatives.
    #[serde(default, skip_serializing_if = "is_default")]
    pub choice: Choice,
    /// m: the number of sentences that are kept for the losses.
    pub kept: usize,
    /// Whether one pass of a sentence serves all its losses. Otherwise the word losses have their own pass and their own noise.
    pub share_forward: bool,
    /// Departure 4: whether a caption beside its synthetic sentences has its second token at every position.
    pub released_positive: bool,
}

/// Which model fills the masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GeneratorKind {
    /// The model in training.
    Dynamic,
    /// A model with the weights that training began with (`w/ SG`).
    Static,
    /// A model of its own, which learns in the updates of `[captions]`, in place of the model in training. It never sees an image.
    Own,
}

/// How a dynamic generator computes its logits (departure 14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// With noise: the logits of the word loss.
    Training,
    /// Without noise, in a separate pass.
    Evaluation,
}

/// Which sentences are no negatives: `"paper"`, `"positive_only"`, `"penalty"` (departures 1 and 2), `"siblings"` or `{ absent = 0.03 }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FilterKind {
    /// [`Filter::Paper`](crate::Filter::Paper).
    Paper,
    /// [`Filter::PositiveOnly`](crate::Filter::PositiveOnly).
    PositiveOnly,
    /// [`Filter::Penalty`](crate::Filter::Penalty).
    Penalty,
    /// [`Filter::Siblings`](crate::Filter::Siblings), learnt from the training captions.
    Siblings,
    /// [`Filter::Absent`](crate::Filter::Absent), the quantile; evidence from the row's start, `model.start = "cca"`.
    Absent(f64),
}

/// Negatives from the training split (§3.8).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RetrievalConfig {
    /// Q: the number of images or texts that are drawn for an anchor and scored without a gradient.
    pub sampled: usize,
    /// h: the number of best items that are kept for the loss.
    pub kept: usize,
    /// Which images are anchors.
    pub image_anchors: ImageAnchors,
}

/// Which images are anchors in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ImageAnchors {
    /// Images drawn from the whole split, each with one of its texts.
    Independent,
    /// The images of the captions.
    Same,
}

/// Weights of the losses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LossConfig {
    /// How a true pair is ranked above its negatives, in Eq. 5 and 7.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ranking: RankingLoss,
    /// The margin of the hinges, a of Eq. 4.
    pub margin: f64,
    /// λ of the retrieval triplets, Eq. 5; 0 for none.
    pub itm: f64,
    /// λ of the masked words, Eq. 1; 0 for none.
    pub mlm: f64,
    /// λ of the synthetic sentences' triplets, Eq. 7; 0 for none.
    pub istm: f64,
    /// λ of word discrimination, Eq. 8; 0 for none.
    pub wod: f64,
    /// w₀ and w₁ of Eq. 8: the weights of a changed and of an unchanged token (departure 6).
    pub wod_weights: [f64; 2],
    /// λ of word correction, Eq. 9; 0 for none.
    pub woc: f64,
    /// Which tokens Eq. 9 corrects.
    pub woc_targets: CorrectionTargets,
}

/// How a true pair is ranked above its negatives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RankingLoss {
    /// A hinge of probabilities for each negative, [`hinges`](crate::losses::hinges).
    #[default]
    Hinge,
    /// Cross-entropy of the true pair among all its negatives: [`cross_entropy`](crate::losses::cross_entropy). Not in the paper.
    CrossEntropy,
}

/// Whether a key may be left out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl LossConfig {
    /// Whether a loss needs synthetic sentences.
    pub fn synthetic(&self) -> bool {
        self.istm > 0.0 || self.words()
    }

    /// Whether a loss needs the heads of phase 2.
    pub fn words(&self) -> bool {
        self.wod > 0.0 || self.woc > 0.0
    }
}

impl TagsDcConfig {
    /// # Errors
    /// If a value is out of its range. The error names the key, the range and the value.
    pub fn check(&self) -> Result<()> {
        let Self { model, captions, masking, synthetic, retrieval, loss, train } = self;
        for (key, n) in [
            ("model.embed_dim", model.embed_dim),
            ("model.heads", model.heads),
            ("model.layers", model.layers),
            ("masking.maskings", masking.maskings),
            ("synthetic.refills", synthetic.refills),
            ("synthetic.kept", synthetic.kept),
            ("retrieval.sampled", retrieval.sampled),
            ("retrieval.kept", retrieval.kept),
            ("train.batch", train.batch),
            ("train.validate_every", train.validate_every.unwrap_or(1)),
            ("train.validate_among", train.validate_among.unwrap_or(1)),
            ("train.micro_batch", train.micro_batch),
        ] {
            at_least_one(key, n)?;
        }
        if let Some(captions) = captions {
            at_least_one("captions.first_updates", captions.first_updates)?;
            let (first, most) = (captions.first_updates, train.updates.unwrap_or(usize::MAX));
            let expected = format_args!("below {most}, train.updates");
            Error::unless(first < most, "captions.first_updates", expected, first)?;
            at_least_one("captions.batch", captions.batch)?;
            above_zero("captions.learning_rate", captions.learning_rate)?;
        }
        let expected = format_args!("a divisor of {}", model.embed_dim);
        let fits = model.embed_dim.is_multiple_of(model.heads);
        Error::unless(fits, "model.heads", expected, model.heads)?;
        let expected = "at least 3: [CLS], a word, [SEP]";
        Error::unless(model.positions >= 3, "model.positions", expected, model.positions)?;
        below_one("model.hidden_dropout", model.hidden_dropout)?;
        above_zero("model.initializer_range", model.initializer_range)?;
        model.check_start()?;
        within("masking.rate", masking.rate, "above 0, at most 1", |x| x > 0.0 && x <= 1.0)?;
        let share =
            |key: &str, value: f64| within(key, value, "0 to 1", |x| (0.0..=1.0).contains(&x));
        share("loss.margin", loss.margin)?;
        above_zero("synthetic.temperature", synthetic.temperature)?;
        let learns = synthetic.generator != GeneratorKind::Own || captions.is_some();
        let expected = "a section [captions], in which the generator learns";
        Error::unless(learns, "synthetic.generator = \"own\"", expected, "none")?;
        if let FilterKind::Absent(quantile) = synthetic.filter {
            below_one("synthetic.filter.absent", quantile)?;
            let (place, fits) = ("synthetic.filter.absent", model.closed_form().is_some());
            let expected = "model.start = \"cca\", which gives the evidence";
            Error::unless(fits, place, expected, "another start")?;
        }
        let LossConfig { itm, mlm, istm, wod, woc, .. } = *loss;
        let losses = [("itm", itm), ("mlm", mlm), ("istm", istm), ("wod", wod), ("woc", woc)];
        for (name, weight) in losses {
            at_least_zero(&format!("loss.{name}"), weight)?;
        }
        let fits = losses.iter().any(|(_, weight)| *weight != 0.0);
        Error::unless(fits, "loss", "a loss.itm, mlm, istm, wod or woc above 0", "none")?;
        loss.wod_weights
            .iter()
            .try_for_each(|&weight| at_least_zero("loss.wod_weights", weight))?;
        above_zero("train.learning_rate", train.learning_rate)?;
        share("train.warmup", train.warmup)?;
        share("train.weight_decay", train.weight_decay)?;
        at_least_zero("train.grad_clip", train.grad_clip)
    }

    /// The backbone for regions of this width and this number of tokens.
    pub(crate) fn shape(&self, features: usize, tokens: usize) -> UniterShape {
        let ModelConfig { embed_dim, heads, layers, positions, initializer_range, .. } = self.model;
        let dropout = self.model.hidden_dropout;
        let mut shape = UniterShape::of_width(embed_dim, heads, layers, tokens);
        shape.text.positions = positions;
        (shape.text.dropout, shape.text.attention_dropout) = (dropout, dropout);
        UniterShape { features, initializer_range, ..shape }
    }
}

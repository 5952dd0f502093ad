//! What a config file says: every key is required, an unknown one is an error.

use std::path::PathBuf;

use itm_core::learn::{above_zero, at_least_one, at_least_zero, within};
use itm_core::start::{StartFrom, StartOptions};
use itm_core::{Error, Result};
use itm_kernels::Precision;
use serde::{Deserialize, Serialize};

use crate::model::UniterShape;
use crate::phrases::Duplicates;
use crate::{MaskBy, Repeat};

pub use crate::Corrected;

/// Everything [`TagsDc`](crate::train::TagsDc) needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagsDcConfig {
    /// The backbone.
    pub model: ModelConfig,
    /// What is masked: for the word loss, and for synthetic sentences.
    pub masking: MaskingConfig,
    /// Synthetic sentences that are made of it.
    pub synthetic: SyntheticConfig,
    /// Negatives out of the training split.
    pub retrieval: RetrievalConfig,
    /// Weights of the losses.
    pub loss: LossConfig,
    /// Steps and rates.
    pub train: TrainConfig,
}

/// Sizes of a UNITER.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Width d of all states.
    pub embed_dim: usize,
    /// Heads of attention; they divide the width.
    pub heads: usize,
    /// Blocks.
    pub layers: usize,
    /// Tokens of a text at most, `[CLS]` and `[SEP]` included.
    pub positions: usize,
    /// Share of values that is dropped in training, in embeddings, attention and outputs.
    pub hidden_dropout: f64,
    /// Standard deviation of random matrices and tables.
    pub initializer_range: f64,
    /// The weights before the first step: random ones, or the weights of [`TagsDc::with_start`](crate::train::TagsDc::with_start).
    #[serde(default)]
    pub start: StartFrom,
    /// Which closed form, where `start = "cca"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cca: Option<StartOptions>,
    /// Weights to begin with, of these sizes; without this key they are random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
}

impl ModelConfig {
    /// The closed form that the weights begin with; `None` where they do not.
    pub fn closed_form(&self) -> Option<&StartOptions> {
        self.cca.as_ref().filter(|_| self.start == StartFrom::Cca)
    }

    fn check_start(&self) -> Result<()> {
        if let Some(cca) = &self.cca {
            cca.validate()?;
        }
        let wrong = |expected: &str, got: &str| Err(Error::invalid("model.start", expected, got));
        match (&self.cca, &self.published) {
            _ if self.start == StartFrom::Random => Ok(()),
            (None, _) => wrong("\"cca\" with a section [model.cca]", "none"),
            (_, Some(_)) => wrong("\"cca\" without model.published", "both"),
            (Some(cca), None) => cca.fits(self.embed_dim),
        }
    }
}

/// Published weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// A file that [`Uniter::open`](crate::model::Uniter::open) reads.
    pub weights: PathBuf,
    /// Folder of its vocabulary: `tokenizer.json`, or `vocab.txt` and `tokenizer_config.json`.
    pub vocabulary: PathBuf,
}

/// Masked sentences of an anchor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskingConfig {
    /// What is masked together.
    pub by: MaskBy,
    /// Whether a phrase that a caption has twice counts twice.
    pub duplicates: Duplicates,
    /// K: independent maskings of a sentence.
    pub maskings: usize,
    /// Share of tokens that become targets, before the fallback.
    pub rate: f64,
}

/// Synthetic sentences of an anchor (§3.3 to §3.7): made only where a loss asks for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyntheticConfig {
    /// Who fills the masks.
    pub generator: GeneratorKind,
    /// Whether a dynamic generator draws with noise or without; a static one never has noise.
    pub sampling: Sampling,
    /// L: refills of a masking.
    pub refills: usize,
    /// τ of the draw.
    pub temperature: f64,
    /// Whether `[PAD] [UNK] [CLS] [SEP] [MASK]` are never drawn (departure 13).
    pub forbid_special: bool,
    /// Which sentences are no negatives.
    pub filter: FilterKind,
    /// Which of equal sentences stays.
    pub repeat: Repeat,
    /// m: the best of them, which learn.
    pub kept: usize,
    /// Whether one pass of a sentence serves all its losses; otherwise the word losses have a pass, and noise, of their own.
    pub share_forward: bool,
    /// Departure 4: the caption in a batch of synthetic sentences is a row of its second position over and over.
    pub released_positive: bool,
}

/// Who fills the masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeneratorKind {
    /// The model that learns.
    Dynamic,
    /// The weights that it began with, as they were then (`w/ SG`).
    Static,
}

/// How a dynamic generator computes what it draws from (departure 14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// With noise: the logits of the word loss.
    Training,
    /// Without noise, in a pass of its own.
    Evaluation,
}

/// Which sentences are no negatives (departures 1 and 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// Negatives out of the training split (§3.8).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrievalConfig {
    /// Q: images, and texts, that are drawn for an anchor and scored without a gradient.
    pub sampled: usize,
    /// h: the best of them, which learn.
    pub kept: usize,
    /// Which images look for texts.
    pub image_anchors: ImageAnchors,
}

/// Which images look for texts in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageAnchors {
    /// Others than the captions' own, drawn from the whole split, each with one of its texts.
    Independent,
    /// Those of the captions.
    Same,
}

/// Weights of the losses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossConfig {
    /// a of Eq. 4.
    pub margin: f64,
    /// λ of the retrieval triplets, Eq. 5; 0 for none.
    pub itm: f64,
    /// λ of the masked words, Eq. 1; 0 for none.
    pub mlm: f64,
    /// λ of the synthetic sentences' triplets, Eq. 7; 0 for none.
    pub istm: f64,
    /// λ of word discrimination, Eq. 8; 0 for none.
    pub wod: f64,
    /// w₀ and w₁ of Eq. 8: weights of a changed token and of one that stayed (departure 6).
    pub wod_weights: [f64; 2],
    /// λ of word correction, Eq. 9; 0 for none.
    pub woc: f64,
    /// Which tokens Eq. 9 corrects.
    pub woc_targets: Corrected,
}

impl LossConfig {
    /// Whether there are synthetic sentences.
    pub fn synthetic(&self) -> bool {
        self.istm > 0.0 || self.words()
    }

    /// Whether the heads of phase 2 learn.
    pub fn words(&self) -> bool {
        self.wod > 0.0 || self.woc > 0.0
    }
}

/// The course of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Seed of weights and order.
    pub seed: u64,
    /// Passes over all captions at most; 0 trains nothing.
    pub epochs: usize,
    /// Updates at most; without this key the epochs alone decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<usize>,
    /// Updates from one validation to the next; without this key each epoch ends in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate_every: Option<usize>,
    /// In validation each text ranks its image among this number of images: its own and the next ones in order (released code: 400). Without
    /// this key all pairs are ranked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate_among: Option<usize>,
    /// Anchors an update.
    pub batch: usize,
    /// Anchors whose losses are computed at once: fewer need less memory, and give the same update but for noise.
    pub micro_batch: usize,
    /// The largest rate.
    pub learning_rate: f64,
    /// Share of the updates in which the rate rises.
    pub warmup: f64,
    /// Of Adam, decoupled.
    pub weight_decay: f64,
    /// Largest norm of all gradients together; 0: not clipped.
    pub grad_clip: f64,
    /// Precision of the linear maps in UNITER's blocks. `"bf16"` rounds the operands of their products to bf16; sums, weights and all else
    /// stay f32. It needs the backend `cpu`, and saves time on processors with AVX512-BF16; others compute in f32. Without this key:
    /// `"f32"`.
    #[serde(default, skip_serializing_if = "Precision::is_f32")]
    pub precision: Precision,
}

impl TrainConfig {
    /// Updates of a whole run over this number of captions.
    pub fn all_updates(&self, captions: usize) -> usize {
        let all = self.epochs * captions.div_ceil(self.batch);
        self.updates.map_or(all, |updates| all.min(updates))
    }

    /// The rate of update n of N, counted from 1.
    ///
    /// ```text
    /// n < w:  η n / w        otherwise  η (N − n) / (N − w), at least 1e-8        w = warmup · N
    /// ```
    ///
    /// ```
    /// use tags_dc::config::TrainConfig;
    ///
    /// let train = TrainConfig {
    ///     seed: 0, epochs: 1, updates: None, validate_every: None, validate_among: None, batch: 8, micro_batch: 8,
    ///     learning_rate: 1e-3, warmup: 0.1, weight_decay: 0.01, grad_clip: 2.0, precision: Default::default(),
    /// };
    /// assert_eq!(train.rate(1, 100), 1e-4);
    /// assert_eq!(train.rate(10, 100), 1e-3);
    /// assert_eq!(train.rate(100, 100), 1e-8);
    /// ```
    pub fn rate(&self, n: u64, all: u64) -> f64 {
        let (n, all) = (n as f64, all as f64);
        let warm = self.warmup * all;
        let share = if n < warm { n / warm } else { (all - n) / (all - warm) };
        let rate = self.learning_rate * share;
        if rate > 0.0 { rate } else { 1e-8 } // also where all updates are warm-up
    }
}

impl TagsDcConfig {
    /// # Errors
    /// A key, its range, its value.
    pub fn check(&self) -> Result<()> {
        let Self { model, masking, synthetic, retrieval, loss, train } = self;
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
        if !model.embed_dim.is_multiple_of(model.heads) {
            let expected = format!("a divisor of {}", model.embed_dim);
            return Err(Error::invalid("model.heads", expected, model.heads));
        }
        if model.positions < 3 {
            let expected = "at least 3: [CLS], a word, [SEP]";
            return Err(Error::invalid("model.positions", expected, model.positions));
        }
        within("model.hidden_dropout", model.hidden_dropout, "a share below 1", |x| {
            (0.0..1.0).contains(&x)
        })?;
        above_zero("model.initializer_range", model.initializer_range)?;
        model.check_start()?;
        within("masking.rate", masking.rate, "above 0, at most 1", |x| x > 0.0 && x <= 1.0)?;
        let share =
            |key: &str, value: f64| within(key, value, "0 to 1", |x| (0.0..=1.0).contains(&x));
        share("loss.margin", loss.margin)?;
        above_zero("synthetic.temperature", synthetic.temperature)?;
        let losses = [
            ("loss.itm", loss.itm),
            ("loss.mlm", loss.mlm),
            ("loss.istm", loss.istm),
            ("loss.wod", loss.wod),
            ("loss.woc", loss.woc),
        ];
        losses.into_iter().try_for_each(|(key, weight)| at_least_zero(key, weight))?;
        if losses.iter().all(|(_, weight)| *weight == 0.0) {
            let expected = "a loss.itm, mlm, istm, wod or woc above 0";
            return Err(Error::invalid("loss", expected, "none"));
        }
        loss.wod_weights
            .iter()
            .try_for_each(|&weight| at_least_zero("loss.wod_weights", weight))?;
        above_zero("train.learning_rate", train.learning_rate)?;
        share("train.warmup", train.warmup)?;
        share("train.weight_decay", train.weight_decay)?;
        at_least_zero("train.grad_clip", train.grad_clip)
    }

    /// The backbone for regions of this width and this number of tokens.
    pub fn shape(&self, features: usize, tokens: usize) -> UniterShape {
        let ModelConfig { embed_dim, heads, layers, positions, .. } = self.model;
        let (dropout, initializer_range) =
            (self.model.hidden_dropout, self.model.initializer_range);
        let mut shape = UniterShape::of_width(embed_dim, heads, layers, tokens);
        shape.text.positions = positions;
        (shape.text.dropout, shape.text.attention_dropout) = (dropout, dropout);
        UniterShape { features, initializer_range, ..shape }
    }
}

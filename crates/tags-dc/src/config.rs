//! What a config file says: every key is required, an unknown one is an error.

use itm_core::learn::{above_zero, at_least_one, at_least_zero, within};
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::model::UniterShape;

/// Everything [`TagsDc`](crate::train::TagsDc) needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagsDcConfig {
    /// The backbone.
    pub model: ModelConfig,
    /// What is masked for the word loss.
    pub masking: MaskingConfig,
    /// Negatives out of the training split.
    pub retrieval: RetrievalConfig,
    /// Weights of the losses.
    pub loss: LossConfig,
    /// Steps and rates.
    pub train: TrainConfig,
}

/// Sizes of a UNITER that begins at random.
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
    /// Share of values that is dropped in training: of embeddings, attention and outputs.
    pub hidden_dropout: f64,
    /// Standard deviation of random matrices and tables.
    pub initializer_range: f64,
}

/// Masked sentences of an anchor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskingConfig {
    /// K: independent maskings of a sentence.
    pub maskings: usize,
    /// Share of tokens that become targets, before the fallback.
    pub rate: f64,
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
    /// Others than those of the captions, drawn from the whole split, each with one of its texts.
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
}

/// The course of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Seed of weights and order.
    pub seed: u64,
    /// Passes over all captions; 0 trains nothing.
    pub epochs: usize,
    /// Anchors an update.
    pub batch: usize,
    /// The largest rate.
    pub learning_rate: f64,
    /// Share of the updates in which the rate rises.
    pub warmup: f64,
    /// Of Adam, decoupled.
    pub weight_decay: f64,
    /// Largest norm of all gradients together; 0: not clipped.
    pub grad_clip: f64,
}

impl TrainConfig {
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
    ///     seed: 0, epochs: 1, batch: 8, learning_rate: 1e-3, warmup: 0.1, weight_decay: 0.01, grad_clip: 2.0,
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
        let Self { model, masking, retrieval, loss, train } = self;
        for (key, n) in [
            ("model.embed_dim", model.embed_dim),
            ("model.heads", model.heads),
            ("model.layers", model.layers),
            ("masking.maskings", masking.maskings),
            ("retrieval.sampled", retrieval.sampled),
            ("retrieval.kept", retrieval.kept),
            ("train.batch", train.batch),
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
        within("masking.rate", masking.rate, "above 0, at most 1", |x| x > 0.0 && x <= 1.0)?;
        let share =
            |key: &str, value: f64| within(key, value, "0 to 1", |x| (0.0..=1.0).contains(&x));
        share("loss.margin", loss.margin)?;
        at_least_zero("loss.itm", loss.itm)?;
        at_least_zero("loss.mlm", loss.mlm)?;
        if loss.itm == 0.0 && loss.mlm == 0.0 {
            let expected = "a loss.itm or loss.mlm above 0";
            return Err(Error::invalid("loss", expected, "neither"));
        }
        above_zero("train.learning_rate", train.learning_rate)?;
        share("train.warmup", train.warmup)?;
        share("train.weight_decay", train.weight_decay)?;
        at_least_zero("train.grad_clip", train.grad_clip)
    }

    /// The backbone for regions of a width and so many tokens.
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

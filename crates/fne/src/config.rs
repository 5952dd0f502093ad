//! What a config file says: every key is required, an unknown one is an error.

mod preset;

use itm_core::encoders::TextPool;
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::statistics::{Reset, Variance};
use crate::weights::{Rule, Tie};

pub use preset::Preset;

/// Everything [`Fne`](crate::Fne) needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FneConfig {
    /// Encoders.
    pub model: ModelConfig,
    /// Steps, rates, noise.
    pub train: TrainConfig,
    /// Negatives: bank, statistics, weights.
    pub sampler: SamplerConfig,
}

/// Encoders over precomputed global image features and word numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Width d of the joint space; also that of the GRU's state.
    pub embed_dim: usize,
    /// Width of a word vector.
    pub word_dim: usize,
    /// What is done to a row of image features first.
    pub features: FeatureTransform,
    /// How a text's word states become one vector.
    pub text_pool: TextPool,
}

impl ModelConfig {
    /// Features as they are, mean over words.
    pub fn new(embed_dim: usize, word_dim: usize) -> Self {
        Self { embed_dim, word_dim, features: FeatureTransform::Raw, text_pool: TextPool::Mean }
    }
}

/// What is done to a row of image features before the projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureTransform {
    /// Nothing.
    Raw,
    /// Divided by its norm.
    L2,
    /// `√max(x, 0)`, then divided by its norm: tames the few large values of rectified features.
    SqrtL2,
}

impl FeatureTransform {
    /// Transforms one row in place; a row of zeros stays one.
    ///
    /// ```
    /// let mut row = [9.0, 16.0, -1.0];
    /// fne::FeatureTransform::SqrtL2.apply(&mut row);
    /// assert_eq!(row, [0.6, 0.8, 0.0]);
    /// ```
    pub fn apply(self, row: &mut [f32]) {
        if self == Self::Raw {
            return;
        }
        if self == Self::SqrtL2 {
            row.iter_mut().for_each(|x| *x = x.max(0.0).sqrt());
        }
        let norm = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        if norm > 0.0 {
            row.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
        }
    }
}

/// The course of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Seed of weights, bank, draws and noise.
    pub seed: u64,
    /// Passes over all captions.
    pub epochs: usize,
    /// Pairs a step.
    pub batch: usize,
    /// Pairs whose activations are kept at once. Below `batch` memory shrinks and a step takes a forward pass more; the
    /// loss and its gradient are those of the whole batch, dropout masks aside.
    pub micro_batch: usize,
    /// Of Adam.
    pub learning_rate: f64,
    /// Epochs (from 0) at whose start the rate is divided by ten.
    pub decay_epochs: Vec<usize>,
    /// Decoupled decay of AdamW; 0 is Adam.
    pub weight_decay: f64,
    /// Largest norm of all gradients together.
    pub grad_clip: f64,
    /// Share of image features and of word vectors' values set to 0 in training, in the online and
    /// the momentum encoders alike.
    pub dropout: f64,
    /// Share of words replaced by `<unk>` in training.
    pub word_dropout: f64,
}

impl TrainConfig {
    /// The rate of an epoch: divided by ten at each of `decay_epochs`.
    pub fn rate(&self, epoch: usize) -> f64 {
        let passed = self.decay_epochs.iter().filter(|&&e| e <= epoch).count();
        self.learning_rate * 0.1f64.powi(passed as i32)
    }
}

/// Which candidate becomes the negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Negatives {
    /// Drawn by the weights of Eq. 13 (the paper's "Full").
    Fne,
    /// The most violating one (its "w/o FNE").
    Hardest,
    /// Any of another image, each as likely: what an audit compares with.
    Uniform,
    /// The hardest of the batch by the warm-up's rule, in every epoch (its "w/o MMM+FNE").
    InBatch,
}

/// Loss of the warm-up epochs, over the pairs of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarmupLoss {
    /// The largest hinge of each row and column (released code).
    Hardest,
    /// All hinges. Ours: from scratch, hardest negatives in the first steps can pull every
    /// embedding to one point.
    Sum,
}

/// When the batch enters the bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enqueue {
    /// After the loss: candidates are the batch and the bank, B + K (released code).
    After,
    /// Before it: candidates are the bank, K (paper).
    Before,
}

/// Which similarity of a pair is its positive one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Positive {
    /// Online × momentum; gradient into the online side only (released code).
    Momentum,
    /// Online × online; gradient into both (paper).
    Online,
}

/// The memory, the statistics and the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplerConfig {
    /// Which candidate becomes the negative after the warm-up.
    pub negatives: Negatives,
    /// γ of Eq. 3.
    pub margin: f64,
    /// Rows K of each bank. 0 is the paper's "w/o MMM": the batch is the pool, both sides online.
    pub bank_size: usize,
    /// When the batch enters the bank.
    pub enqueue: Enqueue,
    /// m of Eq. 14.
    pub momentum: f64,
    /// Which similarity of a pair is its positive one.
    pub positive: Positive,
    /// Epochs of the in-batch loss before the bank is used.
    pub warmup_epochs: usize,
    /// Their loss.
    pub warmup_loss: WarmupLoss,
    /// Whether another caption of the same image is passed over in warm-up and statistics too.
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
    /// n⁺ must exceed this before the posterior is used.
    pub min_count: u64,
    /// How the variance is accumulated.
    pub variance: Variance,
    /// When the statistics start anew.
    pub reset: Reset,
}

impl SamplerConfig {
    /// The part that weighs candidates.
    pub fn rule(&self) -> Rule {
        let Self { prior, lambda, tie, tau, alpha, margin, margin_cut, min_count, .. } = *self;
        Rule { prior, lambda, tie, tau, alpha, margin, margin_cut, min_count }
    }

    /// Whether the in-batch loss is used in `epoch`.
    pub fn in_batch(&self, epoch: usize) -> bool {
        epoch < self.warmup_epochs || self.negatives == Negatives::InBatch
    }

    /// Whether momentum encoders take part at all.
    pub fn has_momentum(&self) -> bool {
        self.bank_size > 0 && self.negatives != Negatives::InBatch
    }
}

impl FneConfig {
    /// Refuses values nothing can be trained with.
    ///
    /// # Errors
    /// Names the key, its range and its value.
    pub fn validate(&self) -> Result<()> {
        let Self { model, train, sampler } = self;
        at_least_one("model.embed_dim", model.embed_dim)?;
        at_least_one("model.word_dim", model.word_dim)?;
        at_least_one("train.epochs", train.epochs)?;
        at_least_one("train.batch", train.batch)?;
        at_least_one("train.micro_batch", train.micro_batch)?;
        within("train.learning_rate", train.learning_rate, "above 0", |x| x > 0.0)?;
        within("train.weight_decay", train.weight_decay, "at least 0", |x| x >= 0.0)?;
        within("train.grad_clip", train.grad_clip, "above 0", |x| x > 0.0)?;
        let share = |x: f64| (0.0..1.0).contains(&x);
        within("train.dropout", train.dropout, "in [0, 1)", share)?;
        within("train.word_dropout", train.word_dropout, "in [0, 1)", share)?;
        within("sampler.margin", sampler.margin, "at least 0", |x| x >= 0.0)?;
        within("sampler.momentum", sampler.momentum, "in [0, 1]", |x| (0.0..=1.0).contains(&x))?;
        within("sampler.prior", sampler.prior, "in (0, 1)", |x| x > 0.0 && x < 1.0)?;
        within("sampler.lambda", sampler.lambda, "in [0, 1]", |x| (0.0..=1.0).contains(&x))?;
        within("sampler.tau", sampler.tau, "at least 0", |x| x >= 0.0)?;
        within("sampler.alpha", sampler.alpha, "at least 0", |x| x >= 0.0)
    }
}

fn at_least_one(key: &str, value: usize) -> Result<()> {
    if value == 0 { Err(Error::invalid(key, "at least 1", value)) } else { Ok(()) }
}

fn within(key: &str, value: f64, range: &str, holds: impl Fn(f64) -> bool) -> Result<()> {
    if value.is_finite() && holds(value) { Ok(()) } else { Err(Error::invalid(key, range, value)) }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A model small enough for tests.
    pub(crate) fn tiny(preset: Preset) -> FneConfig {
        let mut sampler = preset.sampler();
        sampler.bank_size = 12;
        FneConfig {
            model: ModelConfig::new(8, 6),
            train: TrainConfig { batch: 4, micro_batch: 4, learning_rate: 1e-2, ..preset.train() },
            sampler,
        }
    }

    fn every_object(value: &Value, path: &mut Vec<String>, visit: &mut impl FnMut(&[String])) {
        if let Value::Object(map) = value {
            visit(path);
            for (key, inner) in map {
                path.push(key.clone());
                every_object(inner, path, visit);
                path.pop();
            }
        }
    }

    fn at<'a>(value: &'a mut Value, path: &[String]) -> &'a mut Value {
        path.iter().fold(value, |v, key| &mut v[key.as_str()])
    }

    #[test]
    fn every_key_is_required_and_no_other_is_known() {
        let whole = serde_json::to_value(tiny(Preset::Default)).unwrap();
        let back: FneConfig = serde_json::from_value(whole.clone()).unwrap();
        assert_eq!(back, tiny(Preset::Default));
        let mut checked = 0;
        every_object(&whole, &mut vec![], &mut |path| {
            let mut more = whole.clone();
            at(&mut more, path)["colour"] = json!(1);
            let e = serde_json::from_value::<FneConfig>(more).unwrap_err().to_string();
            assert!(e.contains("colour"), "{e}");
            let keys: Vec<String> =
                at(&mut whole.clone(), path).as_object().unwrap().keys().cloned().collect();
            for key in keys {
                let mut less = whole.clone();
                at(&mut less, path).as_object_mut().unwrap().remove(&key);
                let e = serde_json::from_value::<FneConfig>(less).unwrap_err().to_string();
                assert!(e.contains(&key), "{e}");
                checked += 1;
            }
        });
        assert_eq!(checked, 3 + 4 + 10 + 18);
    }

    #[test]
    fn bad_values_name_their_key() {
        let check = |key: &str, change: &dyn Fn(&mut FneConfig)| {
            let mut config = tiny(Preset::Default);
            config.validate().unwrap();
            change(&mut config);
            let e = config.validate().unwrap_err().to_string();
            assert!(e.starts_with(key), "{e}");
        };
        check("model.embed_dim", &|c| c.model.embed_dim = 0);
        check("train.batch", &|c| c.train.batch = 0);
        check("train.micro_batch", &|c| c.train.micro_batch = 0);
        check("train.learning_rate", &|c| c.train.learning_rate = f64::NAN);
        check("train.grad_clip", &|c| c.train.grad_clip = 0.0);
        check("train.dropout", &|c| c.train.dropout = 1.0);
        check("sampler.prior", &|c| c.sampler.prior = 0.0);
        check("sampler.momentum", &|c| c.sampler.momentum = 1.5);
        check("sampler.lambda", &|c| c.sampler.lambda = -0.1);
    }

    #[test]
    fn the_rate_falls_at_the_start_of_decay_epochs() {
        let train = Preset::Official.train();
        for (epoch, want) in [(0, 2e-5), (4, 2e-5), (5, 2e-6), (14, 2e-6), (15, 2e-7), (24, 2e-7)] {
            assert!((train.rate(epoch) / want - 1.0).abs() < 1e-12, "epoch {epoch}");
        }
    }

    #[test]
    fn features_are_transformed_row_by_row() {
        let mut row = [3.0, -4.0];
        FeatureTransform::Raw.apply(&mut row);
        assert_eq!(row, [3.0, -4.0]);
        FeatureTransform::L2.apply(&mut row);
        assert_eq!(row, [0.6, -0.8]);
        let mut zero = [0.0, -1.0];
        FeatureTransform::SqrtL2.apply(&mut zero);
        assert_eq!(zero, [0.0, 0.0]);
    }
}

//! The course of training: steps and rates.

use itm_kernels::{AdamForm, AdamOptions, DecayRule, Precision};
use serde::{Deserialize, Serialize};

/// The course of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Seed of weights and order. In a target's file it is 0: `--seeds` counts from it.
    pub seed: u64,
    /// The most passes over all captions; 0 trains nothing.
    pub epochs: usize,
    /// The most updates. Without this key only the epochs decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<usize>,
    /// Updates from one validation to the next. Without this key each epoch ends with a validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate_every: Option<usize>,
    /// In validation each text ranks this number of images: its own image and the next ones in order (released code: 400). Without this key
    /// all pairs are ranked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate_among: Option<usize>,
    /// Anchors per update.
    pub batch: usize,
    /// Anchors whose losses are computed together. Fewer anchors need less memory, and give the same update except for noise.
    pub micro_batch: usize,
    /// The largest learning rate.
    pub learning_rate: f64,
    /// Share of the updates in which the rate rises.
    pub warmup: f64,
    /// Decoupled weight decay of Adam.
    pub weight_decay: f64,
    /// The largest norm of all gradients together; 0 for no clipping.
    pub grad_clip: f64,
    /// Precision of the products in UNITER's blocks. `"bf16"` rounds the operands of these products to bf16; sums, weights and all else
    /// stay f32. It needs the backend `cpu`, and saves time on processors with AVX512-BF16; other processors compute in f32. Without this
    /// key: `"f32"`.
    #[serde(default, skip_serializing_if = "Precision::is_f32")]
    pub precision: Precision,
}

/// Names of UNITER's parameters without weight decay: biases, and the factors of all norms except the norms of a region's features and of
/// its box; and the whole prior. The released program exempts names with `bias` or `LayerNorm.weight`, and calls these two norms `img_layer_norm` and
/// `pos_layer_norm`.
const FREE: &[&str] = &[
    "bias",
    "beta",
    "bert.norm.gamma",
    "norm_1.gamma",
    "norm_2.gamma",
    "regions.norm.gamma",
    "cls.norm.gamma",
    "correction.norm.gamma",
    "prior",
];

impl TrainConfig {
    /// The optimiser of [`Uniter`](crate::model::Uniter): decoupled decay, β = 0.9, 0.98, ε = 1e-6 added to the root of v before the
    /// correction of its bias, clipping of all gradients together (departure 8; the paper says "Adam"). Its rates are
    /// [`rate`](Self::rate). [`itm_kernels::named`] lists the parameters' names.
    ///
    /// ```
    /// use itm_kernels::AdamW;
    /// use tags_dc::{Preset, config::TagsDcConfig};
    ///
    /// let train = TagsDcConfig::tags(Preset::Official).train;
    /// let adam = AdamW::new(train.optimizer());
    /// assert_eq!((adam.options().weight_decay, adam.options().clip), (0.01, Some(2.0)));
    /// ```
    pub fn optimizer(&self) -> AdamOptions {
        AdamOptions {
            betas: [0.9, 0.98],
            epsilon: 1e-6,
            weight_decay: self.weight_decay,
            decayed: DecayRule::Unless(FREE),
            form: AdamForm::Bert,
            clip: (self.grad_clip > 0.0).then_some(self.grad_clip),
        }
    }

    /// Updates of a whole run over this number of captions.
    pub fn all_updates(&self, captions: usize) -> usize {
        let all = self.epochs.saturating_mul(captions.div_ceil(self.batch.max(1)));
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
        self.rate_below(self.learning_rate, n, all)
    }

    /// The same, with another largest rate.
    pub(crate) fn rate_below(&self, largest: f64, n: u64, all: u64) -> f64 {
        let (n, all) = (n as f64, all as f64);
        let warm = self.warmup * all;
        let share = if n < warm { n / warm } else { (all - n) / (all - warm) };
        let rate = largest * share;
        if rate > 0.0 { rate } else { 1e-8 } // also where all updates are warm-up
    }
}

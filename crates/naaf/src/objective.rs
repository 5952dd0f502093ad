//! Eq. 15, and its negatives.

use burn::tensor::Tensor;
use itm_core::audit::NegativeSet;
use itm_core::learn::Batch;
use itm_core::{Siblings, WarmupLoss, host, triplet_in_batch};

use crate::config::{NaafLossConfig, Reduction};

/// The loss of a batch, and its hinges.
pub(crate) struct BatchLoss {
    pub(crate) value: Tensor<1>,
    /// Share of the negatives with a hinge above 0.
    pub(crate) active: f64,
    /// Images as anchors, texts as anchors, `[b, b]` each; anchors are rows.
    hinges: [Vec<f32>; 2],
}

/// Eq. 15 over the scores of a batch, images × texts, pair i on the diagonal.
///
/// ```text
/// Σ_i [γ − S_ii + max_{j≠i} S_ij]₊ + [γ − S_ii + max_{j≠i} S_ji]₊        in a warm-up by `sum`: Σ_{j≠i} instead of max_{j≠i}
/// ```
pub(crate) fn loss(
    config: &NaafLossConfig,
    epoch: usize,
    scores: Tensor<2>,
    image_ids: &[i64],
) -> BatchLoss {
    let (b, counts) = (image_ids.len(), config.counts(epoch));
    let (margin, masked) = (config.margin, config.mask_same_image.then_some(image_ids));
    let siblings = masked.map_or(Siblings::Negatives, Siblings::Masked);
    let hinges = triplet_in_batch(scores, margin, siblings, counts);
    let values = hinges.clone().map(|hinges| host(hinges.inner()));
    let pull = values.iter().flatten().filter(|&&h| h > 0.0).count();
    let negatives = match counts {
        WarmupLoss::Hardest => 2 * b,
        WarmupLoss::Sum => 2 * b * (b - 1),
    };
    let [rows, columns] = hinges;
    let sum = rows.sum() + columns.sum();
    let value = match config.reduction {
        Reduction::Sum => sum,
        Reduction::Mean => sum / b as f64,
    };
    BatchLoss { value, active: pull as f64 / negatives.max(1) as f64, hinges: values }
}

impl BatchLoss {
    /// The negatives of both directions, those with a hinge above 0 with weight 1. `scores` are the scores of the batch.
    pub(crate) fn negatives(
        &self,
        config: &NaafLossConfig,
        batch: &Batch,
        scores: &[f32],
    ) -> [NegativeSet; 2] {
        let pull =
            |hinges: &Vec<f32>| hinges.iter().map(|&h| f32::from(u8::from(h > 0.0))).collect();
        let weights = self.hinges.each_ref().map(pull);
        let ids = [batch.image_ids, batch.caption_ids];
        NegativeSet::in_batch(ids, scores, config.mask_same_image, weights, config.margin)
    }
}

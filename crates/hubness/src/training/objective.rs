//! The loss of a batch, and how much each negative pulls.

use burn::tensor::Tensor;
use itm_core::audit::NegativeSet;
use itm_core::contrastive::Contrast;
use itm_core::host;
use itm_core::learn::Batch;

use super::config::{HalConfig, Objective};
use crate::losses::{BankScores, Siblings, aaai_bank, hub_factors, max, reweighted, sum};

/// A loss and what a step reports about it.
pub(super) struct LossParts {
    pub(super) loss: Tensor<1>,
    /// Share of the negatives that pull.
    pub(super) active: f64,
    /// Hinges of both directions, `[b, b]`, anchors in rows; only the objectives of the paper have them.
    hinges: Option<[Vec<f32>; 2]>,
}

/// The loss of a batch with these scores.
pub(super) fn outcome(
    config: &HalConfig,
    contrast: Option<&Contrast>,
    scores: Tensor<2>,
    image_ids: &[i64],
    bank: &BankScores,
) -> LossParts {
    let margin = config.loss.margin;
    let masked = config.loss.mask_same_image.then_some(image_ids);
    let siblings = masked.map_or(Siblings::Negatives, Siblings::Masked);
    let contrast = || contrast.expect("made for this objective");
    // Every negative pulls.
    let pulled = |loss| LossParts { loss, active: 1.0, hinges: None };
    let (hinges, hardest) = match config.loss.objective {
        Objective::InfoNce => return pulled(contrast().info_nce(scores, siblings)),
        Objective::Sigmoid => return pulled(contrast().sigmoid(scores, siblings)),
        Objective::Sum => (sum(scores, margin, siblings), false),
        Objective::Max => (max(scores, margin, siblings), true),
        Objective::Hal => (sum(reweighted(scores, &config.hubs), margin, siblings), false),
        Objective::MaxHal => (max(reweighted(scores, &config.hubs), margin, siblings), true),
        // Only the second has a bank; without entries it is the local loss.
        Objective::HalAaaiLocal | Objective::HalAaaiBank => {
            let active = above(&scores, config.aaai.local_ep);
            let loss = aaai_bank(scores, bank, &config.aaai, &config.bank).mean();
            return LossParts { loss, active, hinges: None };
        }
    };
    let b = image_ids.len();
    let values = hinges.clone().map(host);
    let count = values.iter().flatten().filter(|&&h| h > 0.0).count();
    let terms = if hardest { 2 * b } else { 2 * b * b.saturating_sub(1) };
    let [rows, columns] = hinges;
    LossParts {
        loss: rows.sum() + columns.sum(),
        active: count as f64 / terms.max(1) as f64,
        hinges: Some(values),
    }
}

impl LossParts {
    /// The negatives of both directions: images as anchors, texts as anchors. Their weights are how much each pulls. Hinge objectives: 1
    /// where the hinge is active, for HAL the factor W of Eq. 4 instead. AAAI objectives: 1 where O > e. Contrastive objectives: 1.
    pub(super) fn negatives(
        &self,
        config: &HalConfig,
        batch: &Batch,
        scores: &Tensor<2>,
    ) -> [NegativeSet; 2] {
        let b = batch.image_ids.len();
        let contrastive = config.loss.objective.is_contrastive();
        let masked = config.loss.mask_same_image && (self.hinges.is_some() || contrastive);
        let raw = host(scores.clone());
        let factors = match config.loss.objective {
            Objective::Hal | Objective::MaxHal => host(hub_factors(scores.clone(), &config.hubs)),
            _ => vec![1.0; b * b],
        };
        let weights = [0, 1].map(|side| {
            let weight = |n: usize| {
                let k = if side == 0 { n } else { n % b * b + n / b }; // images × texts
                let pulls = match &self.hinges {
                    Some(hinges) => hinges[side][n] > 0.0,
                    None => contrastive || f64::from(raw[k]) > config.aaai.local_ep,
                };
                if pulls { factors[k] } else { 0.0 }
            };
            (0..b * b).map(weight).collect()
        });
        let ids = [batch.image_ids, batch.caption_ids];
        NegativeSet::in_batch(ids, &raw, masked, weights, config.loss.margin)
    }
}

/// Share of the negatives with scores above e, and thus with exponents above 0.
fn above(scores: &Tensor<2>, e: f64) -> f64 {
    let b = scores.dims()[0];
    let values = host(scores.clone());
    let negatives = values.iter().enumerate().filter(|(n, _)| n / b != n % b);
    let count = negatives.filter(|&(_, &s)| f64::from(s) > e).count();
    count as f64 / (b * b.saturating_sub(1)).max(1) as f64
}

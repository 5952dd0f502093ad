//! The loss of a batch, and how much each negative pulls.

use burn::tensor::Tensor;
use itm_core::audit::{Direction, Draws, Observed, Pair};
use itm_core::contrastive::Contrast;
use itm_core::host;
use itm_core::learn::Batch;

use super::config::{HalConfig, Objective};
use crate::losses::{
    BankScores, Siblings, aaai_bank, aaai_local, hub_factors, max, reweighted, sum,
};

/// The negatives of one direction in one step, with the weights that the loss gives them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Negatives {
    /// Scores of the batch. `chosen` is each anchor's hardest negative, by the scores that the loss compares: S′ for the
    /// reweighted objectives. For an anchor without negatives, `chosen` is its own column, which is excluded.
    pub(super) observed: Observed,
    /// How much each negative pulls, `[b, b]`, as [`Observed::expected_true_share`] takes it. Hinge objectives: 1 where
    /// the hinge is active, for HAL the factor W of Eq. 4 instead. AAAI objectives: 1 where O > e. Contrastive objectives:
    /// 1. All other values are 0.
    pub(super) weights: Vec<f32>,
}

impl Negatives {
    /// The negatives that pulled, compared with a uniform draw and the most violating negative.
    pub(super) fn draws(&self, margin: f64, truth: &impl Fn(i64, i64) -> bool) -> Draws {
        let mut draws = self.observed.draws(margin, truth);
        draws.drawn = draws.anchors * self.observed.expected_true_share(&self.weights, truth);
        draws
    }
}

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
    let siblings = match config.loss.mask_same_image {
        true => Siblings::Masked(image_ids),
        false => Siblings::Negatives,
    };
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
        Objective::HalAaaiLocal => {
            let active = above(&scores, config.aaai.local_ep);
            let loss = aaai_local(scores, &config.aaai).mean();
            return LossParts { loss, active, hinges: None };
        }
        Objective::HalAaaiBank => {
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
    /// The negatives of both directions: images as anchors, texts as anchors.
    pub(super) fn negatives(
        &self,
        config: &HalConfig,
        batch: &Batch,
        scores: &Tensor<2>,
    ) -> [Negatives; 2] {
        let b = batch.image_ids.len();
        let contrastive = config.loss.objective.is_contrastive();
        let masked = config.loss.mask_same_image && (self.hinges.is_some() || contrastive);
        let same = |i: usize, j: usize| masked && batch.image_ids[i] == batch.image_ids[j];
        let excluded: Vec<bool> =
            (0..b * b).map(|n| n / b == n % b || same(n / b, n % b)).collect();
        let pair = |(&image, &caption): (&i64, &i64)| Pair { image, caption };
        let pairs: Vec<Pair> = batch.image_ids.iter().zip(batch.caption_ids).map(pair).collect();
        let raw = host(scores.clone());
        let factors = match config.loss.objective {
            Objective::Hal | Objective::MaxHal => host(hub_factors(scores.clone(), &config.hubs)),
            _ => vec![1.0; b * b],
        };
        let compared: Vec<f32> = raw.iter().zip(&factors).map(|(s, w)| s * w).collect();
        [Direction::ImageToText, Direction::TextToImage].map(|direction| {
            let turned = |values: &[f32]| match direction {
                Direction::ImageToText => values.to_vec(),
                Direction::TextToImage => {
                    (0..b * b).map(|n| values[n % b * b + n / b]).collect::<Vec<_>>()
                }
            };
            let side = usize::from(direction == Direction::TextToImage);
            let (scores, compared, factors) = (turned(&raw), turned(&compared), turned(&factors));
            let pulls = |n: usize| match &self.hinges {
                Some(hinges) => hinges[side][n] > 0.0,
                None if config.loss.objective.is_contrastive() => true,
                None => f64::from(scores[n]) > config.aaai.local_ep,
            };
            let weight = |n: usize| if pulls(n) && !excluded[n] { factors[n] } else { 0.0 };
            let weights = (0..b * b).map(weight).collect();
            let chosen = (0..b).map(|i| first_largest(&compared, &excluded, i, b)).collect();
            let observed = Observed {
                direction,
                anchors: pairs.clone(),
                candidates: pairs.iter().copied().map(Some).collect(),
                positive: (0..b).map(|i| scores[i * b + i]).collect(),
                excluded: excluded.clone(),
                chosen,
                scores,
            };
            Negatives { observed, weights }
        })
    }
}

/// The column of the largest value of a row that is not excluded, the first among equal values. If all columns are
/// excluded, the row's own column.
fn first_largest(values: &[f32], excluded: &[bool], row: usize, width: usize) -> usize {
    let left = (0..width).filter(|&j| !excluded[row * width + j]);
    let best =
        left.reduce(
            |best, j| {
                if values[row * width + j] > values[row * width + best] { j } else { best }
            },
        );
    best.unwrap_or(row)
}

/// Share of the negatives with scores above e, and thus with exponents above 0.
fn above(scores: &Tensor<2>, e: f64) -> f64 {
    let b = scores.dims()[0];
    let values = host(scores.clone());
    let negatives = values.iter().enumerate().filter(|(n, _)| n / b != n % b);
    let count = negatives.filter(|&(_, &s)| f64::from(s) > e).count();
    count as f64 / (b * b.saturating_sub(1)).max(1) as f64
}

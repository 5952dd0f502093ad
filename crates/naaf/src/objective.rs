//! Eq. 15, and an audit of its negatives.

use burn::tensor::Tensor;
use itm_core::audit::{Direction, Draws, Observed, Pair};
use itm_core::learn::Batch;
use itm_core::{AllNegatives, Block, Hardest, Siblings, host, triplet};

use crate::config::{LossConfig, Reduction, WarmupLoss};

/// The loss of a batch, and its hinges.
pub(crate) struct Loss {
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
    config: &LossConfig,
    epoch: usize,
    scores: Tensor<2>,
    image_ids: &[i64],
) -> Loss {
    let (b, counts) = (image_ids.len(), config.counts(epoch));
    let hinges = [scores.clone(), scores.transpose()].map(|scores| {
        let mut block = Block::in_batch(scores);
        if let Some(masked) = siblings(config, image_ids).masked(b, &block.scores.device()) {
            block.excluded = block.excluded.bool_or(masked);
        }
        match counts {
            WarmupLoss::Hardest => triplet(&block, &mut Hardest, config.margin),
            WarmupLoss::Sum => triplet(&block, &mut AllNegatives, config.margin),
        }
    });
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
    Loss { value, active: pull as f64 / negatives.max(1) as f64, hinges: values }
}

fn siblings<'a>(config: &LossConfig, image_ids: &'a [i64]) -> Siblings<'a> {
    if config.mask_same_image { Siblings::Masked(image_ids) } else { Siblings::Negatives }
}

impl Loss {
    /// Compares the negatives with a hinge above 0 with the truth. `scores` are the scores of the batch.
    pub(crate) fn draws(
        &self,
        config: &LossConfig,
        batch: &Batch,
        scores: &[f32],
        truth: &impl Fn(i64, i64) -> bool,
    ) -> Draws {
        let b = batch.image_ids.len();
        let pair = |(&image, &caption): (&i64, &i64)| Pair { image, caption };
        let pairs: Vec<Pair> = batch.image_ids.iter().zip(batch.caption_ids).map(pair).collect();
        let same = |i: usize, j: usize| batch.image_ids[i] == batch.image_ids[j];
        let out = |k: usize| k / b == k % b || config.mask_same_image && same(k / b, k % b);
        let excluded: Vec<bool> = (0..b * b).map(out).collect();
        let across: Vec<f32> = (0..b * b).map(|k| scores[k % b * b + k / b]).collect();
        let directions = [Direction::ImageToText, Direction::TextToImage];
        let mut draws = Draws::default();
        for ((direction, scores), hinges) in
            directions.into_iter().zip([scores.to_vec(), across]).zip(&self.hinges)
        {
            let mut observed = Observed {
                direction,
                anchors: pairs.clone(),
                candidates: pairs.iter().copied().map(Some).collect(),
                positive: (0..b).map(|i| scores[i * b + i]).collect(),
                excluded: excluded.clone(),
                chosen: vec![],
                scores,
            };
            observed.chosen = observed.hardest(config.margin);
            let pulls: Vec<f32> = hinges.iter().map(|&h| f32::from(u8::from(h > 0.0))).collect();
            let mut side = observed.draws(config.margin, truth);
            side.drawn = side.anchors * observed.expected_true_share(&pulls, truth);
            draws.add(&side);
        }
        draws
    }
}

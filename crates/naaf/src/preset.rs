//! Named sets of values.

use itm_core::learn::Schedule as Rates;
use itm_core::start::StartFrom;
use itm_core::towers::LearningParts;
use serde::{Deserialize, Serialize};

use crate::attention::{Attention, Intra, NegativeAware};
use crate::boundary::Form;
use crate::config::{
    NaafConfig, NaafLossConfig, NaafModelConfig, NaafTrainConfig, Reduction, RegionMapKind, Score,
    TextKind, VectorsFrom, WarmupLoss,
};
use crate::mining::{
    AboveOne, AlphaStar, InferenceBoundary, MiningConfig, NegativeImage, Schedule, WordPool,
};

/// Named sets of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The released program, quirks included.
    Official,
    /// The values that the paper prints, with misprints corrected.
    Paper,
    /// The released program without its defects.
    Default,
}

impl Preset {
    /// All sections. All presets have the same training and loss. The paper and the program begin with given word vectors
    /// ([`NaafEncoders::with_vectors`](crate::NaafEncoders::with_vectors)); `default` needs no file.
    pub fn config(self) -> NaafConfig {
        let (attention, mining) = (Attention::Naaf(self.attention()), self.mining());
        let vectors = match self {
            Self::Official | Self::Paper => VectorsFrom::Given,
            Self::Default => VectorsFrom::Random,
        };
        let (model, train, loss) = (model(vectors), train(), loss());
        NaafConfig { model, attention, mining, train, loss }
    }

    /// The attention of this preset.
    ///
    /// | | official, default | paper |
    /// |---|---|---|
    /// | φ below 0 (N6) | slope 0.1 | 0 |
    /// | intra propagation (N8) | the mask, λ 5 | value and mask, λ 20 |
    pub fn attention(self) -> NegativeAware {
        let official = NegativeAware {
            negative: true,
            masks: true,
            scale: 20.0,
            relevance_leak: 0.1,
            intra: Intra::Mask,
            intra_scale: 5.0,
        };
        match self {
            Self::Official | Self::Default => official,
            Self::Paper => NegativeAware {
                relevance_leak: 0.0,
                intra: Intra::ValueAndMask,
                intra_scale: 20.0,
                ..official
            },
        }
    }

    /// The mining of this preset.
    ///
    /// | | official, default | paper |
    /// |---|---|---|
    /// | schedule (N3) | once per caption | once per batch |
    /// | smoothing, reset below 200 words | 0.7, yes | 1, no |
    /// | α* (N2) | never | from epoch 15 |
    /// | boundary of inference (N2) | t_s | t |
    ///
    /// `official` computes Eq. 4 as the program does; the other presets compute it without cancellation.
    ///
    /// ```
    /// use naaf::Preset;
    ///
    /// assert_eq!(Preset::Official.mining().smoothing, 0.7);
    /// assert_eq!(Preset::Paper.mining().smoothing, 1.0);
    /// ```
    pub fn mining(self) -> MiningConfig {
        let official = MiningConfig {
            schedule: Schedule::PerCaption,
            smoothing: 0.7,
            min_words: 200,
            reset_below_min_words: true,
            negative_image: NegativeImage::LeastSimilar,
            negative_word_pool: WordPool::Max,
            alpha: 2.0,
            alpha_star: AlphaStar::Off,
            form: Form::Official,
            above_one: AboveOne::Zero,
            inference_boundary: InferenceBoundary::LowerBound,
        };
        match self {
            Self::Official => official,
            Self::Default => MiningConfig { form: Form::Stable, ..official },
            Self::Paper => MiningConfig {
                form: Form::Stable,
                schedule: Schedule::PerBatch,
                smoothing: 1.0,
                reset_below_min_words: false,
                alpha_star: AlphaStar::FromEpoch(15),
                inference_boundary: InferenceBoundary::Training,
                ..official
            },
        }
    }
}

/// A BiGRU of width 1,024 over vectors of width 300, and a linear map of regions.
fn model(word_vectors: VectorsFrom) -> NaafModelConfig {
    NaafModelConfig {
        embed_dim: 1024,
        start: StartFrom::Random,
        cca: None,
        score: Score::Attention,
        towers: None,
        region_map: RegionMapKind::Xavier,
        text: TextKind::Bigru,
        word_dim: 300,
        word_vectors,
        freeze_embedding: false,
    }
}

/// The training on Flickr30K; COCO has batches of 256.
fn train() -> NaafTrainConfig {
    NaafTrainConfig {
        seed: 0,
        epochs: 20,
        batch: 128,
        parts: LearningParts::All,
        learning_rate: 5e-4,
        schedule: Rates::Steps,
        decay_every: 10,
        lr_decay: 0.1,
        grad_clip: 2.0,
        region_dropout: 0.0,
        word_dropout: 0.0,
    }
}

/// Eq. 15 from the first epoch.
fn loss() -> NaafLossConfig {
    NaafLossConfig {
        margin: 0.2,
        mask_same_image: false,
        reduction: Reduction::Sum,
        warmup_epochs: 0,
        warmup_loss: WarmupLoss::Hardest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_differ() {
        let all = [Preset::Official, Preset::Paper, Preset::Default].map(Preset::config);
        assert!(all.iter().all(|config| config.check().is_ok()));
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    }
}

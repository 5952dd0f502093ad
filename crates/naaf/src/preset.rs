//! Named sets of values.

use itm_core::learn::Schedule as Rates;
use itm_core::start::StartFrom;
use itm_core::towers::LearningParts;
use itm_core::{Preset, WarmupLoss};
use itm_kernels::Precision;

use crate::attention::{Attention, Intra, NegativeAware};
use crate::boundary::Form;
use crate::config::{
    NaafConfig, NaafLossConfig, NaafModelConfig, NaafTrainConfig, Reduction, RegionMapKind, Score,
    TextKind, VectorsFrom,
};
use crate::mining::{
    AboveOne, AlphaStar, InferenceBoundary, MiningConfig, NegativeImage, Schedule, WordPool,
};

impl NaafConfig {
    /// All sections. All presets have the same training and loss. The paper and the program begin with given word vectors
    /// ([`NaafEncoders::with_vectors`](crate::NaafEncoders::with_vectors)); `default` needs no file.
    pub fn preset(preset: Preset) -> Self {
        let word_vectors = match preset {
            Preset::Official | Preset::Paper => VectorsFrom::Given,
            Preset::Default => VectorsFrom::Random,
        };
        Self {
            // A BiGRU of width 1,024 over vectors of width 300, and a linear map of regions.
            model: NaafModelConfig {
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
            },
            attention: Attention::Naaf(NegativeAware::preset(preset)),
            mining: MiningConfig::preset(preset),
            // The training on Flickr30K; COCO has batches of 256.
            train: NaafTrainConfig {
                seed: 0,
                epochs: 20,
                batch: 128,
                micro_batch: None,
                parts: LearningParts::All,
                layer_decay: None,
                weight_decay: None,
                learning_rate: 5e-4,
                schedule: Rates::Steps,
                decay_every: 10,
                lr_decay: 0.1,
                grad_clip: 2.0,
                region_dropout: 0.0,
                word_dropout: 0.0,
                precision: Precision::F32,
            },
            // Eq. 15 from the first epoch.
            loss: NaafLossConfig {
                margin: 0.2,
                mask_same_image: false,
                reduction: Reduction::Sum,
                warmup_epochs: 0,
                warmup_loss: WarmupLoss::Hardest,
            },
        }
    }
}

impl NegativeAware {
    /// The attention of a preset.
    ///
    /// | | official, default | paper |
    /// |---|---|---|
    /// | φ below 0 (N6) | slope 0.1 | 0 |
    /// | intra propagation (N8) | the mask, λ 5 | value and mask, λ 20 |
    pub fn preset(preset: Preset) -> Self {
        let official = Self {
            negative: true,
            masks: true,
            scale: 20.0,
            relevance_leak: 0.1,
            intra: Intra::Mask,
            intra_scale: 5.0,
        };
        match preset {
            Preset::Official | Preset::Default => official,
            Preset::Paper => Self {
                relevance_leak: 0.0,
                intra: Intra::ValueAndMask,
                intra_scale: 20.0,
                ..official
            },
        }
    }
}

impl MiningConfig {
    /// The mining of a preset.
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
    /// use naaf::{MiningConfig, Preset};
    ///
    /// assert_eq!(MiningConfig::preset(Preset::Official).smoothing, 0.7);
    /// assert_eq!(MiningConfig::preset(Preset::Paper).smoothing, 1.0);
    /// ```
    pub fn preset(preset: Preset) -> Self {
        let official = Self {
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
        match preset {
            Preset::Official => official,
            Preset::Default => Self { form: Form::Stable, ..official },
            Preset::Paper => Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_differ() {
        let all = Preset::ALL.map(NaafConfig::preset);
        assert!(all.iter().all(|config| config.check().is_ok()));
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    }
}

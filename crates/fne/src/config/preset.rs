//! Paper, released program, and that program without its defects.

use serde::{Deserialize, Serialize};

use super::{Enqueue, Negatives, Positive, SamplerConfig, TrainConfig, WarmupLoss};
use crate::statistics::{Reset, Variance};
use crate::weights::Tie;

/// Named sets of values, for pre-trained encoders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The released program, quirks included.
    Official,
    /// What is printed, literally.
    Paper,
    /// The released program without its defects.
    Default,
}

impl Preset {
    /// Bank, statistics and weights of this preset.
    ///
    /// | | official, default | paper |
    /// |---|---|---|
    /// | bank | 8224, batch enqueued after | 8192, batch enqueued before |
    /// | warm-up | 1 epoch | none |
    /// | λ, τ, P = λ | 0.001, 0.5, easy | 0.01, 1, non-easy |
    /// | margin cut | on | off |
    /// | s⁺ | online × momentum | online × online |
    ///
    /// ```
    /// use fne::Preset;
    ///
    /// assert_eq!(Preset::Official.sampler().lambda, 0.001);
    /// assert_eq!(Preset::Paper.sampler().lambda, 0.01);
    /// ```
    pub fn sampler(self) -> SamplerConfig {
        let official = SamplerConfig {
            negatives: Negatives::Fne,
            margin: 0.2,
            bank_size: 8224,
            enqueue: Enqueue::After,
            momentum: 0.995,
            positive: Positive::Momentum,
            warmup_epochs: 1,
            warmup_loss: WarmupLoss::Hardest,
            mask_same_image_everywhere: false,
            prior: 1e-4,
            lambda: 0.001,
            tie: Tie::Easy,
            tau: 0.5,
            alpha: 0.5,
            margin_cut: true,
            min_count: 200,
            variance: Variance::Official,
            reset: Reset::Epoch,
        };
        match self {
            Self::Official | Self::Default => official,
            Self::Paper => SamplerConfig {
                bank_size: 8192,
                enqueue: Enqueue::Before,
                positive: Positive::Online,
                warmup_epochs: 0,
                lambda: 0.01,
                tie: Tie::NonEasy,
                tau: 1.0,
                margin_cut: false,
                ..official
            },
        }
    }

    /// The course of training, the same in all presets.
    pub fn train(self) -> TrainConfig {
        TrainConfig {
            seed: 3407,
            epochs: 25,
            batch: 32,
            micro_batch: 32,
            learning_rate: 2e-5,
            decay_epochs: vec![5, 15],
            weight_decay: 0.0,
            grad_clip: 2.0,
            dropout: 0.0,
            word_dropout: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the equations and §A.2 on one side, the released program on the other.
    #[test]
    fn presets_differ_where_paper_and_program_do() {
        let (o, p, d) =
            (Preset::Official.sampler(), Preset::Paper.sampler(), Preset::Default.sampler());
        assert_eq!(o, d);
        assert_eq!((o.bank_size, p.bank_size), (8224, 8192));
        assert_eq!((o.enqueue, p.enqueue), (Enqueue::After, Enqueue::Before));
        assert_eq!((o.warmup_epochs, p.warmup_epochs), (1, 0));
        assert_eq!((o.lambda, p.lambda, o.tau, p.tau), (0.001, 0.01, 0.5, 1.0));
        assert_eq!((o.tie, p.tie), (Tie::Easy, Tie::NonEasy));
        assert_eq!((o.margin_cut, p.margin_cut), (true, false));
        assert_eq!((o.positive, p.positive), (Positive::Momentum, Positive::Online));
        assert_eq!((o.prior, o.alpha, o.margin, o.momentum), (1e-4, 0.5, 0.2, 0.995));
        assert_eq!((o.min_count, o.variance, o.reset), (200, Variance::Official, Reset::Epoch));
    }
}

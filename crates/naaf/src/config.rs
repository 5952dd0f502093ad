//! What a config file says of the method itself, and its presets.

use itm_core::Result;
use serde::{Deserialize, Serialize};

use crate::attention::{Attention, Intra, NegativeAware};
use crate::boundary::Form;
use crate::mining::{
    AboveOne, AlphaStar, InferenceBoundary, MiningConfig, NegativeImage, Schedule, WordPool,
};

/// How pairs are scored, and how the boundary moves. Every key is required, an unknown one is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NaafConfig {
    /// Eq. 6 to 12, or SCAN.
    pub attention: Attention,
    /// Eq. 1 to 5, 13 and 14.
    pub mining: MiningConfig,
}

impl NaafConfig {
    /// # Errors
    /// Names a value out of range.
    pub fn check(&self) -> Result<()> {
        self.attention.check()?;
        self.mining.check()
    }
}

/// Named sets of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The released program, quirks included.
    Official,
    /// What is printed, with its misprints corrected.
    Paper,
    /// The released program without its defects.
    Default,
}

impl Preset {
    /// Both parts.
    pub fn config(self) -> NaafConfig {
        NaafConfig { attention: Attention::Naaf(self.attention()), mining: self.mining() }
    }

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

    /// | | official, default | paper |
    /// |---|---|---|
    /// | schedule (N3) | a caption at a time | once a batch |
    /// | smoothing, reset below 200 words | 0.7, yes | 1, no |
    /// | α* (N2) | never | from epoch 15 |
    /// | boundary of inference (N2) | t_s | t |
    ///
    /// `official` computes Eq. 4 as the program does, the others stably.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_differ() {
        let all = [Preset::Official, Preset::Paper, Preset::Default].map(Preset::config);
        assert!(all.iter().all(|config| config.check().is_ok()));
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    }

    /// What is written is read back; a key that is missing or unknown is refused.
    #[test]
    fn every_key_is_required_and_known() {
        let config = Preset::Paper.config();
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<NaafConfig>(&text).unwrap(), config);
        let refused = |from: &str, to: &str| {
            assert!(text.contains(from), "{from} in {text}");
            serde_json::from_str::<NaafConfig>(&text.replace(from, to)).unwrap_err().to_string()
        };
        assert!(refused("\"smoothing\":1.0,", "").contains("smoothing"));
        assert!(refused("\"smoothing\"", "\"smothing\"").contains("smothing"));
        assert!(refused("\"masks\":true,", "").contains("masks"));
    }
}

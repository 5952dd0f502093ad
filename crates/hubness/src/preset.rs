//! The values of the paper, of the released programs, and of this crate. The program of HAL has no correction; for local scaling, the paper is its own.

use itm_core::Preset;

use crate::study::Settings;
#[cfg(feature = "burn")]
use crate::training::{HalConfig, Initialisation, Objective};
use crate::{CapacityScale, Stop};

impl Settings {
    /// Numbers of the corrections. Where a source says nothing, the number comes from `default`.
    ///
    /// | | official | paper | default |
    /// |---|---|---|---|
    /// | fair share of a matching, its end | | as listed | queries / items; when nothing fits |
    /// | NNN: α, k | 0.5, 256 | | 0.75, 128 |
    /// | Dual-IS: β of queries, of items | 1 / 1.99, 3, for scores with a scale | | 20, 10 |
    /// | local scaling: k | 5 | 10 | 10 |
    ///
    /// ```
    /// use hubness::study::Settings;
    /// use hubness::{CapacityScale, Preset, Stop};
    ///
    /// assert_eq!(Settings::preset(Preset::Official).nnn_alpha, 0.5);
    /// assert_eq!(Settings::preset(Preset::Paper).rgm_stop, Stop::Literal);
    /// assert_eq!(Settings::preset(Preset::Default).rgm_capacity, CapacityScale::Balanced);
    /// ```
    pub fn preset(preset: Preset) -> Self {
        let default = Self::default();
        match preset {
            Preset::Default => default,
            Preset::Paper => {
                Self { rgm_capacity: CapacityScale::Literal, rgm_stop: Stop::Literal, ..default }
            }
            Preset::Official => Self {
                nnn_alpha: 0.5,
                nnn_k: 256,
                dual_beta: vec![1.0 / 1.99, 3.0],
                local_k: 5,
                ..default
            },
        }
    }
}

#[cfg(feature = "burn")]
impl HalConfig {
    /// The training of an objective. In the paper and by default: 30 epochs of batches of 128; 1e-3 divided by ten every 10
    /// epochs, for MAX and MAX + HAL 2e-4 divided by ten every 15. The AAAI objectives are not in the paper: they have the
    /// constants of the released program and 1e-3.
    ///
    /// | | official | paper | default |
    /// |---|---|---|---|
    /// | random weights | uniform in ±0.1 and ±1/√d | Xavier | as official |
    /// | epochs; the rate falls every | 13; 8 | 30; 10, for MAX 15 | as paper |
    pub fn preset(preset: Preset, objective: Objective) -> Self {
        let mut config = Self::new(objective);
        match preset {
            Preset::Default => (),
            Preset::Paper => config.model.initialisation = Initialisation::Xavier,
            Preset::Official => {
                (config.train.learning_rate, config.train.decay_every) = (1e-3, 8);
                config.train.epochs = 13;
            }
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_preset_can_be_used() {
        let all = [Preset::Official, Preset::Paper, Preset::Default].map(Settings::preset);
        assert!(all.iter().all(|settings| settings.check().is_ok()));
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    }

    /// By section 4.1 of the paper, and by the released script for Flickr30K.
    #[cfg(feature = "burn")]
    #[test]
    fn trainings_are_the_papers_and_the_programs() {
        let train = |preset: Preset, objective| {
            let config = HalConfig::preset(preset, objective);
            config.validate().unwrap();
            let t = config.train;
            (t.epochs, t.batch, t.learning_rate, t.decay_every)
        };
        for preset in [Preset::Paper, Preset::Default] {
            assert_eq!(train(preset, Objective::Sum), (30, 128, 1e-3, 10));
            assert_eq!(train(preset, Objective::Hal), (30, 128, 1e-3, 10));
            assert_eq!(train(preset, Objective::Max), (30, 128, 2e-4, 15));
            assert_eq!(train(preset, Objective::MaxHal), (30, 128, 2e-4, 15));
        }
        for objective in [Objective::HalAaaiLocal, Objective::Max] {
            assert_eq!(train(Preset::Official, objective), (13, 128, 1e-3, 8));
        }
        let begins =
            |preset: Preset| HalConfig::preset(preset, Objective::Hal).model.initialisation;
        assert_eq!(begins(Preset::Paper), Initialisation::Xavier);
        assert_eq!(begins(Preset::Official), Initialisation::Released);
    }
}

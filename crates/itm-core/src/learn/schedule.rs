//! The learning rate over a run.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

/// How the learning rate falls over a run.
///
/// ```text
/// steps:  η · 0.1ⁿ
/// cosine: η · ½ (1 + cos(π t / T))
/// ```
///
/// | symbol | here |
/// |---|---|
/// | η | `initial` |
/// | n | `tenths`: how often the rate has been divided by ten; the keys of the method decide |
/// | t, T | `made` of `all` updates |
///
/// Both schedules start at the rate η. Under the cosine, the last update has a rate just above 0, and after the end the
/// rate is 0.
///
/// ```
/// use itm_core::learn::{Schedule, Updates};
///
/// let half = Updates { made: 50, all: 100 };
/// assert!((Schedule::Cosine.rate(1e-3, 0, half) - 0.5e-3).abs() < 1e-18);
/// assert!((Schedule::Steps.rate(1e-3, 1, half) - 1e-4).abs() < 1e-18);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Divided by ten at certain epochs.
    #[default]
    Steps,
    /// Half a period of the cosine, from the first update to the last.
    Cosine,
}

/// The progress of a run in updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Updates {
    /// Number of updates before the present one.
    pub made: u64,
    /// Number of updates of the whole run.
    pub all: u64,
}

impl Schedule {
    /// The rate of the next update.
    pub fn rate(self, initial: f64, tenths: usize, updates: Updates) -> f64 {
        match self {
            Self::Steps => initial * 0.1f64.powi(tenths as i32),
            Self::Cosine => {
                let part = updates.made as f64 / updates.all.max(1) as f64;
                initial * 0.5 * (1.0 + (PI * part.min(1.0)).cos())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates have the same bits as the methods' earlier formula `η · 0.1.powi(n)`.
    #[test]
    fn steps_keep_their_bits() {
        for tenths in 0..4 {
            for made in [0, 7, 100] {
                let got = Schedule::Steps.rate(2e-4, tenths, Updates { made, all: 100 });
                assert_eq!(got, 2e-4 * 0.1f64.powi(tenths as i32));
            }
        }
    }

    /// By hand: cos 0 = 1, cos π/3 = ½, cos π/2 = 0, cos 2π/3 = −½, cos π = −1.
    #[test]
    fn the_cosine_falls_from_the_rate_to_zero() {
        for (made, want) in [(0, 1.0), (2, 0.75), (3, 0.5), (4, 0.25), (6, 0.0), (9, 0.0)] {
            let got = Schedule::Cosine.rate(3e-4, 5, Updates { made, all: 6 });
            assert!((got - 3e-4 * want).abs() < 1e-18, "{made}: {got}");
        }
        assert!(Schedule::Cosine.rate(1.0, 0, Updates { made: 1403, all: 1404 }) > 0.0);
        assert_eq!(Schedule::Cosine.rate(1.0, 0, Updates { made: 0, all: 0 }), 1.0);
    }

    #[test]
    fn names_in_a_config() {
        for (schedule, name) in [(Schedule::Steps, "\"steps\""), (Schedule::Cosine, "\"cosine\"")] {
            assert_eq!(serde_json::to_string(&schedule).unwrap(), name);
            assert_eq!(serde_json::from_str::<Schedule>(name).unwrap(), schedule);
        }
        assert!(serde_json::from_str::<Schedule>("\"linear\"").is_err());
    }
}

//! The learning rate over a run.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// How the learning rate falls over a run.
///
/// ```text
/// steps:  the rate of the epoch, which the keys of the method decide
/// cosine: η · ½ (1 + cos(π t / T))
/// ```
///
/// | symbol | here |
/// |---|---|
/// | η | `initial` |
/// | t / T | `done`, the part of the run's updates that were made |
///
/// Both schedules start at the rate η. Under the cosine, the last update has a rate just above 0, and after the end the
/// rate is 0.
///
/// ```
/// use itm_core::learn::Schedule;
///
/// let half = Some(0.5);
/// assert!((Schedule::Cosine.rate(1e-3, 1e-4, half)? - 0.5e-3).abs() < 1e-18);
/// assert_eq!(Schedule::Steps.rate(1e-3, 1e-4, half)?, 1e-4);
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Divided at certain epochs.
    #[default]
    Steps,
    /// Half a period of the cosine, from the first update to the last.
    Cosine,
}

impl Schedule {
    /// The rate of the next update. `of_epoch` is the rate by the method's own keys for the present epoch.
    ///
    /// # Errors
    /// If the cosine does not know the number of updates of an epoch.
    pub fn rate(self, initial: f64, of_epoch: f64, done: Option<f64>) -> Result<f64> {
        match (self, done) {
            (Self::Steps, _) => Ok(of_epoch),
            (Self::Cosine, Some(done)) => Ok(initial * 0.5 * (1.0 + (PI * done.min(1.0)).cos())),
            (Self::Cosine, None) => {
                let got = "\"cosine\" for epochs of unknown length";
                Err(Error::invalid("train.schedule", "the number of steps of an epoch", got))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: cos 0 = 1, cos π/3 = ½, cos π/2 = 0, cos 2π/3 = −½, cos π = −1.
    #[test]
    fn the_cosine_falls_from_the_rate_to_zero() {
        let cosine = |initial, done| Schedule::Cosine.rate(initial, 7.0, Some(done)).unwrap();
        for (made, want) in
            [(0.0, 1.0), (2.0, 0.75), (3.0, 0.5), (4.0, 0.25), (6.0, 0.0), (9.0, 0.0)]
        {
            let got = cosine(3e-4, made / 6.0);
            assert!((got - 3e-4 * want).abs() < 1e-18, "{made}: {got}");
        }
        assert!(cosine(1.0, 1403.0 / 1404.0) > 0.0);
    }

    #[test]
    fn epochs_of_unknown_length_have_steps_but_no_cosine() {
        assert_eq!(Schedule::Steps.rate(2e-4, 2e-5, None).unwrap(), 2e-5);
        let error = Schedule::Cosine.rate(2e-4, 2e-5, None).unwrap_err().to_string();
        assert!(error.starts_with("train.schedule: ") && !error.contains('\n'), "{error}");
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

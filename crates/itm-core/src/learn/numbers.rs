//! Named numbers of a step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Numbers that a step reports, by name. Several steps can be summed and averaged.
///
/// ```
/// use itm_core::learn::Numbers;
///
/// let mut sum = Numbers::default();
/// sum.add(&Numbers::from([("margin", 0.2)]));
/// sum.add(&Numbers::from([("margin", 0.4), ("drawn", 1.0)]));
/// let means: Vec<_> = sum.means().collect();
/// assert_eq!(means[0], ("drawn", 1.0)); // over the steps that reported it
/// assert!((means[1].1 - 0.3).abs() < 1e-12);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Numbers(BTreeMap<String, (f64, f64)>);

impl Numbers {
    /// Adds the numbers of another step.
    pub fn add(&mut self, other: &Self) {
        for (name, (sum, steps)) in &other.0 {
            let (all, count) = self.0.entry(name.clone()).or_default();
            *all += sum;
            *count += steps;
        }
    }

    /// The mean of each number over the steps that reported it, by name.
    pub fn means(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, (sum, steps))| (name.as_str(), sum / steps))
    }
}

impl<const N: usize> From<[(&str, f64); N]> for Numbers {
    fn from(numbers: [(&str, f64); N]) -> Self {
        Self(numbers.into_iter().map(|(name, value)| (name.to_owned(), (value, 1.0))).collect())
    }
}

//! The hubs of a report.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::PerDirection;
use crate::hubs::{Counts, Hub, HubMeasures};

/// The hubs of nearest neighbours by direction, and one number over all directions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Hubs {
    /// `i2t` (hubs are texts) and `t2i` (hubs are images).
    #[serde(flatten)]
    pub sides: PerDirection<HubSide>,
    /// Sum of the skewness over k = 1, 5, 10 and the directions measured.
    pub hs_sum: Option<f64>,
}

/// The hubs of one direction.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HubSide {
    /// Hub measures of nearest neighbours, one entry for each k.
    pub measures: Vec<HubMeasures>,
    /// The items that turn up in the most lists of ten, the worst first.
    pub worst: Vec<Hub>,
    /// How often each count occurs, before (`nns`) and after each method.
    pub histograms: Vec<Histogram>,
}

impl HubSide {
    /// A method's histogram of N_k.
    pub fn histogram(&self, method: &str, k: u64) -> Option<&Histogram> {
        self.histograms.iter().find(|h| h.method == method && h.k == k)
    }
}

/// How many items have each count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// The row's method.
    pub method: String,
    /// Length of the lists.
    pub k: u64,
    /// `[N_k, number of items]`, N_k ascending, zero included where it occurs.
    pub counts: Vec<(u64, u64)>,
}

impl Histogram {
    pub(crate) fn new(method: &str, counts: &Counts) -> Self {
        let mut items = BTreeMap::new();
        counts.values.iter().for_each(|&count| *items.entry(u64::from(count)).or_default() += 1);
        let (method, k) = (method.to_owned(), counts.k as u64);
        Self { method, k, counts: items.into_iter().collect() }
    }

    /// Number of items.
    pub fn items(&self) -> u64 {
        self.counts.iter().map(|c| c.1).sum()
    }

    /// The largest N_k.
    pub fn max(&self) -> u64 {
        self.counts.iter().filter(|c| c.1 > 0).map(|c| c.0).max().unwrap_or(0)
    }
}

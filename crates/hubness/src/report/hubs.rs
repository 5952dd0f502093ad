//! The hubs of a report.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Directed;
use crate::hubs::HubMeasures;

/// The hubs of nearest neighbours by direction, and one number over all directions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Hubs {
    /// `i2t` (hubs are texts) and `t2i` (hubs are images).
    #[serde(flatten)]
    pub sides: Directed<HubSide>,
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

/// An item that turns up in too many lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hub {
    /// The item's index.
    pub item: u64,
    /// Its caption or file name, if names were given.
    pub name: Option<String>,
    /// N_10 under nearest neighbours.
    pub count: u64,
    /// N_1: for how many queries it comes first.
    pub first: u64,
    /// In how many of the `count` lists it is a wrong answer.
    pub wrong: u64,
    /// Share of the `wrong` lists in which the truth beyond the pairs calls the item right; `null` without such a truth or
    /// without a wrong list.
    pub deserved: Option<f64>,
    /// N_10 under each other method.
    #[serde(default)]
    pub after: BTreeMap<String, u64>,
    /// Queries that it wrongly wins.
    #[serde(default)]
    pub victims: Vec<Victim>,
}

/// A query for which a hub comes before every true item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Victim {
    /// The query's index.
    pub query: u64,
    /// Its caption or file name, if names were given.
    pub name: Option<String>,
    /// Score of the query with the hub.
    pub hub_score: f64,
    /// Score of the query with its best true item.
    pub true_score: f64,
    /// Rank of the best true item, from 1.
    pub true_rank: u64,
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
    /// Number of items.
    pub fn items(&self) -> u64 {
        self.counts.iter().map(|c| c.1).sum()
    }

    /// The largest N_k.
    pub fn max(&self) -> u64 {
        self.counts.iter().filter(|c| c.1 > 0).map(|c| c.0).max().unwrap_or(0)
    }
}

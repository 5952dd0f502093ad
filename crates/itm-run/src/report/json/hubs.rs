//! Hubs of the trained rows under nearest neighbours: how unequally items are found.

use hubness::Direction;
use hubness::hubs::Histogram;
use serde::{Deserialize, Serialize};

/// A number over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation, with n − 1; `null` with one seed.
    pub sd: Option<f64>,
}

/// Hubs of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowHubs {
    /// The row.
    pub row: String,
    /// Sum of the skewness of N_1, N_5 and N_10 over both directions.
    pub hs_sum: Spread,
    /// The paper's sum on the same data; `null` on other data or if not printed.
    pub paper_hs_sum: Option<f64>,
    /// N_1 and N_10, both directions.
    pub counts: Vec<HubCounts>,
}

/// N_k of a direction: how many queries have an item among their k nearest. An item in no list has count 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubCounts {
    /// Direction of the queries.
    pub direction: Direction,
    /// k.
    pub k: usize,
    /// Skewness.
    pub skewness: Spread,
    /// Share of all answers that would have to move so that all items have equal counts.
    pub robin_hood: Spread,
    /// Share of items in no list.
    pub never: Spread,
    /// The largest count.
    pub largest: Spread,
}

/// Hubs of `row` less the hubs of `minus`, paired over the same seeds and queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubDifference {
    /// The row that is expected to have fewer hubs.
    pub row: String,
    /// The row subtracted from it.
    pub minus: String,
    /// Difference of the sums of skewnesses.
    pub hs_sum: f64,
    /// Its 95 % interval: bootstrap over seeds and test images.
    pub hs_sum_ci95: [f64; 2],
    /// Direction of `skewness`.
    pub direction: Direction,
    /// k of `skewness`.
    pub k: usize,
    /// Difference of the skewnesses of N_k.
    pub skewness: f64,
    /// Its 95 % interval, made the same way.
    pub skewness_ci95: [f64; 2],
}

/// A figure of the paper: how many items have each N_k.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// Its number in the paper.
    pub number: u32,
    /// Direction of the queries.
    pub direction: Direction,
    /// k.
    pub k: usize,
    /// One curve per row.
    pub rows: Vec<DistributionOf>,
}

/// The items of a row, all seeds and folds together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistributionOf {
    /// The row.
    pub row: String,
    /// How many items have each count.
    pub histogram: Histogram,
}

//! Turns the reports of each row and seed into one table over seeds, beside the paper's table.

use std::collections::BTreeMap;

use hubness::Direction;
use hubness::report::{Hub, Report};
use serde::Serialize;

use super::method::{MethodSummary, row_of};
use super::orderings::{Ordering, orderings, verdict};
use crate::paper::Inferences;
use crate::report::mean;

/// The content of `summary.json`. rSum is in percentage points (0 to 600), a mean over seeds; `null` means unknown.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    pub(super) target: String,
    pub(super) paper: String,
    pub(super) table: u32,
    pub(super) dataset: String,
    pub(super) substitution: Option<String>,
    pub(super) rows: Vec<RowSummary>,
    pub(super) resamples: usize,
    pub(super) config_sha256: String,
    pub(super) data_sha256: String,
    pub(super) command: String,
    pub(super) seconds: f64,
}

/// What nearest neighbours and the closed form reach.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Origin {
    /// rSum on test, mean over the seeds measured here.
    pub(super) rsum: Option<f64>,
    /// rSum of the closed-form baseline on the same data.
    pub(super) cca: Option<f64>,
}

/// One row under every inference.
#[derive(Debug, Serialize)]
pub(super) struct RowSummary {
    pub(super) row: String,
    pub(super) verdict: String,
    /// The paper's line for the model behind its numbers.
    pub(super) printed: String,
    /// The data set of that model.
    pub(super) printed_on: String,
    pub(super) source: Origin,
    pub(super) seeds: usize,
    /// Parts of the test split that are ranked separately; 1 if it is ranked as a whole.
    pub(super) folds: usize,
    pub(super) methods: Vec<MethodSummary>,
    pub(super) orderings: Vec<Ordering>,
    /// The paper's Figure 3.
    pub(super) counts: Vec<CountsSummary>,
    /// The paper's Figure 4.
    pub(super) curves: Vec<CurveSummary>,
    pub(super) hubs: Vec<HubsOfSide>,
}

impl RowSummary {
    /// From the reports of a row, one per seed and fold; `printed` are the paper's numbers for its model.
    pub(super) fn new(
        row: &str,
        printed: Inferences,
        (reports, folds): (&[Report], usize),
        source: Origin,
    ) -> Self {
        let names = reports.first().map_or(&[][..], |report| &report.rows);
        let methods: Vec<_> =
            names.iter().map(|r| MethodSummary::new(&r.method, &printed, reports)).collect();
        let orderings = orderings(&methods);
        Self {
            verdict: verdict(row, &methods, &orderings, unit(folds)),
            printed_on: printed.dataset,
            printed: printed.model,
            counts: methods.iter().map(|m| CountsSummary::new(&m.method, reports)).collect(),
            curves: curves(reports),
            hubs: Direction::BOTH.iter().filter_map(|&d| HubsOfSide::new(d, reports)).collect(),
            seeds: reports.len() / folds,
            folds,
            source,
            row: row.into(),
            methods,
            orderings,
        }
    }
}

/// What has a report of its own.
pub(super) fn unit(folds: usize) -> &'static str {
    if folds == 1 { "seeds" } else { "folds" }
}

/// N_10 of the images under an inference, means over the seeds; `null` where N_10 was not counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CountsSummary {
    pub(super) method: String,
    pub(super) skewness: Option<f64>,
    /// The largest N_10.
    pub(super) largest: Option<f64>,
    /// Share of images in no list.
    pub(super) never: Option<f64>,
    /// `[N_10, share of images]` over all seeds together, N_10 ascending. Zero is included where it occurs.
    pub(super) shares: Vec<(u64, f64)>,
}

impl CountsSummary {
    const K: u64 = 10;

    fn new(method: &str, reports: &[Report]) -> Self {
        let measures = || {
            let after = reports.iter().filter_map(|r| row_of(r, method)?.hubs_after.t2i.as_ref());
            after.flatten().filter(|m| m.k == Self::K)
        };
        let histograms = || {
            let sides = reports.iter().filter_map(|r| r.hubs.sides.get(Direction::T2i));
            sides.filter_map(|side| side.histogram(method, Self::K))
        };
        let mut shares = BTreeMap::new();
        let items: u64 = histograms().map(|h| h.items()).sum();
        for &(count, of) in histograms().flat_map(|h| &h.counts) {
            *shares.entry(count).or_insert(0.0) += of as f64 / items as f64;
        }
        Self {
            method: method.into(),
            skewness: mean(measures().map(|m| m.skewness)),
            largest: mean(histograms().map(|h| h.max() as f64)),
            never: mean(measures().map(|m| m.anti_hub_share)),
            shares: shares.into_iter().collect(),
        }
    }
}

/// R@10 of one direction as a function of λ, mean over the seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CurveSummary {
    pub(super) method: String,
    pub(super) direction: String,
    pub(super) lambda: Vec<f64>,
    pub(super) r10: Vec<f64>,
    /// R@10 without RGM: λ = ∞.
    pub(super) unconstrained: Option<f64>,
}

fn curves(reports: &[Report]) -> Vec<CurveSummary> {
    let first = reports.first().map_or(&[][..], |report| &report.curves);
    let over_seeds = |curve: &hubness::report::Curve| {
        let same = || {
            let all = reports.iter().flat_map(|report| &report.curves);
            all.filter(|c| c.label == curve.label && c.direction == curve.direction)
        };
        let at = |k: usize| mean(same().filter_map(|c| c.y.get(k).copied()));
        CurveSummary {
            method: curve.label.clone(),
            direction: curve.direction.to_string(),
            lambda: curve.x.clone(),
            r10: (0..curve.x.len()).filter_map(at).collect(),
            unconstrained: mean(same().filter_map(|c| c.unconstrained)),
        }
    };
    first.iter().map(over_seeds).collect()
}

/// The worst hubs of a direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct HubsOfSide {
    pub(super) direction: String,
    /// Number of lists of ten, over all seeds, in which one of the worst hubs is a wrong answer.
    pub(super) wrong: u64,
    /// Share of these answers that the truth beyond the annotation calls right; `null` if no such truth is known.
    pub(super) deserved: Option<f64>,
    /// The worst hubs of the first seed.
    pub(super) worst: Vec<Hub>,
}

impl HubsOfSide {
    fn new(direction: Direction, reports: &[Report]) -> Option<Self> {
        let all = || reports.iter().filter_map(|r| r.hubs.sides.get(direction));
        let first = all().next()?;
        let known = || all().flat_map(|side| &side.worst).filter_map(|h| Some((h, h.deserved?)));
        let wrong: u64 = all().flat_map(|side| &side.worst).map(|hub| hub.wrong).sum();
        let deserved: f64 = known().map(|(hub, share)| share * hub.wrong as f64).sum();
        let of: u64 = known().map(|(hub, _)| hub.wrong).sum();
        Some(Self {
            direction: direction.to_string(),
            wrong,
            deserved: (of > 0).then(|| deserved / of as f64),
            worst: first.worst.clone(),
        })
    }
}

#[cfg(test)]
pub(super) mod tests;

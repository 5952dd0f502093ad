//! A scan for planted hubs: items that were made to answer queries with which they have nothing to do.
//!
//! A natural hub answers many queries of few topics. A planted hub answers queries from everywhere, or nearly all queries of one topic.
//! Topics are clusters of a bank of queries.
//!
//! ```text
//! z(j)       = (N_k(j) − median) / σ           σ = 1.4826 · MAD; where MAD is 0, 1.2533 · mean |N_k − median|
//! spread(j)  = −Σ_c p_c ln p_c / ln C          p_c = N_k(j, c) / N_k(j): the share of cluster c
//! capture(j) = max_c N_1(j, c) / max(n_c, n/C)  the largest share of one cluster's queries that have it first
//! score(j)   = z(j) · max(spread(j), capture(j))
//! E(x)       = t · exp(−(x − u) / β)           how many natural items have a score of x or more
//! ```
//!
//! | symbol | here |
//! |--------|------|
//! | N_k(j), N_k(j, c) | how many queries, and how many of cluster c, have item j among their k best |
//! | median, MAD | over all items; MAD is the median distance to the median |
//! | n, C, n_c | the numbers of queries, of clusters, and of the queries of cluster c; all queries of a tiny cluster prove little |
//! | u, t | the 95th percentile of the scores, and the number of scores above it |
//! | β | the larger of two estimates from the distances x − u above u: their median divided by ln 2, and the r-th of them divided by ln(t / (t − r)), r = ⌊0.9 t⌋ |
//!
//! Where u is 0, at most one item in twenty answers more queries than the median does. Such counts are too small for a tail: `false_alarms` is then
//! the number of items with such a score, and [`Budget::FalseAlarms`] is refused.
//!
//! If all counts are equal, σ is 0 and so is every z. Planted items beyond a tenth of the tail, which is 0.5 % of all items, make β too large and
//! hide each other: then take [`Budget::Items`]. With fewer than some hundred items little is known about the tail. A planted item that
//! answers no more queries than natural hubs do is not found.
//!
//! ```
//! use hubness::scan::{Budget, Scan};
//! use itm_core::tiles::Embeddings;
//!
//! // Ten topics, the first ten columns. Queries share a direction, the last column; so does one of the items, which is a little of each topic.
//! let noise = |at: usize, d: usize| ((at * 7919 + d * 104_729) % 1009) as f32 / 1009.0 - 0.5;
//! let row = |at: usize, common: f32| {
//!     (0..11).map(move |d| if d == at % 10 { 1.0 } else if d == 10 { common } else { noise(at, d) })
//! };
//! let queries: Vec<f32> = (0..400).flat_map(|at| row(at + 31, 0.9)).collect();
//! let mut items: Vec<f32> = (0..300).flat_map(|at| row(at, 0.0)).collect();
//! items.extend([0.4; 10].iter().chain(&[1.5]));
//! let queries = Embeddings::new("queries", 400, 11, &queries)?;
//! let scan = Scan::new(queries, Embeddings::new("items", 301, 11, &items)?, 5)?;
//! let alerts = scan.alerts(Budget::FalseAlarms(0.1))?;
//! assert_eq!(alerts.iter().map(|alert| alert.item).collect::<Vec<_>>(), [300]);
//! # Ok::<(), hubness::Error>(())
//! ```

mod admission;
mod clusters;
mod tail;

use itm_core::tiles::{Embeddings, Side, Tiles, TopK};
use itm_core::{Error, Result};
use serde::Serialize;

pub use admission::Admission;
use clusters::Clusters;
use tail::{Tail, median};

/// The counts of a collection over a bank of queries, and how suspicious each item is.
#[derive(Debug, Clone)]
pub struct Scan {
    summary: ScanSummary,
    clusters: Clusters,
    nearest: TopK,
    counts: Vec<u32>,
    tail: Tail,
    suspects: Vec<Alert>, // all scores above 0, largest first
}

/// How many queries of a cluster have an item among their k best, and first.
#[derive(Debug, Clone, Copy)]
struct ClusterCount {
    cluster: u32,
    count: u32,
    first: u32,
}

/// What speaks against an item.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Evidence {
    /// `N_k`: how many queries have the item among their k best.
    pub count: u32,
    /// `N_1`: how many queries have it first.
    pub first: u32,
    /// Robust z-score of the count.
    pub z: f64,
    /// The effective number of clusters of its queries, `C^spread`.
    pub clusters: f64,
    /// The largest share of one cluster's queries that have it first.
    pub capture: f64,
    /// `z · max(spread, capture)`.
    pub score: f64,
    /// How many natural items have such a score, `E(score)`.
    pub false_alarms: f64,
}

/// An item of the collection, and what speaks against it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Alert {
    /// The item's row.
    pub item: usize,
    /// What speaks against it.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// Which items are alerts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// Items whose score at most this many natural items are expected to reach. A budget above the number of scores in the tail counts as
    /// that number.
    FalseAlarms(f64),
    /// The items with the largest scores, at most this many: as many as a person can look at.
    Items(usize),
}

impl Budget {
    /// # Errors
    /// If it is not above 0.
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Self::Items(0) => Err(Error::invalid("alerts", "at least 1 item", 0)),
            Self::FalseAlarms(most) if !(most > 0.0 && most.is_finite()) => {
                Err(Error::invalid("false alarms", "a finite number above 0", most))
            }
            _ => Ok(()),
        }
    }
}

/// The numbers of a scan as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScanSummary {
    /// Number of queries.
    pub queries: usize,
    /// Number of items.
    pub items: usize,
    /// The k of `N_k`.
    pub k: usize,
    /// Number of clusters of queries.
    pub clusters: usize,
    /// The median of `N_k`.
    pub median: f64,
    /// σ of `N_k`.
    pub deviation: f64,
    /// The 99.9th percentile of `N_k`.
    pub high: u32,
    /// The 99.9th percentile of `N_1`.
    pub high_first: u32,
    /// The largest `N_k`.
    pub largest: u32,
}

impl Scan {
    /// Counts the `k` best of the items for every query of a bank. Both are used as they are: for cosines take rows of unit length.
    ///
    /// # Errors
    /// If there is no query or no item, `k` is 0, the widths differ, or values are so large that a score could overflow, or queries
    /// so long (some 10¹¹) that their clusters could.
    pub fn new(queries: Embeddings<'_>, items: Embeddings<'_>, k: usize) -> Result<Self> {
        for (place, least, got) in [
            ("queries", "at least 1 query", queries.rows()),
            ("items", "at least 1 item", items.rows()),
            ("k", "at least 1 item", k),
        ] {
            Error::unless(got > 0, place, least, 0)?;
        }
        let nearest = Tiles::new(queries, items)?.top(Side::Images, k);
        let clusters = Clusters::new(queries)?;
        let [mut counts, mut first] = [vec![0; items.rows()], vec![0; items.rows()]];
        let mut answers = Vec::with_capacity(queries.rows() * nearest.k());
        for query in 0..queries.rows() {
            let list = nearest.items(query);
            first[list[0] as usize] += 1;
            for &item in list {
                counts[item as usize] += 1;
                answers.push((item, clusters.of[query], item == list[0]));
            }
        }
        answers.sort_unstable();
        let [median, deviation] = center_and_deviation(&counts);
        let summary = ScanSummary {
            queries: queries.rows(),
            items: items.rows(),
            k,
            clusters: clusters.sizes.len(),
            median,
            deviation,
            high: high(&counts),
            high_first: high(&first),
            largest: counts.iter().copied().max().unwrap_or(0),
        };
        let (tail, suspects) = (Tail::default(), Vec::new());
        let mut scan = Self { summary, clusters, nearest, counts, tail, suspects };
        scan.judge(&answers);
        Ok(scan)
    }

    /// Fills in the evidence against every item, from items and clusters in ascending order.
    fn judge(&mut self, answers: &[(u32, u32, bool)]) {
        let mut scores = vec![0.0; self.counts.len()];
        for answers in answers.chunk_by(|a, b| a.0 == b.0) {
            let item = answers[0].0 as usize;
            let found = answers.chunk_by(|a, b| a.1 == b.1).map(|some| {
                let first = some.iter().filter(|answer| answer.2).count() as u32;
                ClusterCount { cluster: some[0].1, count: some.len() as u32, first }
            });
            let evidence = self.evidence(&found.collect::<Vec<_>>());
            scores[item] = evidence.score;
            if evidence.score > 0.0 {
                self.suspects.push(Alert { item, evidence });
            }
        }
        self.tail = Tail::new(&scores);
        for Alert { evidence, .. } in &mut self.suspects {
            evidence.false_alarms = self.tail.expected(evidence.score);
        }
        let order = |a: &Alert, b: &Alert| b.evidence.score.total_cmp(&a.evidence.score);
        self.suspects.sort_by(order); // stable: equal ones stay ascending
    }

    fn evidence(&self, found: &[ClusterCount]) -> Evidence {
        let count: u32 = found.iter().map(|found| found.count).sum();
        let first = found.iter().map(|found| found.first).sum();
        let ScanSummary { median, deviation, .. } = self.summary;
        let z = if deviation == 0.0 { 0.0 } else { (f64::from(count) - median) / deviation };
        let share = |found: &ClusterCount| f64::from(found.count) / f64::from(count);
        let entropy: f64 = found.iter().map(share).map(|p| -p * p.ln()).sum();
        let sizes = &self.clusters.sizes;
        let usual = self.clusters.of.len() as f64 / sizes.len() as f64;
        let captured = |found: &ClusterCount| {
            f64::from(found.first) / f64::from(sizes[found.cluster as usize]).max(usual)
        };
        let capture = found.iter().map(captured).fold(0.0, f64::max);
        let spread = if sizes.len() == 1 { 0.0 } else { entropy / (sizes.len() as f64).ln() };
        let score = z * spread.max(capture) + 0.0; // −0 + 0 = +0
        let clusters = if count == 0 { 0.0 } else { entropy.exp() };
        let false_alarms = self.tail.expected(score);
        Evidence { count, first, z, clusters, capture, score, false_alarms }
    }

    /// The suspicious items, the most suspicious first; equal scores by ascending item.
    ///
    /// # Errors
    /// If the budget is not above 0, or counts are too small for expected false alarms.
    pub fn alerts(&self, budget: Budget) -> Result<Vec<Alert>> {
        let threshold = self.threshold(budget)?;
        let most = if let Budget::Items(most) = budget { most } else { usize::MAX };
        let alerts = self.suspects.iter().take_while(|alert| alert.evidence.score >= threshold);
        Ok(alerts.take(most).copied().collect())
    }

    /// The score from which on an item is an alert.
    fn threshold(&self, budget: Budget) -> Result<f64> {
        budget.check()?;
        match budget {
            Budget::FalseAlarms(most) => {
                let (some, all) = (self.suspects.len(), self.summary.items);
                let expected = "at least 20 items, and more than one in twenty with a score above 0, not all the same (take more queries, more answers of each, or a fixed number of alerts)";
                let got = format_args!("{some} of {all}");
                Error::unless(self.tail.is_known() || some == 0, "false alarms", expected, got)?;
                Ok(self.tail.score(most))
            }
            Budget::Items(most) => {
                let last = self.suspects.get(most - 1).or(self.suspects.last());
                Ok(last.map_or(f64::INFINITY, |alert| alert.evidence.score))
            }
        }
    }

    /// `N_k` of every item.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// The numbers of the whole.
    pub fn summary(&self) -> ScanSummary {
        self.summary
    }
}

/// Median and σ.
fn center_and_deviation(counts: &[u32]) -> [f64; 2] {
    let mut values: Vec<f64> = counts.iter().map(|&count| f64::from(count)).collect();
    let center = median(&mut values);
    values.iter_mut().for_each(|value| *value = (*value - center).abs());
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    match median(&mut values) {
        0.0 => [center, 1.2533 * mean],
        mad => [center, 1.4826 * mad],
    }
}

/// The smallest count that 99.9 % of the items do not exceed.
fn high(counts: &[u32]) -> u32 {
    let at = (counts.len() * 999).div_ceil(1000).max(1) - 1;
    *counts.to_vec().select_nth_unstable(at).1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: median 2, distances 2 1 0 1 8, MAD 1. Then MAD 0 with the mean distance 8 / 4; then nothing.
    #[test]
    fn golden_deviations() {
        assert_eq!(center_and_deviation(&[0, 1, 2, 3, 10]), [2.0, 1.4826]);
        assert_eq!(center_and_deviation(&[0, 0, 0, 8]), [0.0, 1.2533 * 2.0]);
        assert_eq!(center_and_deviation(&[3, 3, 3]), [3.0, 0.0]);
    }

    #[test]
    fn golden_high_counts() {
        let counts: Vec<u32> = (0..2000).rev().collect();
        assert_eq!(high(&counts), 1997); // 1,998 of 2,000 are 1997 or less
        assert_eq!(high(&[4]), 4);
    }

    /// Four queries in two clusters, k = 1: item 0 is first for both of one cluster and one of the other.
    #[test]
    fn golden_evidence() {
        let v = [1.0, 0.0, 0.9, 0.1, -1.0, 0.0, -0.9, 0.1];
        let w = [0.0, 5.0, 1.0, 0.0, -1.0, 0.0, 0.0, -5.0, 0.0, 0.0];
        let mut scan = Scan::new(
            Embeddings::new("queries", 4, 2, &v).unwrap(),
            Embeddings::new("items", 5, 2, &w).unwrap(),
            1,
        )
        .unwrap();
        // Scores of query 0: 0, 1, −1; of query 1: 0.5, 0.9; of query 2: item 2; of query 3: 0.5, −0.9, 0.9.
        assert_eq!((scan.counts(), scan.summary().high_first), (&[0, 2, 2, 0, 0][..], 2));
        assert_eq!(scan.summary().clusters, 2);
        let found = |cluster, count, first| ClusterCount { cluster, count, first };
        let evidence = scan.evidence(&[found(0, 2, 2), found(1, 1, 0)]);
        // Median 0, MAD 0, mean distance 4 / 5.
        let z = 3.0 / (1.2533 * 0.8);
        let entropy = -(2.0f64 / 3.0 * (2.0f64 / 3.0).ln() + 1.0 / 3.0 * (1.0f64 / 3.0).ln());
        assert!((evidence.z - z).abs() < 1e-12);
        assert!((evidence.clusters - entropy.exp()).abs() < 1e-12);
        assert_eq!((evidence.count, evidence.first, evidence.capture), (3, 2, 1.0));
        assert!((evidence.score - z).abs() < 1e-12, "capture 1 is more than spread");
        let half = scan.evidence(&[found(0, 1, 0), found(1, 1, 1)]);
        assert!((half.clusters - 2.0).abs() < 1e-12 && half.capture == 0.5);
        assert!((half.score - half.z).abs() < 1e-12, "spread 1 is more than capture");
        assert_eq!(scan.evidence(&[]).clusters, 0.0);
        scan.summary.median = 1.0; // z < 0, times 0
        scan.clusters.sizes = vec![4];
        assert!(scan.evidence(&[]).score.is_sign_positive());
        // All queries of a cluster of one are half of the usual two.
        scan.clusters.sizes = vec![1, 3];
        assert_eq!(scan.evidence(&[found(0, 1, 1)]).capture, 0.5);
    }

    /// Four of a hundred items are the answer of a query each: there is no tail, but a person can look at them.
    #[test]
    fn without_enough_answers_nobody_knows_the_false_alarms() {
        let at = |i: usize| [(i as f32 / 16.0).cos(), (i as f32 / 16.0).sin()];
        let items: Vec<f32> = (0..100).flat_map(at).collect();
        let queries: Vec<f32> = [3, 30, 60, 90].into_iter().flat_map(at).collect();
        let rows = |rows, values| Embeddings::new("x", rows, 2, values).unwrap();
        let scan = Scan::new(rows(4, &queries), rows(100, &items), 1).unwrap();
        let few = scan.alerts(Budget::Items(9)).unwrap();
        assert!(few.len() == 4 && few.iter().all(|alert| alert.evidence.false_alarms >= 1.0));
        let budget = Budget::FalseAlarms(0.1);
        let lines = [
            scan.alerts(budget).unwrap_err().to_string(),
            scan.admit(rows(4, &queries), rows(1, &[1.0, 0.0]), budget).unwrap_err().to_string(),
        ];
        assert!(
            lines[0].starts_with("false alarms: expected at least 20 items, and more than one")
        );
        assert!(lines[0].ends_with("got 4 of 100") && lines[0] == lines[1], "{lines:?}");
    }

    #[test]
    fn what_cannot_be_scanned_is_refused() {
        let rows = |rows| Embeddings::new("x", rows, 2, &[1.0; 8][..rows * 2]).unwrap();
        let line = |result: Result<Scan>| result.unwrap_err().to_string();
        assert_eq!(
            line(Scan::new(rows(0), rows(2), 1)),
            "queries: expected at least 1 query, got 0"
        );
        assert_eq!(line(Scan::new(rows(2), rows(0), 1)), "items: expected at least 1 item, got 0");
        assert_eq!(line(Scan::new(rows(2), rows(2), 0)), "k: expected at least 1 item, got 0");
        let long = Embeddings::new("x", 1, 2, &[1e20, 0.0]).unwrap();
        let want = "queries: expected lengths below some 1e11, got longer rows";
        assert_eq!(line(Scan::new(long, rows(2), 1)), want);
        let scan = Scan::new(rows(4), rows(3), 9).unwrap();
        assert_eq!((scan.summary().k, scan.counts()), (9, &[4; 3][..]));
        for most in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = scan.alerts(Budget::FalseAlarms(most)).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("false alarms: expected a finite number above 0, got {most}")
            );
        }
        let error = scan.alerts(Budget::Items(0)).unwrap_err().to_string();
        assert_eq!(error, "alerts: expected at least 1 item, got 0");
        let error = scan.admit(rows(3), rows(1), Budget::Items(1)).unwrap_err().to_string();
        assert_eq!(error, "queries: expected the 4 queries of the scan, got 3");
        // All counts are equal: nothing is an alert, and nothing is refused, whatever the budget.
        for budget in [Budget::Items(5), Budget::FalseAlarms(1.0)] {
            assert_eq!(scan.alerts(budget).unwrap(), []);
            assert!(!scan.admit(rows(4), rows(1), budget).unwrap()[0].refused);
        }
    }
}

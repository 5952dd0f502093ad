//! Quality of the posterior against the truth: AUC, Brier skill and reliability, from counts that add up over steps.
//!
//! Candidates are counted by the log-likelihood ratio `ln f(s|c) − ln f(s|c̄)`, which does not depend on the prior. The
//! log-odds of a posterior are this ratio plus a constant of the prior, so one pass over training serves all priors.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::NegativeSet;
use crate::Relevance;

/// Bins of the ratio: 0.05 wide over −40 … 40, the ends open.
const BINS: usize = 1600;
const LIMIT: f64 = 40.0;

/// Numbers of candidates by log-likelihood ratio, true and false ones separately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidates {
    #[serde(deserialize_with = "bins")]
    true_pairs: Vec<u64>,
    #[serde(deserialize_with = "bins")]
    false_pairs: Vec<u64>,
}

fn bins<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<u64>, D::Error> {
    let counts: Vec<u64> = Deserialize::deserialize(source)?;
    let other = || D::Error::invalid_length(counts.len(), &format!("{BINS} bins").as_str());
    if counts.len() == BINS { Ok(counts) } else { Err(other()) }
}

impl Default for Candidates {
    fn default() -> Self {
        Self { true_pairs: vec![0; BINS], false_pairs: vec![0; BINS] }
    }
}

/// A bin of the reliability diagram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReliabilityBin {
    /// Mean posterior of its candidates.
    pub predicted: f64,
    /// Share of true pairs among them.
    pub observed: f64,
    /// Number of candidates.
    pub count: u64,
}

/// How well "the posterior exceeds λ" detects the true pairs among the candidates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detection {
    /// Share of candidates that are flagged.
    pub flagged: f64,
    /// Share of true pairs among flagged candidates; `None` if none is flagged.
    pub precision: Option<f64>,
    /// Share of true pairs that are flagged; `None` without true pairs.
    pub recall: Option<f64>,
}

impl Candidates {
    /// The candidates of a step, both directions.
    pub fn of(negatives: &[NegativeSet; 2], truth: &Relevance) -> Self {
        let mut sum = Self::default();
        negatives.iter().for_each(|side| sum.add(&side.candidates(truth)));
        sum
    }

    /// Counts one candidate.
    ///
    /// # Panics
    /// If the log-ratio is NaN.
    pub fn push(&mut self, log_ratio: f64, is_true: bool) {
        let bin = (log_ratio + LIMIT) / (2.0 * LIMIT) * BINS as f64;
        assert!(!bin.is_nan(), "a log-ratio of NaN");
        let bin = (bin.max(0.0) as usize).min(BINS - 1);
        if is_true { self.true_pairs[bin] += 1 } else { self.false_pairs[bin] += 1 }
    }

    /// Adds another step's counts.
    pub fn add(&mut self, other: &Self) {
        let add = |a: &mut [u64], b: &[u64]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        add(&mut self.true_pairs, &other.true_pairs);
        add(&mut self.false_pairs, &other.false_pairs);
    }

    /// Number of candidates.
    pub fn count(&self) -> u64 {
        self.trues() + self.false_pairs.iter().sum::<u64>()
    }

    fn trues(&self) -> u64 {
        self.true_pairs.iter().sum()
    }

    /// Share of true pairs; `None` without candidates.
    pub fn base_rate(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.trues() as f64 / self.count() as f64)
    }

    /// Probability that a true pair has a larger posterior than a false one, ties counting half; the prior does not matter.
    ///
    /// `None` without true pairs or without false pairs.
    pub fn auc(&self) -> Option<f64> {
        let (trues, falses) = (self.trues() as f64, self.false_pairs.iter().sum::<u64>() as f64);
        if trues == 0.0 || falses == 0.0 {
            return None;
        }
        let mut below = 0.0;
        let mut area = 0.0;
        for (&t, &f) in self.true_pairs.iter().zip(&self.false_pairs) {
            area += t as f64 * (below + f as f64 / 2.0);
            below += f as f64;
        }
        Some(area / (trues * falses))
    }

    /// `1 − Brier / (r (1 − r))` at a prior: 1 is perfect, 0 is no better than always predicting the base rate `r`.
    ///
    /// `None` without true pairs or without false pairs.
    ///
    /// # Panics
    /// If the prior is not above 0 and below 1.
    pub fn brier_skill(&self, prior: f64) -> Option<f64> {
        check_prior(prior);
        let rate = self.base_rate().filter(|&r| r > 0.0 && r < 1.0)?;
        let squares = |(ratio, t, f): (f64, u64, u64)| {
            let p = posterior(ratio, prior);
            t as f64 * (1.0 - p).powi(2) + f as f64 * p * p
        };
        let brier: f64 = self.bins().map(squares).sum();
        Some(1.0 - brier / self.count() as f64 / (rate * (1.0 - rate)))
    }

    /// Precision and recall of the flag "false negative", set where the posterior at `prior` exceeds `threshold`.
    ///
    /// ```text
    /// P(c|s) > λ   ⇔   ln f(s|c) − ln f(s|c̄) > ln λ/(1−λ) − ln p/(1−p)
    /// ```
    ///
    /// The bins of the ratio are 0.05 wide: a candidate closer than that to the threshold may count on the wrong side.
    /// `None` without candidates.
    ///
    /// # Panics
    /// If the prior is not above 0 and below 1, or the threshold not from 0 to 1.
    pub fn detection(&self, prior: f64, threshold: f64) -> Option<Detection> {
        check_prior(prior);
        assert!((0.0..=1.0).contains(&threshold), "a threshold from 0 to 1, got {threshold}");
        let cut = log_odds(threshold) - log_odds(prior);
        let flagged = self.bins().filter(|&(ratio, _, _)| ratio > cut);
        let (t, f) = flagged.fold((0, 0), |(t, f), (_, a, b)| (t + a, f + b));
        let (count, trues) = (self.count(), self.trues());
        (count > 0).then(|| Detection {
            flagged: (t + f) as f64 / count as f64,
            precision: (t + f > 0).then(|| t as f64 / (t + f) as f64),
            recall: (trues > 0).then(|| t as f64 / trues as f64),
        })
    }

    /// Predicted against observed shares in ten bins of the posterior at a prior; empty bins are left out.
    ///
    /// # Panics
    /// If the prior is not above 0 and below 1.
    pub fn reliability(&self, prior: f64) -> Vec<ReliabilityBin> {
        check_prior(prior);
        let mut sums = [(0.0, 0u64, 0u64); 10];
        for (ratio, t, f) in self.bins() {
            let p = posterior(ratio, prior);
            let sum = &mut sums[((p * 10.0) as usize).min(9)];
            sum.0 += p * (t + f) as f64;
            sum.1 += t;
            sum.2 += t + f;
        }
        let bins = sums.into_iter().filter(|&(_, _, count)| count > 0);
        bins.map(|(predicted, trues, count)| ReliabilityBin {
            predicted: predicted / count as f64,
            observed: trues as f64 / count as f64,
            count,
        })
        .collect()
    }

    /// Centre of each bin with its true and false pairs.
    fn bins(&self) -> impl Iterator<Item = (f64, u64, u64)> {
        let centre = |bin: usize| (bin as f64 + 0.5) / BINS as f64 * 2.0 * LIMIT - LIMIT;
        let counts = self.true_pairs.iter().zip(&self.false_pairs).enumerate();
        counts.map(move |(bin, (&t, &f))| (centre(bin), t, f))
    }
}

fn check_prior(prior: f64) {
    assert!(prior > 0.0 && prior < 1.0, "a prior above 0 and below 1, got {prior}");
}

fn posterior(log_ratio: f64, prior: f64) -> f64 {
    1.0 / (1.0 + (-log_odds(prior) - log_ratio).exp())
}

/// ln p − ln(1−p); −∞ at 0, ∞ at 1.
fn log_odds(p: f64) -> f64 {
    p.ln() - (-p).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(pairs: &[(f64, bool)]) -> Candidates {
        let mut c = Candidates::default();
        pairs.iter().for_each(|&(ratio, is_true)| c.push(ratio, is_true));
        c
    }

    /// Two true and two false pairs; three of the four comparisons are won.
    #[test]
    fn auc_by_hand() {
        let c = candidates(&[(3.0, true), (1.0, true), (2.0, false), (-5.0, false)]);
        assert_eq!(c.auc(), Some(0.75));
        assert_eq!(candidates(&[(1.0, true), (1.0, false)]).auc(), Some(0.5));
        assert_eq!(candidates(&[(1.0, true)]).auc(), None);
        assert_eq!(c.base_rate(), Some(0.5));
    }

    #[test]
    fn other_numbers_of_bins_are_refused() {
        let kept = candidates(&[(3.0, true)]);
        let json = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<Candidates>(&json).unwrap(), kept);
        let short = serde_json::from_str::<Candidates>(r#"{"true_pairs": [], "false_pairs": [1]}"#);
        assert!(short.unwrap_err().to_string().contains("expected 1600 bins"));
    }

    #[test]
    fn certain_and_right_is_a_skill_of_one_and_the_base_rate_of_zero() {
        let right = candidates(&[(39.0, true), (-39.0, false)]);
        assert!((right.brier_skill(0.5).unwrap() - 1.0).abs() < 1e-9);
        let wrong = candidates(&[(39.0, false), (-39.0, true)]);
        assert!((wrong.brier_skill(0.5).unwrap() + 3.0).abs() < 1e-9);
        // A ratio of one says the prior: no skill at the base rate, negative skill at p = 1e-4.
        let blind: Vec<_> = (0..1000).map(|k| (0.0, k % 4 == 0)).collect();
        let blind = candidates(&blind);
        assert!(blind.brier_skill(0.25).unwrap().abs() < 1e-3);
        assert!(blind.brier_skill(1e-4).unwrap() < -0.3);
    }

    #[test]
    fn reliability_of_a_calibrated_posterior_is_the_diagonal() {
        // At ratio r and prior one half, the share of true pairs is 1 / (1 + e^-r).
        let mut c = Candidates::default();
        for k in -60..60 {
            let ratio = 0.05 * (f64::from(k) + 0.5);
            let trues = (10_000.0 * posterior(ratio, 0.5)).round() as usize;
            (0..10_000).for_each(|n| c.push(ratio, n < trues));
        }
        for bin in c.reliability(0.5) {
            assert!((bin.predicted - bin.observed).abs() < 1e-3, "{bin:?}");
        }
        let low = c.reliability(1e-4);
        assert!(low.iter().all(|bin| bin.observed > bin.predicted), "{low:?}");
    }

    /// By hand. At p = 0.5 a posterior is above 0.5 where the ratio is above 0: 3 and 2 are flagged, and one of them is
    /// true; one of three true pairs is found. A posterior above 0.1 needs a ratio above −ln 9 = −2.2: −1 and −2 are
    /// flagged, too. At p = 1/101 (odds 1/100) the ratio must exceed ln 100 = 4.6.
    #[test]
    fn detection_by_hand() {
        let c = candidates(&[(3.0, true), (2.0, false), (-1.0, true), (-2.0, false), (-4.0, true)]);
        let of = |prior, threshold| c.detection(prior, threshold).unwrap();
        let want = |flagged, precision, recall| Detection {
            flagged,
            precision: Some(precision),
            recall: Some(recall),
        };
        assert_eq!(of(0.5, 0.5), want(0.4, 0.5, 1.0 / 3.0));
        assert_eq!(of(0.5, 0.1), want(0.8, 0.5, 2.0 / 3.0));
        let none = Detection { flagged: 0.0, precision: None, recall: Some(0.0) };
        assert_eq!(of(1.0 / 101.0, 0.5), none);
        assert_eq!(
            of(1e-3, 1e-3),
            of(0.5, 0.5),
            "a threshold at the prior asks for the ratio alone"
        );
        let falses = candidates(&[(1.0, false)]).detection(0.5, 0.5).unwrap();
        assert_eq!((falses.precision, falses.recall), (Some(0.0), None));
        assert_eq!(Candidates::default().detection(0.5, 0.5), None);
    }

    #[test]
    fn counts_add_up_and_the_ends_are_open() {
        let mut a = candidates(&[(1e9, true), (f64::NEG_INFINITY, false)]);
        a.add(&candidates(&[(0.0, false)]));
        assert_eq!((a.count(), a.base_rate()), (3, Some(1.0 / 3.0)));
        assert_eq!(a.auc(), Some(1.0));
    }
}

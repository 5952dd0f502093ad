//! How well a posterior detects false negatives among its candidates, in the form of the log and the reports.

use itm_core::audit::{Candidates, Detection};
use serde::{Deserialize, Serialize};

/// Thresholds λ of "this is a false negative", from the released code and the paper's Table 5.
const THRESHOLDS: [f64; 5] = [1e-3, 1e-2, 0.1, 0.3, 0.5];

/// Candidates whose posterior exceeds a threshold are flagged as false negatives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionAt {
    /// What the prior is, `p = 1e-4`.
    pub name: String,
    /// The prior.
    pub prior: f64,
    /// λ.
    pub threshold: f64,
    /// Share of candidates that are flagged.
    pub flagged: f64,
    /// Share of true pairs among the flagged candidates; `null` if there are none.
    pub precision: Option<f64>,
    /// Share of true pairs that are flagged; `null` without true pairs.
    pub recall: Option<f64>,
}

/// Detection among the candidates of an epoch: at the configured prior, and at the rate of true pairs among the candidates.
pub(crate) fn of_candidates(all: &Candidates, prior: Option<f64>) -> Vec<DetectionAt> {
    let Some(prior) = prior else { return vec![] };
    let mut priors = vec![(format!("p = {prior:e}"), prior)];
    let rate = all.base_rate().filter(|&rate| rate > 0.0 && rate < 1.0);
    priors.extend(rate.map(|rate| ("p = base rate".to_owned(), rate)));
    detection(all, &priors)
}

/// Precision and recall at every prior and threshold.
pub(crate) fn detection(all: &Candidates, priors: &[(String, f64)]) -> Vec<DetectionAt> {
    let at = |(name, prior): &(String, f64), threshold: f64| {
        let Detection { flagged, precision, recall } = all.detection(*prior, threshold)?;
        let (name, prior) = (name.clone(), *prior);
        Some(DetectionAt { name, prior, threshold, flagged, precision, recall })
    };
    priors.iter().flat_map(|prior| THRESHOLDS.map(|t| at(prior, t))).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two candidates at ratio ±20: at every threshold and prior only the true candidate is flagged.
    #[test]
    fn every_prior_has_every_threshold() {
        let mut all = Candidates::default();
        all.push(20.0, true);
        all.push(-20.0, false);
        let got = detection(&all, &[("p".into(), 1e-4), ("rate".into(), 0.5)]);
        assert_eq!(got.len(), 2 * THRESHOLDS.len());
        assert!(got.iter().all(|d| d.precision == Some(1.0) && d.recall == Some(1.0)), "{got:?}");
        assert_eq!((got[4].threshold, got[4].flagged, got[5].name.as_str()), (0.5, 0.5, "rate"));
    }
}

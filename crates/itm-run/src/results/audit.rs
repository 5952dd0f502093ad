//! What was drawn against the truth, as the reports say it.

use std::collections::BTreeMap;

use itm_core::audit::Candidates;

use super::{SeedRun, mean};
use crate::log::Line;
use crate::report::{DetectionAt, EpochDraws, Reliability, ReliabilityBin};

/// Thresholds λ of "this is a false negative": the released code's, the paper's Table 5.
const THRESHOLDS: [f64; 5] = [1e-3, 1e-2, 0.1, 0.3, 0.5];

/// The audit's lines of a log.
pub(crate) fn of_log(log: &[Line]) -> Vec<EpochDraws> {
    let draws = |line: &Line| match line {
        Line::Draws { epoch, drawn_true, uniform_true, hardest_true, others_true } => {
            Some(EpochDraws {
                epoch: *epoch as u32 + 1,
                drawn: *drawn_true,
                uniform: *uniform_true,
                hardest: *hardest_true,
                others: others_true.clone(),
            })
        }
        _ => None,
    };
    log.iter().filter_map(draws).collect()
}

/// Means over the seeds that have the epoch.
pub(super) fn epochs(runs: &[SeedRun]) -> Vec<EpochDraws> {
    let mut by_epoch: BTreeMap<u32, Vec<&EpochDraws>> = BTreeMap::new();
    for draws in runs.iter().flat_map(|run| &run.epochs) {
        by_epoch.entry(draws.epoch).or_default().push(draws);
    }
    let of_epoch = |(epoch, all): (u32, Vec<&EpochDraws>)| {
        let of = |value: fn(&EpochDraws) -> f64| mean(all.iter().map(|e| value(e))).unwrap_or(0.0);
        let names = all.iter().flat_map(|e| e.others.keys());
        let other = |name: &String| {
            let known = all.iter().filter_map(|e| e.others.get(name).copied());
            Some((name.clone(), mean(known)?))
        };
        EpochDraws {
            epoch,
            drawn: of(|e| e.drawn),
            uniform: of(|e| e.uniform),
            hardest: of(|e| e.hardest),
            others: names.filter_map(other).collect(),
        }
    };
    by_epoch.into_iter().map(of_epoch).collect()
}

/// Precision and recall at every threshold under some priors.
pub(super) fn detection(all: &Candidates, priors: &[(String, f64)]) -> Vec<DetectionAt> {
    let at = |(name, prior): &(String, f64), threshold: f64| {
        let found = all.detection(*prior, threshold)?;
        Some(DetectionAt {
            name: name.clone(),
            prior: *prior,
            threshold,
            flagged: found.flagged,
            precision: found.precision,
            recall: found.recall,
        })
    };
    priors.iter().flat_map(|prior| THRESHOLDS.map(|t| at(prior, t))).flatten().collect()
}

/// Predicted against observed shares at a prior.
pub(super) fn reliability(candidates: &Candidates, name: String, prior: f64) -> Reliability {
    let bins = candidates.reliability(prior).into_iter();
    let bins = bins.map(|b| ReliabilityBin {
        predicted: b.predicted,
        observed: b.observed,
        count: b.count,
    });
    Reliability { name, prior, bins: bins.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(epoch: usize, drawn: f64, paper: Option<f64>) -> Line {
        Line::Draws {
            epoch,
            drawn_true: drawn,
            uniform_true: 0.25,
            hardest_true: 0.5,
            others_true: paper.map(|x| ("FNE paper".to_owned(), x)).into_iter().collect(),
        }
    }

    #[test]
    fn epochs_are_means_over_seeds() {
        let run = |log: &[Line]| SeedRun { epochs: of_log(log), ..super::super::tests::run(0, 4) };
        let first = run(&[line(0, 0.5, None), line(1, 0.25, Some(0.5))]);
        let second = run(&[line(0, 0.0, None), line(1, 0.75, Some(0.25))]);
        let got = epochs(&[first, second]);
        assert_eq!(got.len(), 2);
        assert_eq!((got[0].epoch, got[0].drawn, got[0].others.len()), (1, 0.25, 0));
        assert_eq!((got[1].epoch, got[1].drawn, got[1].others["FNE paper"]), (2, 0.5, 0.375));
        assert_eq!((got[1].uniform, got[1].hardest), (0.25, 0.5));
    }

    /// Two candidates at ratio ±20: at every threshold and prior the true one is flagged alone.
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

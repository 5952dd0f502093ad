//! The drawn negatives against the truth, epoch by epoch over the seeds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::audit::DetectionAt;
use crate::log::Line;
use crate::report::mean;

/// Shares of false negatives among the negatives of one epoch, means over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EpochDraws {
    /// The epoch, counted from 1.
    pub(crate) epoch: u32,
    /// Share of drawn negatives.
    pub(crate) drawn: f64,
    /// The same share if one candidate per row were drawn uniformly.
    pub(crate) uniform: f64,
    /// The same share if the hardest candidate per row were taken.
    pub(crate) hardest: f64,
    /// The same share for other ways to draw, by name; a way is missing where its share was not known yet.
    pub(crate) others: BTreeMap<String, f64>,
    /// Precision and recall of the posterior: one entry per prior and threshold; nothing where there is no posterior.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) detection: Vec<DetectionAt>,
}

/// The audit lines of a log.
pub(super) fn of_log(log: &[Line]) -> Vec<EpochDraws> {
    let draws = |line: &Line| match line {
        Line::Draws { epoch, drawn_true, uniform_true, hardest_true, others_true, detection } => {
            Some(EpochDraws {
                epoch: *epoch as u32 + 1,
                drawn: *drawn_true,
                uniform: *uniform_true,
                hardest: *hardest_true,
                others: others_true.clone(),
                detection: detection.clone(),
            })
        }
        _ => None,
    };
    log.iter().filter_map(draws).collect()
}

/// Means over the seeds that have the epoch.
pub(super) fn over_seeds<'a>(runs: impl Iterator<Item = &'a [EpochDraws]>) -> Vec<EpochDraws> {
    let mut by_epoch: BTreeMap<u32, Vec<&EpochDraws>> = BTreeMap::new();
    for draws in runs.flatten() {
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
            detection: detection(&all),
        }
    };
    by_epoch.into_iter().map(of_epoch).collect()
}

/// Every prior and threshold of the first seed that has any, with means over the seeds that have the same.
fn detection(all: &[&EpochDraws]) -> Vec<DetectionAt> {
    let first = all.iter().map(|e| &e.detection).find(|d| !d.is_empty()).into_iter().flatten();
    let of_all = |at: &DetectionAt| {
        let same = |d: &&DetectionAt| d.name == at.name && d.threshold == at.threshold;
        let found: Vec<_> = all.iter().filter_map(|e| e.detection.iter().find(same)).collect();
        DetectionAt {
            name: at.name.clone(),
            prior: mean(found.iter().map(|d| d.prior)).unwrap_or(at.prior),
            threshold: at.threshold,
            flagged: mean(found.iter().map(|d| d.flagged)).unwrap_or(at.flagged),
            precision: mean(found.iter().filter_map(|d| d.precision)),
            recall: mean(found.iter().filter_map(|d| d.recall)),
        }
    };
    first.map(of_all).collect()
}

#[cfg(test)]
mod tests {
    use itm_core::audit::Candidates;

    use super::*;
    use crate::audit::of_candidates;

    fn line(epoch: usize, drawn: f64, paper: Option<f64>) -> Line {
        Line::Draws {
            epoch,
            drawn_true: drawn,
            uniform_true: 0.25,
            hardest_true: 0.5,
            others_true: paper.map(|x| ("FNE paper".to_owned(), x)).into_iter().collect(),
            detection: vec![],
        }
    }

    #[test]
    fn epochs_are_means_over_seeds() {
        let run = |log: &[Line]| of_log(log);
        let first = run(&[line(0, 0.5, None), line(1, 0.25, Some(0.5))]);
        let second = run(&[line(0, 0.0, None), line(1, 0.75, Some(0.25))]);
        let got = over_seeds([&first[..], &second].into_iter());
        assert_eq!(got.len(), 2);
        assert_eq!((got[0].epoch, got[0].drawn, got[0].others.len()), (1, 0.25, 0));
        assert_eq!((got[1].epoch, got[1].drawn, got[1].others["FNE paper"]), (2, 0.5, 0.375));
        assert_eq!((got[1].uniform, got[1].hardest), (0.25, 0.5));
    }

    /// Four seeds with candidates at ratios ±20: none, one per ratio, one of each kind per ratio, and only a false one.
    #[test]
    fn detection_is_of_every_epoch() {
        let of = |candidates: &[(f64, bool)]| {
            let mut all = Candidates::default();
            candidates.iter().for_each(|&(ratio, is_true)| all.push(ratio, is_true));
            let mut line = line(0, 0.5, None);
            let Line::Draws { detection, .. } = &mut line else { panic!("draws") };
            *detection = of_candidates(&all, Some(1e-4));
            of_log(&[line])
        };
        let runs = [
            of(&[]),
            of(&[(20.0, true), (-20.0, false)]),
            of(&[(20.0, true), (-20.0, true), (20.0, false), (-20.0, false)]),
            of(&[(20.0, false)]),
        ];
        let got = over_seeds(runs.iter().map(Vec::as_slice));
        let found = &got[0].detection;
        let names: Vec<_> = found.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, [["p = 1e-4"; 5], ["p = base rate"; 5]].concat());
        // At p = 1e-4: precision 1, 1/2 and 0; recall 1 and 1/2; flagged 1/2, 1/2 and all.
        let at = &found[4];
        assert_eq!((at.threshold, at.precision, at.recall), (0.5, Some(0.5), Some(0.75)));
        assert!((at.flagged - 2.0 / 3.0).abs() < 1e-12, "{at:?}");
        // At the base rate, which is 1/2 with the two seeds that have both kinds.
        assert_eq!((found[9].prior, found[9].precision), (0.5, Some(0.75)));
        assert!(of_candidates(&Candidates::default(), None).is_empty(), "no posterior");
    }
}

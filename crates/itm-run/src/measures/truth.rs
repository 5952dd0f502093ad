//! The rows against a complete truth: mAP@R and R-precision, false negatives among drawn negatives, and the posterior as a detector
//! of false negatives.

mod epochs;
mod plots;
mod similarities;
mod tables;

use std::collections::BTreeMap;

use itm_core::Result;
use itm_core::audit::{Candidates, Draws, ReliabilityBin};
use itm_core::eval::{MultiEvaluation, MultiMetrics};
use itm_report::figure::Figure;
use serde::{Deserialize, Serialize};

use self::epochs::EpochDraws;
use self::similarities::{curve, groups};
use super::{BySeed, Measure, Trial};
use crate::audit::{DetectionAt, detection as detect};
use crate::report::{Report, Section, mean};

/// The rows against a complete truth. Without a truth only the similarities of pairs are drawn.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    seeds: BySeed<Seed>,
    similarities: BySeed<Figure>,
}

/// One model against the truth. A row without a training has no draws.
#[derive(Debug, Clone)]
struct Seed {
    relevance: MultiEvaluation,
    draws: Draws,
    /// Candidates of the last epoch.
    candidates: Candidates,
    epochs: Vec<EpochDraws>,
    prior: Option<f64>,
}

impl Measure for Audit {
    fn look(&self, trial: &Trial) -> Result<()> {
        if let Some(trained) = trial.trained.filter(|trained| trained.first) {
            let (name, groups) = (trained.model.name(), groups(trial)?);
            let posterior = trained.model.method.posterior().as_ref().map(curve);
            let figure = plots::similarities(&name, &groups, posterior.as_ref());
            figure.into_iter().for_each(|figure| self.similarities.put(trial, figure));
        }
        let Some(truth) = &trial.source.truth else { return Ok(()) };
        let progress = trial.trained.map(|trained| trained.progress);
        let found = Seed {
            relevance: trial.scores.evaluate_multi(&truth.test)?,
            draws: progress.map(|at| at.draws.clone()).unwrap_or_default(),
            candidates: progress.map(|at| at.candidates.clone()).unwrap_or_default(),
            epochs: trial.trained.map_or(vec![], |trained| epochs::of_log(trained.log)),
            prior: trial.trained.and_then(|trained| trained.model.method.prior()),
        };
        self.seeds.put(trial, found);
        Ok(())
    }

    fn section(&self, report: &mut Report) -> Result<Section> {
        let truths = self.seeds.rows(report, |seeds| Some(Truth::new(seeds)));
        let mut section = Section::new("False negatives");
        section.add_rows(report, |row| row.truth.get_or_insert_default(), &truths)?;
        let rows = report.rows.iter().zip(&truths);
        let known = rows.filter_map(|(row, truth)| Some((&row.name, truth.as_ref()?)));
        let similarities = self.similarities.rows(report, |seeds| Some(seeds[0].clone()));
        section.figures.extend(known.clone().filter_map(|(row, truth)| plots::draw(row, truth)));
        section.figures.extend(similarities.into_iter().flatten());
        section.figures.extend(known.filter_map(|(row, truth)| plots::reliability(row, truth)));
        section.tables = vec![tables::relevance(report, &truths), tables::draws(report, &truths)];
        section.tables.extend(tables::epochs(report, &truths));
        section.tables.extend(tables::detection_epochs(report, &truths));
        section.tables.extend(tables::detection(report, &truths));
        Ok(section)
    }
}

/// Measures against the complete truth, means over seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Truth {
    /// mAP@R, mean of both directions, `[0, 1]`.
    pub(crate) map_at_r: Option<f64>,
    /// R-precision, mean of both directions, `[0, 1]`.
    pub(crate) r_precision: Option<f64>,
    /// Area under the ROC curve of the posterior as a detector of false negatives, on
    /// candidates that survive the margin cut. The prior does not change it.
    pub(crate) posterior_auc: Option<f64>,
    /// Brier skill of the posterior at the config's prior, against a constant forecast of the
    /// base rate: 1 is perfect, 0 is no better than that forecast, a negative value is worse.
    pub(crate) brier_skill: Option<f64>,
    /// The prior of `brier_skill`, the paper's p: 1e-4.
    pub(crate) prior: Option<f64>,
    /// Brier skill with the base rate itself as the prior.
    pub(crate) brier_skill_at_base_rate: Option<f64>,
    /// Share of false negatives among the candidates that survive the margin cut.
    pub(crate) base_rate: Option<f64>,
    /// Candidates behind these numbers, summed over seeds.
    pub(crate) candidates: Option<u64>,
    /// Share of drawn negatives that were truly false negatives.
    pub(crate) drawn_true_share: Option<f64>,
    /// The same share if one candidate per row were drawn uniformly.
    pub(crate) uniform_true_share: Option<f64>,
    /// The same share if the hardest candidate per row were taken.
    pub(crate) hardest_true_share: Option<f64>,
    /// Draws behind `drawn_true_share`, summed over seeds.
    pub(crate) draws: Option<u64>,
    /// Reliability of the posterior: one entry per prior.
    pub(crate) reliability: Vec<Reliability>,
    /// The same share for other ways of drawing from the same candidates, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) other_true_shares: BTreeMap<String, f64>,
    /// The shares epoch by epoch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) epochs: Vec<EpochDraws>,
    /// Precision and recall of the posterior over the last epoch: one entry per prior and threshold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) detection: Vec<DetectionAt>,
}

/// Whether a share x of the candidates with predicted probability x are false negatives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reliability {
    /// What the prior is, `p = 1e-4`.
    pub(crate) name: String,
    /// The prior.
    pub(crate) prior: f64,
    /// Bins of candidates by predicted probability; empty bins are left out.
    pub(crate) bins: Vec<ReliabilityBin>,
}
impl Truth {
    fn new(seeds: &[&Seed]) -> Self {
        let both = |f: fn(&MultiMetrics) -> f64| {
            let of_seed = |t: &MultiEvaluation| (f(&t.i2t) + f(&t.t2i)) / 200.0; // percent there, shares here
            mean(seeds.iter().map(|seed| of_seed(&seed.relevance)))
        };
        let mut truth = Self {
            map_at_r: both(|m| m.map_at_r),
            r_precision: both(|m| m.r_precision),
            ..Self::default()
        };
        truth.add_draws(seeds);
        truth.add_posterior(seeds);
        truth
    }

    fn add_draws(&mut self, seeds: &[&Seed]) {
        let mut draws = Draws::default();
        seeds.iter().for_each(|seed| draws.add(&seed.draws));
        if let Some(shares) = draws.shares() {
            self.drawn_true_share = Some(shares.drawn);
            self.uniform_true_share = Some(shares.uniform);
            self.hardest_true_share = Some(shares.hardest);
            self.draws = Some(draws.anchors as u64);
            self.other_true_shares = shares.others;
        }
        self.epochs = epochs::over_seeds(seeds.iter().map(|seed| &seed.epochs[..]));
    }

    fn add_posterior(&mut self, seeds: &[&Seed]) {
        let mut all = Candidates::default();
        seeds.iter().for_each(|seed| all.add(&seed.candidates));
        let prior = seeds.iter().find_map(|seed| seed.prior);
        let (Some(rate), Some(prior)) = (all.base_rate(), prior) else { return };
        self.posterior_auc = all.auc();
        self.prior = Some(prior);
        self.base_rate = Some(rate);
        self.candidates = Some(all.count());
        self.brier_skill = all.brier_skill(prior);
        if rate > 0.0 && rate < 1.0 {
            self.brier_skill_at_base_rate = all.brier_skill(rate);
            let named =
                [(format!("p = {prior:e}"), prior), (format!("p = base rate {rate:.4}"), rate)];
            self.detection = detect(&all, &named);
            self.reliability = named
                .map(|(name, prior)| Reliability { name, prior, bins: all.reliability(prior) })
                .into();
        }
    }
}

#[cfg(test)]
mod tests;

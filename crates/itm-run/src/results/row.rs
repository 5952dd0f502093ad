//! A row over its seeds.

use itm_core::Result;
use itm_core::audit::{Candidates, Draws};
use itm_core::eval::{Evaluation, MultiMetrics};
use itm_core::significance::{Hits, bootstrap};

use super::printed::{printed_line, table};
use super::{
    REPLICATES, RESAMPLING_SEED, SeedRun, Trained, ends, epochs, protocol, recall_intervals,
};
use crate::explanations::pointing;
use crate::job::Job;
use crate::mean::mean;
use crate::report::{Kind, Measured, Recalls, Reliability, Rescored, Row, SeedResult, Truth};
use crate::{audit, edited, precision, rescore, sentences};

/// A row over its seeds.
#[derive(Debug, Clone)]
pub(crate) struct RowResult {
    pub(crate) name: String,
    pub(super) kind: Kind,
    pub(crate) runs: Vec<SeedRun>,
    pub(super) validation_rsum: Option<f64>,
    pub(crate) seconds: f64,
}

impl RowResult {
    pub(crate) fn trained(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: Kind::Trained,
            runs: vec![],
            validation_rsum: None,
            seconds: 0.0,
        }
    }

    pub(crate) fn baseline(name: &str, run: SeedRun, validation_rsum: f64, seconds: f64) -> Self {
        let (kind, validation_rsum) = (Kind::Baseline, Some(validation_rsum));
        Self { kind, runs: vec![run], validation_rsum, seconds, ..Self::trained(name) }
    }

    pub(crate) fn rsum(&self) -> f64 {
        mean(self.runs.iter().map(|run| run.evaluation.rsum)).unwrap_or(f64::NAN)
    }

    pub(super) fn hits(&self) -> Vec<Hits> {
        self.runs.iter().map(|run| run.hits.clone()).collect()
    }

    pub(super) fn rescored(&self) -> Vec<Rescored> {
        let reports: Vec<_> = self.runs.iter().flat_map(|run| run.rescored.clone()).collect();
        rescore::summarise(&self.name, &reports)
    }

    pub(super) fn row(&self, job: &Job) -> Result<Row> {
        let of = |recalls: fn(&Evaluation) -> [f64; 3]| {
            let at = |k: usize| mean(self.runs.iter().map(|run| recalls(&run.evaluation)[k]));
            let [r1, r5, r10] = [0, 1, 2].map(|k| at(k).unwrap_or(0.0));
            Recalls { r1, r5, r10 }
        };
        let intervals = bootstrap(&self.hits(), REPLICATES, RESAMPLING_SEED)?;
        let best = |run: &SeedRun| Some(run.trained.as_ref()?.progress.best?.rsum);
        let trained = self.kind == Kind::Trained;
        let measured = Measured {
            i2t: of(|e| e.i2t.recalls()),
            t2i: of(|e| e.t2i.recalls()),
            rsum: self.rsum(),
            ci95: Some(ends(intervals.rsum)),
            ci95_recalls: Some(recall_intervals(intervals)),
            per_seed: if trained { self.runs.iter().map(seed_result).collect() } else { vec![] },
            validation_rsum: self
                .validation_rsum
                .or_else(|| mean(self.runs.iter().filter_map(best))),
            ties_decided: Some(self.runs.iter().map(ties_decided).sum()),
            seconds: Some(self.seconds),
        };
        let numbers = |table| Some(printed_line(job, &self.name)?.numbers(table));
        Ok(Row {
            name: self.name.clone(),
            kind: self.kind,
            protocol: protocol(job),
            precision: precision::of_row(job, &self.name),
            paper: table(job).and_then(numbers),
            measured,
            truth: self.truth(),
            edited: edited::summarise(
                &self.trainings().filter_map(|t| t.edited.as_ref()).collect::<Vec<_>>(),
            ),
        })
    }

    fn trainings(&self) -> impl Iterator<Item = &Trained> {
        self.runs.iter().filter_map(|run| run.trained.as_ref())
    }

    fn truth(&self) -> Option<Truth> {
        let known: Vec<_> = self.runs.iter().filter_map(|run| run.truth).collect();
        if known.is_empty() {
            return None;
        }
        let both = |f: fn(&MultiMetrics) -> f64| {
            mean(known.iter().map(|t| (f(&t.i2t) + f(&t.t2i)) / 200.0)) // percent there, shares here
        };
        let mut truth = Truth {
            map_at_r: both(|m| m.map_at_r),
            r_precision: both(|m| m.r_precision),
            ..Truth::default()
        };
        self.add_draws(&mut truth);
        self.add_posterior(&mut truth);
        let pointing: Vec<_> = self.trainings().filter_map(|t| t.pointing.as_ref()).collect();
        truth.mismatch = pointing::mismatches(&pointing);
        let words = pointing::summary(&pointing);
        match truth.mismatch.is_some() {
            true => truth.grounding = words, // of regions
            false => truth.pointing = words,
        }
        let made: Vec<_> = self.trainings().filter_map(|t| t.sentences.as_ref()).collect();
        sentences::summarise(&made, &mut truth);
        Some(truth)
    }

    pub(super) fn add_draws(&self, truth: &mut Truth) {
        let mut draws = Draws::default();
        self.trainings().for_each(|t| draws.add(&t.progress.draws));
        if let Some(shares) = draws.shares() {
            truth.drawn_true_share = Some(shares.drawn);
            truth.uniform_true_share = Some(shares.uniform);
            truth.hardest_true_share = Some(shares.hardest);
            truth.draws = Some(draws.anchors as u64);
            truth.other_true_shares = shares.others;
        }
        truth.epochs = epochs::over_seeds(self.trainings().map(|t| &t.epochs[..]));
    }

    pub(super) fn add_posterior(&self, truth: &mut Truth) {
        let mut all = Candidates::default();
        self.trainings().for_each(|t| all.add(&t.progress.candidates));
        let prior = self.trainings().find_map(|t| t.prior);
        let (Some(rate), Some(prior)) = (all.base_rate(), prior) else { return };
        truth.posterior_auc = all.auc();
        truth.prior = Some(prior);
        truth.base_rate = Some(rate);
        truth.candidates = Some(all.count());
        truth.brier_skill = all.brier_skill(prior);
        if rate > 0.0 && rate < 1.0 {
            truth.brier_skill_at_base_rate = all.brier_skill(rate);
            let named =
                [(format!("p = {prior:e}"), prior), (format!("p = base rate {rate:.4}"), rate)];
            truth.detection = audit::detection(&all, &named);
            truth.reliability = named
                .map(|(name, prior)| Reliability { name, prior, bins: all.reliability(prior) })
                .into();
        }
    }
}

fn seed_result(run: &SeedRun) -> SeedResult {
    let recalls = |[r1, r5, r10]: [f64; 3]| Recalls { r1, r5, r10 };
    let best = run.trained.as_ref().and_then(|t| t.progress.best);
    SeedResult {
        seed: run.seed,
        i2t: recalls(run.evaluation.i2t.recalls()),
        t2i: recalls(run.evaluation.t2i.recalls()),
        rsum: run.evaluation.rsum,
        validation_rsum: best.map(|b| b.rsum),
        best_epoch: best.map(|b| b.epochs as u32),
    }
}

fn ties_decided(run: &SeedRun) -> u64 {
    let decided = &run.evaluation.decided;
    (decided.i2t.rank + decided.t2i.rank) as u64
}

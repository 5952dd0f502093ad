//! From what the rows gave to what the reports say.

mod audit;
mod comparisons;
mod hubs;
mod printed;

use hubness::Direction;
use hubness::hubs::Nearest;
use itm_core::audit::{Candidates, Draws};
use itm_core::eval::{Evaluation, MultiEvaluation, Ranks, TiePolicy, evaluate_multi};
use itm_core::significance::{Hits, Interval, Measures, bootstrap};
use itm_core::{Result, ScoreMatrix};

use self::comparisons::comparisons;
use self::printed::{claim, measured_as_the_paper, paper, printed, printed_line, table};
use crate::baselines;
use crate::config::Shown;
use crate::hubs::rescore;
use crate::paper::Measured as PaperData;
use crate::pointing::{self, OfImages};
use crate::report::{
    CHANCE, CI95_UNIT, Curve, Distribution, EpochDraws, Example, Figure, FigurePoint, Figures,
    Kind, Measured, PairMaps, RecallIntervals, Recalls, Report, ReportInput, Rescored, Row,
    SCHEMA_VERSION, SeedResult, Similarities, Truth,
};
use crate::reproduce::Job;
use crate::system;
use crate::train::Progress;

pub(crate) use self::audit::{of_candidates, of_log};

/// Replicates of a bootstrap and of a randomisation test.
const REPLICATES: usize = 10_000;
const RESAMPLING_SEED: u64 = 0;

/// One trained model, evaluated on the test split.
#[derive(Debug, Clone)]
pub(crate) struct SeedRun {
    pub(crate) seed: u64,
    pub(crate) evaluation: Evaluation,
    pub(crate) hits: Hits,
    pub(crate) truth: Option<MultiEvaluation>,
    /// Where training ended; `None` for a baseline.
    pub(crate) progress: Option<Progress>,
    pub(crate) curve: Option<Curve>,
    pub(crate) similarities: Option<Similarities>,
    pub(crate) prior: Option<f64>,
    /// What was drawn, epoch by epoch, against the truth.
    pub(crate) epochs: Vec<EpochDraws>,
    /// The nearest items of every query, where hubs are counted.
    pub(crate) nearest: Option<Nearest>,
    /// The same scores under corrections for hubs.
    pub(crate) rescored: Vec<hubness::cli::report::Report>,
    /// Queries of the test split with their most probable false negatives.
    pub(crate) false_negatives: Vec<Example>,
    /// Whether words point at what they name, image by image.
    pub(crate) pointing: Option<OfImages>,
    /// Pictures with maps of words.
    pub(crate) word_patches: Vec<PairMaps>,
    /// How long it took; zero for a baseline, whose row says it.
    pub(crate) seconds: f64,
}

impl SeedRun {
    /// Evaluates a score matrix on the test split.
    pub(crate) fn evaluate(job: &Job, seed: u64, scores: &ScoreMatrix) -> Result<Self> {
        let pairs = &job.source.dataset.test.pairs;
        let ranks: Vec<Ranks> = job.protocol.ranks(scores, pairs)?;
        let truth = job.source.truth.as_ref();
        let hubs = job.counts_hubs().then(|| job.protocol.folds(pairs)).transpose()?;
        Ok(Self {
            seed,
            evaluation: Evaluation::new(&ranks, TiePolicy::Index),
            hits: Hits::new(&ranks, TiePolicy::Index)?,
            truth: truth.map(|t| evaluate_multi(scores, &t.test)).transpose()?,
            progress: None,
            curve: None,
            similarities: None,
            prior: None,
            epochs: vec![],
            nearest: hubs.map(|folds| Nearest::new(scores, &folds)),
            rescored: vec![],
            false_negatives: vec![],
            pointing: None,
            word_patches: vec![],
            seconds: 0.0,
        })
    }
}

/// A row over its seeds.
#[derive(Debug, Clone)]
pub(crate) struct RowResult {
    pub(crate) name: String,
    kind: Kind,
    pub(crate) runs: Vec<SeedRun>,
    validation_rsum: Option<f64>,
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
        let validation_rsum = Some(validation_rsum);
        Self {
            name: name.to_owned(),
            kind: Kind::Baseline,
            runs: vec![run],
            validation_rsum,
            seconds,
        }
    }

    pub(crate) fn rsum(&self) -> f64 {
        mean(self.runs.iter().map(|run| run.evaluation.rsum)).unwrap_or(f64::NAN)
    }

    fn hits(&self) -> Vec<Hits> {
        self.runs.iter().map(|run| run.hits.clone()).collect()
    }

    fn rescored(&self) -> Vec<Rescored> {
        let reports: Vec<_> = self.runs.iter().flat_map(|run| run.rescored.clone()).collect();
        rescore::summarise(&self.name, &reports)
    }

    fn row(&self, job: &Job) -> Result<Row> {
        let of = |recalls: fn(&Evaluation) -> [f64; 3]| {
            let at = |k: usize| mean(self.runs.iter().map(|run| recalls(&run.evaluation)[k]));
            Recalls {
                r1: at(0).unwrap_or(0.0),
                r5: at(1).unwrap_or(0.0),
                r10: at(2).unwrap_or(0.0),
            }
        };
        let intervals = bootstrap(&self.hits(), REPLICATES, RESAMPLING_SEED)?;
        let best = |run: &SeedRun| run.progress.as_ref().and_then(|p| p.best).map(|best| best.rsum);
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
        let paper = printed_line(job, &self.name).map(|printed| printed.numbers());
        Ok(Row {
            name: self.name.clone(),
            kind: self.kind,
            protocol: protocol(job),
            paper,
            measured,
            truth: self.truth(),
        })
    }

    fn truth(&self) -> Option<Truth> {
        let known: Vec<_> = self.runs.iter().filter_map(|run| run.truth).collect();
        if known.is_empty() {
            return None;
        }
        let both = |f: fn(&itm_core::eval::MultiMetrics) -> f64| {
            mean(known.iter().map(|t| (f(&t.i2t) + f(&t.t2i)) / 200.0)) // percent there, shares here
        };
        let mut truth = Truth {
            map_at_r: both(|m| m.map_at_r),
            r_precision: both(|m| m.r_precision),
            ..Truth::default()
        };
        self.add_draws(&mut truth);
        self.add_posterior(&mut truth);
        let pointing: Vec<_> = self.runs.iter().filter_map(|run| run.pointing.as_ref()).collect();
        truth.pointing = pointing::summary(&pointing);
        Some(truth)
    }

    fn add_draws(&self, truth: &mut Truth) {
        let mut draws = Draws::default();
        self.runs.iter().filter_map(|run| run.progress.as_ref()).for_each(|p| draws.add(&p.draws));
        if let Some(shares) = draws.shares() {
            truth.drawn_true_share = Some(shares.drawn);
            truth.uniform_true_share = Some(shares.uniform);
            truth.hardest_true_share = Some(shares.hardest);
            truth.draws = Some(draws.anchors as u64);
            truth.other_true_shares = shares.others;
        }
        truth.epochs = audit::epochs(&self.runs);
    }

    fn add_posterior(&self, truth: &mut Truth) {
        let mut all = Candidates::default();
        self.runs
            .iter()
            .filter_map(|run| run.progress.as_ref())
            .for_each(|p| all.add(&p.candidates));
        let (Some(rate), Some(prior)) =
            (all.base_rate(), self.runs.iter().find_map(|run| run.prior))
        else {
            return;
        };
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
            truth.reliability =
                named.map(|(name, prior)| audit::reliability(&all, name, prior)).into();
        }
    }
}

/// All rows of a report.
pub(crate) struct Results {
    pub(crate) rows: Vec<RowResult>,
    chance: Measures<f64>,
}

impl Results {
    pub(crate) fn new(job: &Job, cca: Option<RowResult>) -> Self {
        Self { rows: cca.into_iter().collect(), chance: chance(job) }
    }

    pub(crate) fn push(&mut self, row: RowResult) {
        self.rows.push(row);
    }

    /// Everything the reports are made of.
    pub(crate) fn report(&self, job: &Job, figures: Figures, seconds: f64) -> Result<ReportInput> {
        let mut rows = vec![self.chance_row(job)];
        for row in &self.rows {
            rows.push(row.row(job)?);
        }
        let own = measured_as_the_paper(job);
        let names: Vec<_> = self.rows.iter().map(|row| row.name.as_str()).collect();
        let lines: Vec<_> = names.iter().map(|name| (*name, printed(job, name))).collect();
        let reference = || {
            let asked = PaperData::new(
                job.asked.target.dataset,
                job.view.protocol.unwrap_or(job.asked.target.protocol),
            );
            paper(job).reference(table(job)?, asked, &lines)
        };
        let report = Report {
            schema_version: SCHEMA_VERSION,
            target: job.asked.name.clone(),
            dataset: job.source.title.clone(),
            substituted: job.source.substituted(),
            substitution: job.source.substitution.clone(),
            commit: system::commit(),
            backend: job.backend.clone(),
            threads: system::threads(),
            preset: job.used.name.clone(),
            seeds: job.seeds.clone(),
            command: job.command.clone(),
            ci95_unit: CI95_UNIT.into(),
            tie_policy: "smaller index first".into(),
            claim: claim(job),
            rows,
            comparisons: comparisons(&self.rows, &claim(job).row)?,
            paper_reference: if own.is_some() { None } else { reference() },
            figure: self.figure(job),
            distribution: self.distribution(job),
            hubs: hubs::rows(&self.rows, |name| printed_line(job, name)?.hs_sum),
            hub_differences: hubs::differences(
                &self.rows,
                &claim(job),
                job.view.distribution().unwrap_or((Direction::T2i, 1)),
            )?,
            rescored: self.rows.iter().flat_map(RowResult::rescored).collect(),
            notes: job.source.notes.clone(),
            seconds,
            peak_memory_bytes: system::peak_memory_bytes().unwrap_or(0),
            config_sha256: job.used.sha256.clone(),
            data_sha256: job.source.dataset.sha256.clone(),
        };
        Ok(ReportInput { report, figures })
    }

    /// The curve of a figure: its rows by the number on the x axis.
    fn figure(&self, job: &Job) -> Option<Figure> {
        let (Shown::Figure(number), Some(key)) = (job.shown, &job.view.x) else { return None };
        let points = job.used.points(job.shown, &job.view).ok()?; // the plan has made sure of them
        let points = points.into_iter().map(|(row, x)| FigurePoint { row, x }).collect();
        Some(Figure { number, x: key.clone(), points })
    }

    /// What a figure of hubs draws.
    fn distribution(&self, job: &Job) -> Option<Distribution> {
        let (Shown::Figure(number), Some(of)) = (job.shown, job.view.distribution()) else {
            return None;
        };
        Some(hubs::distribution(number, of, &self.rows))
    }

    fn chance_row(&self, job: &Job) -> Row {
        let recalls = |r: [f64; 3]| Recalls { r1: r[0], r5: r[1], r10: r[2] };
        let measured = Measured {
            i2t: recalls(self.chance.i2t),
            t2i: recalls(self.chance.t2i),
            rsum: self.chance.rsum,
            ci95: None,
            ci95_recalls: None,
            per_seed: vec![],
            validation_rsum: None,
            ties_decided: None,
            seconds: None,
        };
        Row {
            name: CHANCE.into(),
            kind: Kind::Baseline,
            protocol: protocol(job),
            paper: None,
            measured,
            truth: None,
        }
    }
}

fn seed_result(run: &SeedRun) -> SeedResult {
    let recalls = |[r1, r5, r10]: [f64; 3]| Recalls { r1, r5, r10 };
    let best = run.progress.as_ref().and_then(|p| p.best);
    SeedResult {
        seed: run.seed,
        i2t: recalls(run.evaluation.i2t.recalls()),
        t2i: recalls(run.evaluation.t2i.recalls()),
        rsum: run.evaluation.rsum,
        validation_rsum: best.map(|b| b.rsum),
        best_epoch: best.map(|b| b.epoch as u32 + 1),
    }
}

fn ties_decided(run: &SeedRun) -> u64 {
    let decided = &run.evaluation.decided;
    (decided.i2t.rank + decided.t2i.rank) as u64
}

fn recall_intervals(m: Measures<Interval>) -> RecallIntervals {
    RecallIntervals { i2t: m.i2t.map(ends), t2i: m.t2i.map(ends) }
}

fn ends(interval: Interval) -> [f64; 2] {
    [interval.lo, interval.hi]
}

fn protocol(job: &Job) -> String {
    let test = &job.source.dataset.test.pairs;
    let name = job.protocol.name();
    format!("{name}: {} images, {} captions", test.images(), test.texts())
}

/// Ranking at random; of one fold where there are several of the same size.
fn chance(job: &Job) -> Measures<f64> {
    let pairs = &job.source.dataset.test.pairs;
    match job.protocol.folds(pairs) {
        Ok(folds) => {
            folds.first().map_or_else(|| baselines::chance(pairs), |f| baselines::chance(&f.pairs))
        }
        Err(_) => baselines::chance(pairs),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0u32), |(sum, n), x| (sum + x, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

#[cfg(test)]
mod tests;

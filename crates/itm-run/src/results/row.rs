//! A row over its seeds.

use itm_core::cca::{BestPoint, Cca};
use itm_core::eval::Evaluation;
use itm_core::significance::{Hits, bootstrap};
use itm_core::{Result, ScoreMatrix};

use super::{REPLICATES, RESAMPLING_SEED, SeedRun, ends};
use crate::experiment::{Experiment, together};
use crate::measures::AllMeasures;
use crate::report::{CCA, Measured, RecallIntervals, Recalls, Row, RowKind, SeedResult, mean};

/// A row over its seeds.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowResult {
    pub(crate) name: String,
    pub(super) kind: RowKind,
    pub(crate) runs: Vec<SeedRun>,
    pub(super) validation_rsum: Option<f64>,
    chosen: Option<BestPoint>,
    pub(crate) seconds: f64,
    /// Seeds and scores of models that are not averaged yet.
    group: Vec<(u64, ScoreMatrix)>,
    /// Runs of the mean scores of several models of the row.
    ensembles: Vec<SeedRun>,
}

impl RowResult {
    pub(crate) fn trained(name: &str) -> Self {
        Self { name: name.to_owned(), kind: RowKind::Trained, ..Self::default() }
    }

    pub(crate) fn closed_form(run: SeedRun, cca: &Cca, seconds: f64) -> Self {
        let (validation_rsum, chosen) = (Some(cca.validation_rsum), Some(cca.chosen));
        let (kind, runs) = (RowKind::Baseline, vec![run]);
        Self { kind, runs, validation_rsum, chosen, seconds, ..Self::trained(CCA) }
    }

    /// Adds the run of the next seed's model, and its scores if they are averaged with the scores of other models.
    ///
    /// # Errors
    /// If the evaluation of scores fails.
    pub(crate) fn add(
        &mut self,
        experiment: &Experiment,
        measures: &AllMeasures,
        run: SeedRun,
        scores: Option<ScoreMatrix>,
    ) -> Result<()> {
        self.group.extend(scores.map(|scores| (run.seed, scores)));
        self.seconds += run.seconds;
        self.runs.push(run);
        let size = experiment.view.ensemble;
        if size > 1 && self.group.len() as u64 == size {
            let (seeds, scores): (Vec<_>, Vec<_>) = self.group.drain(..).unzip();
            let (mean, name) = (ScoreMatrix::average(&scores)?, together(&self.name, size));
            let run = SeedRun::evaluate(experiment, measures, (&name, seeds[0]), &mean, None)?;
            self.ensembles.push(run);
        }
        Ok(())
    }

    /// The row of the ensembles, if there are any, and the row itself.
    pub(crate) fn with_ensembles(mut self, size: u64) -> impl Iterator<Item = Self> {
        let runs = std::mem::take(&mut self.ensembles);
        let row =
            Self { runs, seconds: self.seconds, ..Self::trained(&together(&self.name, size)) };
        Some(row).filter(|row| !row.runs.is_empty()).into_iter().chain([self])
    }

    /// The row that averages several rows of a table, seed by seed, if the table has one.
    ///
    /// # Errors
    /// If the evaluation of scores fails.
    pub(crate) fn joined(
        experiment: &Experiment,
        measures: &AllMeasures,
        all: &mut [Self],
    ) -> Result<Option<Self>> {
        let view = &experiment.view;
        if view.together.is_empty() {
            return Ok(None);
        }
        let mut row = Self::trained(&view.joined());
        let mut members: Vec<_> =
            all.iter_mut().filter(|member| view.together.contains(&member.name)).collect();
        row.seconds = members.iter().map(|member| member.seconds).sum();
        for &seed in &experiment.seeds {
            let scores: Vec<_> =
                members.iter_mut().map(|member| member.group.remove(0).1).collect();
            let mean = ScoreMatrix::average(&scores)?;
            let of = (&row.name[..], seed);
            row.runs.push(SeedRun::evaluate(experiment, measures, of, &mean, None)?);
        }
        Ok(Some(row))
    }

    pub(super) fn rsum(&self) -> f64 {
        mean(self.runs.iter().map(|run| run.evaluation.rsum)).unwrap_or(f64::NAN)
    }

    pub(super) fn hits(&self) -> Vec<Hits> {
        self.runs.iter().map(|run| run.hits.clone()).collect()
    }

    pub(super) fn row(&self, experiment: &Experiment) -> Result<Row> {
        let of = |recalls: fn(&Evaluation) -> [f64; 3]| {
            let at = |k: usize| mean(self.runs.iter().map(|run| recalls(&run.evaluation)[k]));
            let [r1, r5, r10] = [0, 1, 2].map(|k| at(k).unwrap_or(0.0));
            Recalls { r1, r5, r10 }
        };
        let intervals = bootstrap(&self.hits(), REPLICATES, RESAMPLING_SEED)?;
        let best = || mean(self.runs.iter().filter_map(|run| Some(run.best?.rsum)));
        let [i2t, t2i] = [intervals.i2t, intervals.t2i].map(|side| side.map(ends));
        let trained = self.kind == RowKind::Trained;
        let measured = Measured {
            i2t: of(|e| e.i2t.recalls()),
            t2i: of(|e| e.t2i.recalls()),
            rsum: self.rsum(),
            ci95: Some(ends(intervals.rsum)),
            ci95_recalls: Some(RecallIntervals { i2t, t2i }),
            per_seed: if trained { self.runs.iter().map(seed_result).collect() } else { vec![] },
            validation_rsum: self.validation_rsum.or_else(best),
            ties_decided: Some(self.runs.iter().map(ties_decided).sum()),
            seconds: Some(self.seconds),
        };
        let numbers = |table| Some(experiment.printed_line(&self.name)?.numbers(table));
        Ok(Row {
            name: self.name.clone(),
            kind: self.kind,
            protocol: experiment.ranked(),
            precision: experiment.precision_of(&self.name),
            chosen: self.chosen,
            paper: experiment.paper_table().and_then(numbers),
            measured,
            ..Row::default()
        })
    }
}

fn seed_result(run: &SeedRun) -> SeedResult {
    let recalls = |[r1, r5, r10]: [f64; 3]| Recalls { r1, r5, r10 };
    SeedResult {
        seed: run.seed,
        i2t: recalls(run.evaluation.i2t.recalls()),
        t2i: recalls(run.evaluation.t2i.recalls()),
        rsum: run.evaluation.rsum,
        validation_rsum: run.best.map(|b| b.rsum),
        best_epoch: run.best.map(|b| b.epochs as u32),
    }
}

fn ties_decided(run: &SeedRun) -> u64 {
    let decided = &run.evaluation.decided;
    (decided.i2t.rank + decided.t2i.rank) as u64
}

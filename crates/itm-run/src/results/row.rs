//! A row over its seeds.

use itm_core::Result;
use itm_core::eval::Evaluation;
use itm_core::significance::{Hits, bootstrap};

use super::printed::{printed_line, table};
use super::{REPLICATES, RESAMPLING_SEED, SeedRun, ends, protocol, recall_intervals};
use crate::job::Job;
use crate::mean::mean;
use crate::precision;
use crate::report::{Kind, Measured, Numbers, Recalls, Row, SeedResult};

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

    pub(super) fn row(&self, job: &Job) -> Result<Row> {
        let of = |recalls: fn(&Evaluation) -> [f64; 3]| {
            let at = |k: usize| mean(self.runs.iter().map(|run| recalls(&run.evaluation)[k]));
            let [r1, r5, r10] = [0, 1, 2].map(|k| at(k).unwrap_or(0.0));
            Recalls { r1, r5, r10 }
        };
        let intervals = bootstrap(&self.hits(), REPLICATES, RESAMPLING_SEED)?;
        let best = |run: &SeedRun| Some(run.best?.rsum);
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
            truth: None,
            more: Numbers::new(),
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

//! Turns the results of the rows into the content of the reports.

mod comparisons;
mod printed;
mod row;
mod seed;

use itm_core::eval::{Evaluation, TiePolicy};
use itm_core::significance::{Interval, Measures};
use itm_core::{Result, significance};

use self::comparisons::comparisons;
use self::printed::{claim, measured_as_the_paper, printed, printed_line, table};
use crate::config::Shown;
use crate::job::Job;
use crate::measures::{
    Audit, Course, Examples, FalseNegatives, Hubs, Judgements, Measure, Pointing,
};
use crate::paper::Measured as PaperData;
use crate::precision;
use crate::report::{
    BAYES, CHANCE, CI95_UNIT, Figure, FigurePoint, Kind, Measured, Numbers, ORACLE,
    RecallIntervals, Recalls, Report, Row, SCHEMA_VERSION, SPECIFIC_ORACLE,
};
use crate::rescore::Rescoring;
use crate::split::Split;
use crate::system;

pub(crate) use self::row::RowResult;
pub(crate) use self::seed::SeedRun;

/// Replicates of a bootstrap and of a randomisation test.
const REPLICATES: usize = 10_000;
const RESAMPLING_SEED: u64 = 0;

/// Every measure of a run, in the order of the report.
pub(crate) fn measures<'a>(
    job: &'a Job,
    rescoring: Option<&'a Rescoring>,
) -> Vec<Box<dyn Measure + 'a>> {
    let asked = &job.asked;
    let mut all: Vec<Box<dyn Measure>> = vec![];
    if let Some(rescoring) = rescoring {
        all.push(Box::new(rescoring));
    }
    if asked.counts_hubs() {
        let figure = match asked.shown {
            Shown::Figure(number) => asked.view.distribution().map(|of| (number, of)),
            Shown::Table(_) | Shown::Named(_) => None,
        };
        let printed = |name: &str| printed_line(job, name)?.hs_sum;
        all.push(Box::new(Hubs::new(figure, printed)));
    }
    if !job.run.bench.source.judgements.is_empty() {
        all.push(Box::new(Judgements::default()));
    }
    all.push(Box::new(Course::default()));
    all.push(Box::new(Audit::default()));
    all.push(Box::new(FalseNegatives::default()));
    all.push(Box::new(Pointing::default()));
    all.extend(asked.kind.measures(&asked.target));
    all.push(Box::new(Examples::of(asked.view.rows.first().map_or("", String::as_str))));
    all
}

/// All rows of a report.
pub(crate) struct Results {
    pub(crate) rows: Vec<RowResult>,
    /// Rows whose recalls are computed, not measured.
    expected: Vec<(&'static str, Measures<f64>)>,
}

impl Results {
    pub(crate) fn new(job: &Job, cca: Option<RowResult>) -> Result<Self> {
        Ok(Self { rows: cca.into_iter().collect(), expected: expected(job)? })
    }

    pub(crate) fn push(&mut self, row: RowResult) {
        self.rows.push(row);
    }

    /// What every report has, without the sections of measures.
    pub(crate) fn report(&self, job: &Job, seconds: f64) -> Result<Report> {
        let mut rows: Vec<_> =
            self.expected.iter().map(|(name, m)| expected_row(job, name, m)).collect();
        for row in &self.rows {
            rows.push(row.row(job)?);
        }
        let (asked, bench) = (&job.asked, &job.run.bench);
        let source = &bench.source;
        let own = measured_as_the_paper(job);
        let names: Vec<_> = self.rows.iter().map(|row| row.name.as_str()).collect();
        let lines: Vec<_> = names.iter().map(|name| (*name, printed(job, name))).collect();
        let reference = || {
            let target = &asked.target.target;
            let protocol = asked.view.protocol.unwrap_or(target.protocol);
            let measured = PaperData::new(target.dataset, protocol);
            asked.paper.reference(table(job)?, measured, &lines)
        };
        Ok(Report {
            schema_version: SCHEMA_VERSION,
            target: asked.target.name.clone(),
            dataset: source.title.clone(),
            substituted: source.substituted(),
            substitution: source.substitution.clone(),
            commit: system::commit(),
            backend: asked.backend.clone(),
            threads: system::threads(),
            preset: bench.config.name.clone(),
            seeds: asked.seeds.clone(),
            command: asked.command.clone(),
            ci95_unit: CI95_UNIT.into(),
            tie_policy: "smaller index first".into(),
            claim: claim(job),
            rows,
            comparisons: comparisons(&self.rows, &claim(job).row)?,
            paper_reference: if own.is_some() { None } else { reference() },
            figure: self.figure(job),
            notes: [
                source.notes.clone(),
                bench.starts.notes(),
                Vec::from_iter(precision::note(job)),
            ]
            .concat(),
            seconds,
            peak_memory_bytes: system::peak_memory_bytes().unwrap_or(0),
            config_sha256: bench.config.sha256.clone(),
            data_sha256: source.dataset.sha256.clone(),
            more: Numbers::new(),
        })
    }

    /// The curve of a figure: its rows by the number on the x axis.
    fn figure(&self, job: &Job) -> Option<Figure> {
        let (shown, view) = (&job.asked.shown, &job.asked.view);
        let (&Shown::Figure(number), Some(key)) = (shown, &view.x) else { return None };
        let points = job.run.bench.config.points(shown, view).ok()?; // the plan has checked them
        let points = points.into_iter().map(|(row, x)| FigurePoint { row, x }).collect();
        Some(Figure { number, x: key.clone(), points })
    }
}

fn expected_row(job: &Job, name: &str, expected: &Measures<f64>) -> Row {
    let [i2t, t2i] = [expected.i2t, expected.t2i].map(|[r1, r5, r10]| Recalls { r1, r5, r10 });
    let measured = Measured { i2t, t2i, rsum: expected.rsum, ..Measured::default() };
    Row {
        name: name.into(),
        kind: Kind::Baseline,
        protocol: protocol(job),
        precision: None,
        paper: None,
        measured,
        truth: None,
        more: Numbers::new(),
    }
}

fn recall_intervals(m: Measures<Interval>) -> RecallIntervals {
    RecallIntervals { i2t: m.i2t.map(ends), t2i: m.t2i.map(ends) }
}

fn ends(interval: Interval) -> [f64; 2] {
    [interval.lo, interval.hi]
}

fn protocol(job: &Job) -> String {
    let source = &job.run.bench.source;
    let (test, name) = (&source.dataset.test.pairs, job.asked.protocol.name());
    let images = match source.first_of {
        Some(all) => format!("the first {} of {all}", test.images()),
        None => test.images().to_string(),
    };
    format!("{name}: {images} images, {} captions", test.texts())
}

/// Recalls of ranking at random; for one fold if there are several folds, which have equal sizes. Also the oracles
/// that the truth allows, if the truth is known and there is one fold.
fn expected(job: &Job) -> Result<Vec<(&'static str, Measures<f64>)>> {
    let (part, truth) = job.run.bench.source.part(Split::Test);
    let folds = job.asked.protocol.folds(&part.pairs).unwrap_or_default();
    let mut rows =
        vec![(CHANCE, significance::chance(folds.first().map_or(&part.pairs, |f| &f.pairs)))];
    if let Some(truth) = truth.filter(|_| folds.len() <= 1) {
        let [ties, specific] = significance::ceilings(&part.pairs, truth);
        rows.extend([(ORACLE, ties), (SPECIFIC_ORACLE, specific)]);
    }
    if let Some(odds) = job.run.bench.source.odds(Split::Test).filter(|_| folds.len() <= 1) {
        let ranks = job.asked.protocol.ranks(&odds?, &part.pairs)?;
        let Evaluation { i2t, t2i, .. } = Evaluation::new(&ranks, TiePolicy::Expected);
        rows.push((BAYES, Measures::of_recalls(i2t.recalls(), t2i.recalls())));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;

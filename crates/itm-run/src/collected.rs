//! Results of the models of a row, seed by seed: of each model alone, and of the mean score matrix of several models, from one row
//! or from several rows.

use itm_core::{Result, ScoreMatrix};

use crate::job::{Job, together};
use crate::measures::AllMeasures;
use crate::results::{Results, RowResult, SeedRun};

/// The results of a row, seed by seed.
pub(crate) struct Collected {
    alone: RowResult,
    together: RowResult,
    /// Seeds and scores that are not averaged yet.
    group: Vec<(u64, ScoreMatrix)>,
}

impl Collected {
    pub(crate) fn new(job: &Job, row: &str) -> Self {
        let together = together(row, job.asked.view.ensemble);
        let [alone, together] = [row, &together].map(RowResult::trained);
        Self { alone, together, group: vec![] }
    }

    /// Adds the results of the next seed's model.
    ///
    /// # Errors
    /// If the evaluation of scores fails.
    pub(crate) fn take(
        &mut self,
        job: &Job,
        measures: &AllMeasures,
        (run, scores): (SeedRun, Option<ScoreMatrix>),
    ) -> Result<()> {
        self.group.extend(scores.map(|scores| (run.seed, scores)));
        self.alone.seconds += run.seconds;
        self.alone.runs.push(run);
        let size = job.asked.view.ensemble;
        if size > 1 && self.group.len() as u64 == size {
            let (seeds, scores): (Vec<_>, Vec<_>) = self.group.drain(..).unzip();
            let mean = ScoreMatrix::average(&scores)?;
            let of = (&self.together.name[..], seeds[0]);
            self.together.runs.push(SeedRun::evaluate(job, measures, of, &mean)?);
        }
        Ok(())
    }

    pub(crate) fn finish(mut self, results: &mut Results) {
        if !self.together.runs.is_empty() {
            self.together.seconds = self.alone.seconds;
            results.push(self.together);
        }
        results.push(self.alone);
    }
}

/// The row that averages several rows of a table, seed by seed, if the table has one.
///
/// # Errors
/// If the evaluation of scores fails.
pub(crate) fn joined(
    job: &Job,
    measures: &AllMeasures,
    all: &mut [Collected],
) -> Result<Option<RowResult>> {
    let view = &job.asked.view;
    if view.together.is_empty() {
        return Ok(None);
    }
    let mut row = RowResult::trained(&view.joined());
    let mut members: Vec<_> =
        all.iter_mut().filter(|of_row| view.together.contains(&of_row.alone.name)).collect();
    row.seconds = members.iter().map(|of_row| of_row.alone.seconds).sum();
    for &seed in &job.asked.seeds {
        let scores: Vec<_> = members.iter_mut().map(|of_row| of_row.group.remove(0).1).collect();
        let mean = ScoreMatrix::average(&scores)?;
        row.runs.push(SeedRun::evaluate(job, measures, (&row.name, seed), &mean)?);
    }
    Ok(Some(row))
}

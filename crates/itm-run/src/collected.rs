//! What the models of a row gave, seed after seed, each alone and several together: by the mean of their score matrices.

use itm_core::{Result, ScoreMatrix};

use crate::job::{Job, together};
use crate::measure::Measured;
use crate::report::Figures;
use crate::results::{Results, RowResult, SeedRun};
use crate::word_maps;

/// A row, seed after seed.
pub(crate) struct Collected {
    alone: RowResult,
    together: RowResult,
    /// The seeds of the group so far, and their scores.
    group: Vec<(u64, ScoreMatrix)>,
}

impl Collected {
    pub(crate) fn new(job: &Job, row: &str) -> Self {
        let together = together(row, job.asked.view.ensemble);
        let [alone, together] = [row, &together].map(RowResult::trained);
        Self { alone, together, group: vec![] }
    }

    /// Takes in the model of the next seed.
    ///
    /// # Errors
    /// As the evaluation of scores.
    pub(crate) fn take(&mut self, job: &Job, measured: Measured, all: &mut Figures) -> Result<()> {
        let Measured { run, figures, scores } = measured;
        let Figures { curves, similarities, examples, false_negatives, word_maps } = figures;
        all.curves.extend(curves);
        all.similarities.extend(similarities);
        if all.examples.is_empty() {
            all.examples = examples;
        }
        if all.false_negatives.is_empty() {
            all.false_negatives = false_negatives;
        }
        word_maps::beside(&mut all.word_maps, word_maps);
        self.group.extend(scores.map(|scores| (run.seed, scores)));
        self.alone.seconds += run.seconds;
        self.alone.runs.push(run);
        if !self.group.is_empty() && self.group.len() as u64 == job.asked.view.ensemble {
            let (seeds, scores): (Vec<_>, Vec<_>) = self.group.drain(..).unzip();
            let mean = ScoreMatrix::average(&scores)?;
            self.together.runs.push(SeedRun::evaluate(job, seeds[0], &mean)?);
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

//! A row's seeds, one after the other, and models that answer together: the mean of their score matrices.

use itm_core::{Result, ScoreMatrix};

use crate::report::Figures;
use crate::reproduce::Job;
use crate::results::{Results, RowResult, SeedRun};
use crate::{figures, word_maps};

/// Collects the score matrices of consecutive seeds, so many a group.
pub(crate) struct Ensemble {
    size: u64,
    /// The seeds of the group so far, and the sum of their scores.
    group: Option<(Vec<u64>, ScoreMatrix)>,
}

impl Ensemble {
    pub(crate) fn new(size: u64) -> Self {
        Self { size, group: None }
    }

    /// The name of a row's ensemble.
    pub(crate) fn name(row: &str, size: u64) -> String {
        format!("{row}, {size} together")
    }

    /// Takes a model's scores in; those of the group when it is full.
    ///
    /// # Errors
    /// As the evaluation of scores.
    pub(crate) fn push(
        &mut self,
        job: &Job,
        seed: u64,
        scores: ScoreMatrix,
    ) -> Result<Option<SeedRun>> {
        if self.size < 2 {
            return Ok(None);
        }
        let (seeds, sum) = match self.group.take() {
            None => (vec![seed], scores),
            Some((mut seeds, sum)) => {
                seeds.push(seed);
                (seeds, added(&sum, &scores)?)
            }
        };
        if (seeds.len() as u64) < self.size {
            self.group = Some((seeds, sum));
            return Ok(None);
        }
        let first = seeds[0];
        Ok(Some(SeedRun::evaluate(job, first, &scaled(&sum, 1.0 / self.size as f32)?)?))
    }
}

/// A row, seed after seed.
pub(crate) struct Collected {
    alone: RowResult,
    together: RowResult,
    ensemble: Ensemble,
}

impl Collected {
    pub(crate) fn new(row: &str, size: u64) -> Self {
        Self {
            alone: RowResult::trained(row),
            together: RowResult::trained(&Ensemble::name(row, size)),
            ensemble: Ensemble::new(size),
        }
    }

    pub(crate) fn take(
        &mut self,
        job: &Job,
        seed: u64,
        mut run: SeedRun,
        scores: ScoreMatrix,
        figures: &mut Figures,
    ) -> Result<()> {
        if figures.examples.is_empty() {
            figures.examples = figures::examples(&self.alone.name, &scores, &job.source);
        }
        let false_negatives = std::mem::take(&mut run.false_negatives);
        if figures.false_negatives.is_empty() {
            figures.false_negatives = false_negatives;
        }
        word_maps::beside(&mut figures.word_patches, std::mem::take(&mut run.word_patches));
        figures.curves.extend(run.curve.take());
        figures.similarities.extend(run.similarities.take().filter(|_| seed == job.seeds[0]));
        self.alone.seconds += run.seconds;
        self.alone.runs.push(run);
        self.together.runs.extend(self.ensemble.push(job, seed, scores)?);
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

fn added(a: &ScoreMatrix, b: &ScoreMatrix) -> Result<ScoreMatrix> {
    let values = a.values().iter().zip(b.values()).map(|(a, b)| a + b).collect();
    ScoreMatrix::new(a.images(), a.texts(), values)
}

fn scaled(a: &ScoreMatrix, factor: f32) -> Result<ScoreMatrix> {
    ScoreMatrix::new(a.images(), a.texts(), a.values().iter().map(|x| x * factor).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the mean of 0.5 and 0.25, −1 and 0.
    #[test]
    fn the_mean_of_two() {
        let one = ScoreMatrix::from_rows([[0.5, -1.0]]);
        let two = ScoreMatrix::from_rows([[0.25, 0.0]]);
        let mean = scaled(&added(&one, &two).unwrap(), 0.5).unwrap();
        assert_eq!(mean, ScoreMatrix::from_rows([[0.375, -0.5]]));
    }
}

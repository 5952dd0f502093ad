//! Models that answer together: the mean of their score matrices.

use itm_core::{Result, ScoreMatrix};

use crate::reproduce::Job;
use crate::results::SeedRun;

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

//! Mutual proximity with normal distributions.

use super::log_phi::log_phi;
use super::moments::{Moment, Moments};
use crate::side::Side;
use crate::{Bank, Correction, Direction, Rescore, Result, Scores};

/// Mutual proximity (JMLR 2012), rows and columns taken as normally distributed.
///
/// ```text
/// u(q, j) = log Φ((s(q, j) − μ(q)) / σ(q)) + log Φ((s(q, j) − μ(j)) / σ(j))
/// ```
///
/// | symbol     | here                                                        |
/// |------------|-------------------------------------------------------------|
/// | μ(q), σ(q) | over all items: the query's own row of `test`               |
/// | μ(j), σ(j) | over the bank's queries: a column of `bank.scores()`        |
///
/// Deviations are of the population and at least 1e-6. Logarithms, since for hubs both factors come so near
/// 1 that their product ties. One pass over each of the two; kept is O(queries + items).
///
/// # Departures
/// The program scikit-hubness takes mean and deviation of the stored neighbours alone, and its result
/// depends on their number.
///
/// ```
/// use hubness::{Direction, GaussianProximity, ScoreMatrix, TestQueries};
///
/// let scores = ScoreMatrix::from_rows([[0.9, 0.3, 0.2], [0.7, 0.6, 0.1], [0.8, 0.2, 0.7]]);
/// let fit = GaussianProximity.fit(&TestQueries(&scores), &scores, Direction::I2t)?;
/// assert_eq!([0, 1, 2].map(|i| fit.apply(&scores).ranking(i)[0]), [0, 1, 2]);
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GaussianProximity;

impl GaussianProximity {
    /// Fits on a bank; of the test each query's own scores are looked at.
    ///
    /// # Errors
    /// If bank or test are empty or have different items, or scores are infinite.
    pub fn fit<B: Bank>(
        &self,
        bank: &B,
        test: &impl Scores,
        direction: Direction,
    ) -> Result<Correction<B::Knowledge>> {
        let (bank, test) =
            (Side::new("bank", bank.scores(), direction)?, Side::new("test", test, direction)?);
        bank.expect_items(test.items())?;
        let (images, texts) = bank.run(&Moments);
        let items = normals(&bank, "item", &direction.items(images, texts))?;
        let (images, texts) = test.run(&Moments);
        let queries = normals(&test, "query", &direction.queries(images, texts))?;
        Ok(Correction::new(direction, Normals { queries, items }))
    }
}

/// No deviation is smaller.
const FLOOR: f64 = 1e-6;

fn normals<S: Scores>(side: &Side<'_, S>, each: &str, moments: &[Moment]) -> Result<Vec<Normal>> {
    let deviations: Vec<_> = moments.iter().map(|moment| moment.deviation()).collect();
    side.finite(each, "deviation of its scores", &deviations)?;
    let normal = |(moment, sd): (&Moment, f64)| Normal { mean: moment.mean, sd: sd.max(FLOOR) };
    Ok(moments.iter().zip(deviations).map(normal).collect())
}

#[derive(Debug, Clone, Copy)]
struct Normal {
    mean: f64,
    sd: f64,
}

impl Normal {
    fn log_share_below(self, score: f64) -> f64 {
        log_phi((score - self.mean) / self.sd)
    }
}

#[derive(Debug)]
struct Normals {
    queries: Vec<Normal>,
    items: Vec<Normal>,
}

impl Rescore for Normals {
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64 {
        let score = f64::from(score);
        self.queries[query].log_share_below(score) + self.items[item].log_share_below(score)
    }
}

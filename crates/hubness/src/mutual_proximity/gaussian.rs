//! Mutual proximity with normal distributions.

use itm_core::ScoreMatrix;
use itm_core::scored::{Scored, visit};
use itm_core::tiles::{BothSides, Moment, Moments};
use serde::{Deserialize, Serialize};

use super::log_phi::log_phi;
use crate::directed::DirectedScores;
use crate::rescore::check_values;
use crate::{Bank, BankFit, Correction, Direction, Rescore, Result};

/// Mutual proximity (JMLR 2012), with rows and columns taken as normally distributed.
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
/// Deviations are population deviations, at least 1e-6. `u` is a logarithm, because for hubs both factors are
/// so near 1 that products tie. The fit makes one pass over each of the two and keeps O(queries + items).
///
/// # Departures
/// The program scikit-hubness takes mean and deviation of only the stored neighbours, so its result depends
/// on the number of stored neighbours.
///
/// ```
/// use hubness::{Direction, GaussianProximity, ScoreMatrix, TestQueries};
///
/// let scores = ScoreMatrix::from_rows([[0.9, 0.3, 0.2], [0.7, 0.6, 0.1], [0.8, 0.2, 0.7]]);
/// let fit = GaussianProximity.fit(&TestQueries(&scores), &scores, Direction::I2t)?;
/// let fair = fit.apply(&scores)?;
/// assert_eq!([0, 1, 2].map(|image| fair.ranking(image)[0]), [0, 1, 2]);
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GaussianProximity;

impl GaussianProximity {
    /// Fits on a bank and on each test query's own scores.
    ///
    /// # Errors
    /// If bank or test are empty or have different items, or scores are infinite.
    pub fn fit<B: Bank>(&self, bank: &B, test: &dyn Scored, direction: Direction) -> BankFit<B> {
        let [bank, test] = DirectedScores::pair(("bank", bank.scores()), test, direction)?;
        let BothSides { images, texts, .. } = visit(bank.scores, &Moments)?;
        let items = normals(&bank, "item", &direction.items(images, texts))?;
        let BothSides { images, texts, .. } = visit(test.scores, &Moments)?;
        let queries = normals(&test, "query", &direction.queries(images, texts))?;
        Ok(Correction::new(direction, Normals { direction, queries, items }))
    }
}

/// The smallest deviation.
pub(crate) const FLOOR: f64 = 1e-6;

fn normals(
    scores: &DirectedScores<'_>,
    each: &str,
    moments: &[Moment],
) -> Result<Vec<NormalDistribution>> {
    let deviations = moments.iter().map(|moment| moment.deviation()).collect();
    let deviations = scores.finite(each, "deviation of its scores", deviations)?;
    let normal =
        |(moment, sd): (&Moment, f64)| NormalDistribution { mean: moment.mean, sd: sd.max(FLOOR) };
    Ok(moments.iter().zip(deviations).map(normal).collect())
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NormalDistribution {
    mean: f64,
    sd: f64,
}

impl NormalDistribution {
    fn log_share_below(self, score: f64) -> f64 {
        log_phi((score - self.mean) / self.sd)
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Normals {
    direction: Direction, // sums over rows and over columns are taken in different orders
    queries: Vec<NormalDistribution>,
    items: Vec<NormalDistribution>,
}

impl Normals {
    /// # Errors
    /// If a mean or deviation is not one that a fit gives.
    pub(crate) fn check(&self) -> Result<()> {
        for (name, normals) in [("queries", &self.queries), ("items", &self.items)] {
            let part =
                |of: fn(&NormalDistribution) -> f64| normals.iter().map(of).collect::<Vec<_>>();
            let place = format_args!("mean of {name} of the correction, value");
            check_values(place, &part(|n| n.mean), f64::MIN, "a finite number")?;
            let expected = "a finite number of at least 1e-6";
            let place = format_args!("sd of {name} of the correction, value");
            check_values(place, &part(|n| n.sd), FLOOR, expected)?;
        }
        Ok(())
    }

    fn value(&self, own: NormalDistribution, item: usize, score: f32) -> f64 {
        let score = f64::from(score);
        own.log_share_below(score) + self.items[item].log_share_below(score)
    }
}

impl Rescore for Normals {
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64 {
        self.value(self.queries[query], item, score)
    }

    fn items(&self) -> usize {
        self.items.len()
    }

    fn queries(&self) -> Option<usize> {
        Some(self.queries.len())
    }

    fn of_query(&self, scores: &[f32]) -> Result<Vec<f64>> {
        let (images, texts) = self.direction.queries((1, scores.len()), (scores.len(), 1));
        let row = ScoreMatrix::new(images, texts, scores.to_vec())?;
        let scores_of = DirectedScores::new("scores of a query", &row, self.direction)?;
        let BothSides { images, texts, .. } = visit(scores_of.scores, &Moments)?;
        let own = normals(&scores_of, "query", &self.direction.queries(images, texts))?[0];
        Ok(scores.iter().enumerate().map(|(item, &score)| self.value(own, item, score)).collect())
    }
}

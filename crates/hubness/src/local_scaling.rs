//! Local scaling and NICDM: distances relative to the nearest-neighbour distances of both ends.

use itm_core::scored::Scored;
use itm_core::tiles::{Maxima, TopK};
use serde::{Deserialize, Serialize};

use crate::directed::{DirectedScores, at_least_one};
use crate::rescore::check_values;
use crate::{Bank, Correction, Direction, Error, Rescore, Result};

/// Local scaling (NeurIPS 2004) and NICDM (CVPR 2007; JMLR 2012) between queries and items, on `d = 1 − s`:
/// for cosines only.
///
/// ```text
/// local scaling   d′ = 1 − exp(−d² / (σ(q)·σ(j)))     ranks by  2·log d − log σ(j)
/// NICDM           d′ = d / √(μ(q)·μ(j))               ranks by  log d − log μ(j) / 2
/// ```
///
/// | symbol     | here                                                                              |
/// |------------|-----------------------------------------------------------------------------------|
/// | σ(q), μ(q) | distance of the query to its k-th nearest item, and the mean to its k nearest     |
/// | σ(j), μ(j) | the same for the item and the queries of the bank                                 |
/// | u          | minus the value that ranks, or minus d′; `d = 0` is +∞ in the first case          |
///
/// Distances to neighbours are at least 1e-12, and `d` at least 0 (a cosine may round to a little above 1).
///
/// # Departures
/// Both were made for one set with itself. Here the neighbours of a query are items and the neighbours of an
/// item are queries, and no neighbour is left out as the point itself. The program scikit-hubness skips one
/// neighbour on either side. Its local scaling gives `1 + d²/(σσ)`; the order is the same. Its default k is
/// 5; 10 comes from the JMLR paper.
///
/// ```
/// use hubness::{Direction, LocalScaling, ScoreMatrix, TestQueries};
///
/// let scores = ScoreMatrix::from_rows([[0.9, 0.3, 0.2], [0.7, 0.6, 0.1], [0.8, 0.2, 0.7]]);
/// let nicdm = LocalScaling { k: 2, ..LocalScaling::nicdm() };
/// let fair = nicdm.fit(&TestQueries(&scores), &scores, Direction::I2t)?.apply(&scores)?;
/// assert_eq!([0, 1, 2].map(|i| fair.ranking(i)[0]), [0, 1, 2]);
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalScaling {
    /// Local scaling or NICDM.
    pub form: LocalForm,
    /// How many neighbours.
    pub k: usize,
    /// The kind of corrected scores.
    pub values: LocalValues,
}

/// The k-th distance, or the mean of the k nearest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalForm {
    /// Local scaling.
    #[default]
    LocalScaling,
    /// Non-iterative contextual dissimilarity.
    Nicdm,
}

/// The kind of corrected scores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalValues {
    /// A value that ranks the items of one query and leaves out the constants of the query.
    #[default]
    Rank,
    /// `−d′`, for methods that compare queries. Local scaling comes near −1 and ties there.
    Full,
}

impl Default for LocalScaling {
    fn default() -> Self {
        Self { form: LocalForm::LocalScaling, k: 10, values: LocalValues::Rank }
    }
}

impl LocalScaling {
    /// NICDM with its default k.
    pub fn nicdm() -> Self {
        Self { form: LocalForm::Nicdm, ..Self::default() }
    }

    /// Fits on a bank. Full values also need each test query's nearest items. In both cases the test scores
    /// are checked to be cosines.
    ///
    /// # Errors
    /// If bank or test are empty or have different items, k is 0, a score is above 1 by more than rounding
    /// (0.001), or one among the nearest is −∞.
    pub fn fit<B: Bank>(
        &self,
        bank: &B,
        test: &dyn Scored,
        direction: Direction,
    ) -> Result<Correction<B::Knowledge>> {
        at_least_one("k of local scaling", self.k)?;
        let (bank, test) = (
            DirectedScores::new("bank", bank.scores(), direction)?,
            DirectedScores::new("test", test, direction)?,
        );
        bank.expect_items(test.items())?;
        cosines("bank", &bank)?;
        cosines("test", &test)?;
        let items = self.widths(&bank.best_queries(self.k)?, bank.items());
        bank.finite("item", "distance to its nearest queries", &items)?;
        let queries = match self.values {
            LocalValues::Rank => Vec::new(),
            LocalValues::Full => self.widths(&test.best_items(self.k)?, test.queries()),
        };
        test.finite("query", "distance to its nearest items", &queries)?;
        Ok(Correction::new(direction, Widths { options: *self, items, queries }))
    }

    /// σ or μ of every list of nearest scores.
    fn widths(&self, nearest: &TopK, count: usize) -> Vec<f64> {
        (0..count).map(|at| self.width(nearest.scores(at))).collect()
    }

    /// σ or μ from the scores of the nearest neighbours, nearest first.
    fn width(&self, nearest: &[f32]) -> f64 {
        let width = match self.form {
            LocalForm::LocalScaling => distance(nearest[nearest.len() - 1]),
            LocalForm::Nicdm => {
                nearest.iter().map(|&s| distance(s)).sum::<f64>() / nearest.len() as f64
            }
        };
        width.max(FLOOR)
    }
}

/// The smallest width.
const FLOOR: f64 = 1e-12;

fn distance(score: f32) -> f64 {
    (1.0 - f64::from(score)).max(0.0)
}

/// # Errors
/// If a score is above 1 by more than rounding, and thus not a cosine.
fn cosines(name: &str, scores: &DirectedScores<'_>) -> Result<()> {
    cosine(name, scores.visit(&Maxima)?.images.into_iter().fold(f32::NEG_INFINITY, f32::max))
}

fn cosine(name: &str, largest: f32) -> Result<()> {
    if largest <= 1.0 + 1e-3 {
        return Ok(());
    }
    Err(Error::invalid(name, "cosines, because distances are 1 − s", largest))
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Widths {
    options: LocalScaling,
    items: Vec<f64>,
    queries: Vec<f64>, // empty for `LocalValues::Rank`
}

impl Widths {
    /// # Errors
    /// If a width is not one that a fit gives, or widths of queries are present or missing contrary to the options.
    pub(crate) fn check(&self) -> Result<()> {
        for (name, widths) in [("items", &self.items), ("queries", &self.queries)] {
            check_values(name, widths, FLOOR, "a finite number of at least 1e-12")?;
        }
        at_least_one("k of local scaling", self.options.k)?;
        if self.queries.is_empty() == (self.options.values == LocalValues::Rank) {
            return Ok(());
        }
        let expected = "none with the values `rank`, at least one with `full`";
        Err(Error::invalid("queries of the correction", expected, self.queries.len()))
    }

    /// The new score of an item; `own` is the width of the query, for full values.
    fn value(&self, own: Option<f64>, item: usize, score: f32) -> f64 {
        let (d, item) = (distance(score), self.items[item]);
        match (self.options.form, own) {
            (LocalForm::LocalScaling, None) => item.ln() - 2.0 * d.ln(),
            (LocalForm::LocalScaling, Some(own)) => (-d * d / (own * item)).exp_m1(),
            (LocalForm::Nicdm, None) => item.ln() / 2.0 - d.ln(),
            (LocalForm::Nicdm, Some(own)) => -d / (own * item).sqrt(),
        }
    }
}

impl Rescore for Widths {
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64 {
        self.value(self.queries.get(query).copied(), item, score)
    }

    fn items(&self) -> usize {
        self.items.len()
    }

    fn queries(&self) -> Option<usize> {
        (!self.queries.is_empty()).then_some(self.queries.len())
    }

    fn of_query(&self, scores: &[f32]) -> Result<Vec<f64>> {
        let mut nearest = scores.to_vec();
        nearest.sort_unstable_by(|a, b| b.total_cmp(a));
        cosine("scores of a query", nearest[0])?;
        nearest.truncate(self.options.k);
        let own = (self.options.values == LocalValues::Full).then(|| self.options.width(&nearest));
        Ok(scores.iter().enumerate().map(|(item, &score)| self.value(own, item, score)).collect())
    }
}

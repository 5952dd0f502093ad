//! Local scaling and NICDM: distances relative to the nearest-neighbour distances of both ends.

use itm_core::scored::{Scored, visit};
use itm_core::tiles::{Maxima, TopK};
use serde::{Deserialize, Serialize};

use crate::directed::{DirectedScores, at_least_one};
use crate::rescore::check_values;
use crate::{Bank, BankFit, Correction, Direction, Error, Rescore, Result};

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
/// | u          | minus the value that ranks                                                        |
///
/// Distances are at least 1e-12 (a cosine may round to a little above 1).
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalScaling {
    /// Local scaling or NICDM.
    pub form: LocalForm,
    /// How many neighbours.
    pub k: usize,
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

impl Default for LocalScaling {
    fn default() -> Self {
        Self { form: LocalForm::LocalScaling, k: 10 }
    }
}

impl LocalScaling {
    /// NICDM with its default k.
    pub fn nicdm() -> Self {
        Self { form: LocalForm::Nicdm, ..Self::default() }
    }

    /// Fits on a bank. The test scores are only checked to be cosines.
    ///
    /// # Errors
    /// If bank or test are empty or have different items, k is 0, a score is above 1 by more than rounding
    /// (0.001), or one among the nearest is −∞.
    pub fn fit<B: Bank>(&self, bank: &B, test: &dyn Scored, direction: Direction) -> BankFit<B> {
        at_least_one("k of local scaling", self.k)?;
        let [bank, _] = DirectedScores::pair(("bank", bank.scores()), test, direction)?;
        let items = self.widths(&bank.best_queries(self.k)?)?;
        cosines("test", test)?;
        let items = bank.finite("item", "distance to its nearest queries", items)?;
        Ok(Correction::new(direction, Widths { form: self.form, items }))
    }

    /// σ(j) or μ(j) from the nearest queries of every item: among them are the largest scores of the bank.
    ///
    /// # Errors
    /// If a score is above 1 by more than rounding.
    pub(crate) fn widths(&self, nearest: &TopK) -> Result<Vec<f64>> {
        let largest = |item| nearest.scores(item).first().copied();
        let largest = (0..nearest.queries()).filter_map(largest);
        cosine("bank", largest.fold(f32::NEG_INFINITY, f32::max))?;
        Ok((0..nearest.queries()).map(|item| self.width(nearest.scores(item))).collect())
    }

    /// σ or μ from the scores of the nearest neighbours, nearest first.
    fn width(&self, nearest: &[f32]) -> f64 {
        match self.form {
            LocalForm::LocalScaling => distance(nearest[nearest.len() - 1]),
            LocalForm::Nicdm => {
                nearest.iter().map(|&s| distance(s)).sum::<f64>() / nearest.len() as f64
            }
        }
    }
}

/// The smallest distance.
const FLOOR: f64 = 1e-12;

fn distance(score: f32) -> f64 {
    (1.0 - f64::from(score)).max(FLOOR)
}

/// # Errors
/// If a score is above 1 by more than rounding, and thus not a cosine.
fn cosines(name: &str, scores: &dyn Scored) -> Result<()> {
    cosine(name, visit(scores, &Maxima)?.images.into_iter().fold(f32::NEG_INFINITY, f32::max))
}

fn cosine(name: &str, largest: f32) -> Result<()> {
    Error::unless(largest <= 1.0 + 1e-3, name, "cosines, because distances are 1 − s", largest)
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Widths {
    form: LocalForm,
    items: Vec<f64>,
}

impl Widths {
    /// # Errors
    /// If a width is not one that a fit gives.
    pub(crate) fn check(&self) -> Result<()> {
        let expected = "a finite number of at least 1e-12";
        check_values("items of the correction, value", &self.items, FLOOR, expected)
    }
}

impl Rescore for Widths {
    fn rescore(&self, _query: usize, item: usize, score: f32) -> f64 {
        let (d, item) = (distance(score).ln(), self.items[item].ln());
        match self.form {
            LocalForm::LocalScaling => item - 2.0 * d,
            LocalForm::Nicdm => item / 2.0 - d,
        }
    }

    fn items(&self) -> usize {
        self.items.len()
    }

    fn check_scores(&self, scores: &dyn Scored) -> Result<()> {
        cosines("scores", scores)
    }

    fn of_query(&self, scores: &[f32]) -> Result<Vec<f64>> {
        cosine("scores of a query", scores.iter().copied().fold(f32::NEG_INFINITY, f32::max))?;
        Ok(scores.iter().enumerate().map(|(item, &score)| self.rescore(0, item, score)).collect())
    }
}

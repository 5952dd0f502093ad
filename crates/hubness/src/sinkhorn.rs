//! Sinkhorn normalisation: entropic optimal transport between queries and items.

use std::f64::consts::LN_2;

use itm_core::scored::Scored;
use serde::{Deserialize, Serialize};

use crate::directed::{DirectedScores, positive};
use crate::{
    Affine, Bank, Correction, Direction, Error, Knowledge, Result, TestQueries, Transductive,
};

/// Sinkhorn's iteration in the log domain: every query and every item gets an equal share of all matches.
///
/// ```text
/// f(i) = ε·[ −log p − log Σⱼ exp((x(i, j) + g(j))/ε) ]
/// g(j) = ε·[ −log m − log Σᵢ exp((x(i, j) + f(i))/ε) ]        one iteration: f, then g; both begin at 0
/// P(i, j) = exp((x(i, j) + f(i) + g(j))/ε)                    its rows sum to 1/p, its columns to 1/m
/// u(q, j) = s(q, j)/ε + g(j)/ε + log m
/// ```
///
/// | symbol | here               | shape                                             |
/// |--------|--------------------|---------------------------------------------------|
/// | x      | `bank.scores()`    | p bank queries × m items                          |
/// | ε      | `epsilon`          | 0.01..0.1 for cosines                             |
/// | f, g   | `SinkhornFit::{queries, items}` | `[p]`, `[m]`; up to a constant, `f + t` and `g − t` |
///
/// Corrected scores are divided by ε and shifted by a constant, so that ties are exact to the last bit:
/// with a single bank query, `g(j)` is `−x(0, j)` plus a constant. The fit makes one pass over the scores
/// for each half of an iteration and keeps O(p + m).
///
/// # Departures
/// The textbook begins with f. [`SinkhornOrder::ItemFirst`] has one step of g before that; without
/// iterations, it is the inverted softmax with β = 1/ε.
///
/// ```
/// use hubness::{Direction, ScoreMatrix, Sinkhorn, TestQueries};
///
/// let scores = ScoreMatrix::from_rows([[0.9, 0.3, 0.2], [0.7, 0.6, 0.1], [0.8, 0.2, 0.7]]);
/// let sinkhorn = Sinkhorn { epsilon: 0.2, ..Sinkhorn::default() };
/// let fit = sinkhorn.fit(&TestQueries(&scores), Direction::I2t)?;
/// let fair = fit.correction.apply(&scores)?;
/// assert_eq!([0, 1, 2].map(|i| fair.ranking(i)[0]), [0, 1, 2]);
/// assert!(fit.row_error < 1e-3, "after {} iterations", fit.iterations);
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sinkhorn {
    /// Regularisation, ε, in the units of the scores.
    pub epsilon: f64,
    /// Largest number of iterations.
    pub iterations: usize,
    /// Stops once no row of P is off by more than this share of its mass; with 0, once no row is off at all.
    pub tolerance: f64,
    /// Which potential comes first.
    pub order: SinkhornOrder,
}

/// Which potential Sinkhorn's iteration begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkhornOrder {
    /// g, then f, g, f, g, …: one more step of g than iterations.
    #[default]
    ItemFirst,
    /// f, g, f, g, …: the order of the textbook.
    QueryFirst,
}

/// The result of [`Sinkhorn::fit`].
#[derive(Debug)]
pub struct SinkhornFit<K> {
    /// The correction.
    pub correction: Correction<K>,
    /// Iterations made.
    pub iterations: usize,
    /// `maxᵢ |p·Σⱼ P(i, j) − 1|` at the end: how far rows are from their mass. Columns are exact.
    pub row_error: f64,
    /// Potentials of the bank queries, f, in the units of the scores.
    pub queries: Vec<f64>,
    /// Potentials of the items, g.
    pub items: Vec<f64>,
}

/// The result of [`Sinkhorn::fit_both`].
#[derive(Debug)]
pub struct SinkhornFits {
    /// Images are queries.
    pub i2t: SinkhornFit<Transductive>,
    /// Texts are queries: from the same potentials, after one more step of f, which makes the images exact.
    pub t2i: Correction<Transductive>,
}

impl Default for Sinkhorn {
    fn default() -> Self {
        let order = SinkhornOrder::ItemFirst;
        Self { epsilon: 0.03, iterations: 20, tolerance: 1e-3, order }
    }
}

impl Sinkhorn {
    /// Fits on a bank: the test queries, or others.
    ///
    /// # Errors
    /// If the bank is empty, ε is not above 0 and below 1e200, the tolerance is negative or NaN, or all
    /// scores of a query or item are −∞.
    pub fn fit<B: Bank>(
        &self,
        bank: &B,
        direction: Direction,
    ) -> Result<SinkhornFit<B::Knowledge>> {
        let problem = self.problem(bank.scores(), None, direction)?;
        Ok(problem.solve(self)?.0)
    }

    /// Fits on a bank of queries and a bank of items: bank queries that match no test item can match a bank
    /// item instead.
    ///
    /// `items` holds the scores of the bank's queries against held-out items, so a scorer without
    /// embeddings works too. All items, of the bank and of the test, have the same mass.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), or if the two banks have different numbers of queries.
    pub fn fit_with_items<B: Bank>(
        &self,
        bank: &B,
        items: &dyn Scored,
        direction: Direction,
    ) -> Result<SinkhornFit<B::Knowledge>> {
        Ok(self.problem(bank.scores(), Some(items), direction)?.solve(self)?.0)
    }

    /// Both directions from one iteration over the test scores.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn fit_both(&self, test: &TestQueries<'_>) -> Result<SinkhornFits> {
        let problem = self.problem(test.scores(), None, Direction::I2t)?;
        let (i2t, rows) = problem.solve(self)?;
        let map = Affine::of_items(problem.beta, rows);
        Ok(SinkhornFits { i2t, t2i: Correction::new(Direction::T2i, map) })
    }

    fn problem<'a>(
        &self,
        scores: &'a dyn Scored,
        others: Option<&'a dyn Scored>,
        direction: Direction,
    ) -> Result<TransportProblem<'a>> {
        positive("ε of Sinkhorn", self.epsilon)?;
        positive("1/ε of Sinkhorn", 1.0 / self.epsilon)?;
        if self.tolerance.is_nan() || self.tolerance < 0.0 {
            let expected = "a number, 0 or more";
            return Err(Error::invalid("tolerance of Sinkhorn", expected, self.tolerance));
        }
        let bank = DirectedScores::new("bank", scores, direction)?;
        let others =
            others.map(|others| DirectedScores::new("item bank", others, direction)).transpose()?;
        if let Some(others) = &others
            && others.queries() != bank.queries()
        {
            let expected = format!("the bank's {} queries", bank.queries());
            return Err(Error::invalid("item bank", expected, others.queries()));
        }
        Ok(TransportProblem { bank, others, direction, beta: 1.0 / self.epsilon })
    }
}

/// The rows and columns to balance. The potentials here are divided by ε.
struct TransportProblem<'a> {
    bank: DirectedScores<'a>,
    others: Option<DirectedScores<'a>>,
    direction: Direction,
    beta: f64,
}

impl TransportProblem<'_> {
    /// The fit, and the log-sums of the rows under its g: one more step of f.
    fn solve<K: Knowledge>(&self, options: &Sinkhorn) -> Result<(SinkhornFit<K>, Vec<f64>)> {
        let Sinkhorn { iterations, tolerance, order, .. } = *options;
        let mut f = vec![0.0; self.bank.queries()];
        let mut columns = match order {
            SinkhornOrder::ItemFirst => self.columns(&f)?,
            SinkhornOrder::QueryFirst => self.at_rest(),
        };
        let mut rows = self.rows(&columns)?;
        let mut made = 0;
        // After a step of g, the row error needs only the next f, and no extra pass.
        let mut error = row_error(&f, &self.f(&rows));
        while made < iterations {
            let begun = made > 0 || order == SinkhornOrder::ItemFirst;
            if begun && error <= tolerance {
                break;
            }
            f = self.f(&rows);
            columns = self.columns(&f)?;
            rows = self.rows(&columns)?;
            error = row_error(&f, &self.f(&rows));
            made += 1;
        }
        let epsilon = options.epsilon;
        let items = self.g(&columns.items).into_iter().map(|g| epsilon * g).collect();
        let map = Affine::of_items(self.beta, columns.items);
        let correction = Correction::new(self.direction, map);
        let queries = f.into_iter().map(|f| epsilon * f).collect();
        Ok((SinkhornFit { correction, iterations: made, row_error: error, queries, items }, rows))
    }

    fn columns_in_all(&self) -> usize {
        self.bank.items() + self.others.as_ref().map_or(0, DirectedScores::items)
    }

    /// Columns whose g is 0.
    fn at_rest(&self) -> ColumnSums {
        let sums = |columns| vec![-(self.columns_in_all() as f64).ln(); columns];
        let others = self.others.as_ref().map_or(0, DirectedScores::items);
        ColumnSums { items: sums(self.bank.items()), others: sums(others) }
    }

    /// Log-sums of the columns under f.
    fn columns(&self, f: &[f64]) -> Result<ColumnSums> {
        let items = self.bank.shifted_item_sums(self.beta, f.to_vec())?;
        let others = match &self.others {
            Some(others) => others.shifted_item_sums(self.beta, f.to_vec())?,
            None => Vec::new(),
        };
        Ok(ColumnSums { items, others })
    }

    /// Log-sums of the rows under g.
    fn rows(&self, columns: &ColumnSums) -> Result<Vec<f64>> {
        let mut rows = self.bank.query_sums(self.beta, self.g(&columns.items))?;
        if let Some(others) = &self.others {
            let more = others.query_sums(self.beta, self.g(&columns.others))?;
            rows.iter_mut().zip(more).for_each(|(row, more)| *row = log_add(*row, more));
        }
        Ok(rows)
    }

    /// The step of f. A single row has a constant potential; it is exactly 0, so that ties stay ties.
    fn f(&self, rows: &[f64]) -> Vec<f64> {
        let p = rows.len();
        if p == 1 {
            return vec![0.0];
        }
        rows.iter().map(|sum| -(p as f64).ln() - sum).collect()
    }

    /// The step of g for some of the columns. A single column also has a constant potential.
    fn g(&self, columns: &[f64]) -> Vec<f64> {
        let m = self.columns_in_all();
        if m == 1 && self.bank.queries() > 1 {
            return vec![0.0];
        }
        columns.iter().map(|sum| -(m as f64).ln() - sum).collect()
    }
}

/// Log-sums of the columns: of the test items, and of the bank's items.
struct ColumnSums {
    items: Vec<f64>,
    others: Vec<f64>,
}

/// `maxᵢ |p·Σⱼ P(i, j) − 1|`: `f − next` is the logarithm of `p·Σⱼ P(i, j)`.
fn row_error(f: &[f64], next: &[f64]) -> f64 {
    f.iter().zip(next).map(|(f, next)| (f - next).exp_m1().abs()).fold(0.0, f64::max)
}

/// `log(eᵃ + eᵇ)`.
fn log_add(a: f64, b: f64) -> f64 {
    let (more, less) = if a > b { (a, b) } else { (b, a) };
    if more == less { more + LN_2 } else { more + (less - more).exp().ln_1p() }
}

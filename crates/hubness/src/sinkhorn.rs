//! Sinkhorn normalisation: entropic optimal transport between queries and items.

use crate::directed::{DirectedScores, positive};
use crate::{Affine, Bank, Correction, Direction, Error, Result};

/// Sinkhorn's iteration in the log domain: every query and every item gets an equal share of all matches.
///
/// ```text
/// f(i) = ε·[ −log p − log Σⱼ exp((x(i, j) + g(j))/ε) ]
/// g(j) = ε·[ −log m − log Σᵢ exp((x(i, j) + f(i))/ε) ]        first g with f = 0; one iteration: f, then g
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
/// The textbook begins with f. Here one step of g comes before that; without iterations, this is the inverted softmax with
/// β = 1/ε.
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sinkhorn {
    /// Regularisation, ε, in the units of the scores.
    pub epsilon: f64,
    /// Largest number of iterations.
    pub iterations: usize,
    /// Stops once no row of P is off by more than this share of its mass; with 0, once no row is off at all.
    pub tolerance: f64,
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

impl Default for Sinkhorn {
    fn default() -> Self {
        Self { epsilon: 0.03, iterations: 20, tolerance: 1e-3 }
    }
}

impl Sinkhorn {
    /// The most iterations that a configuration may ask for.
    pub(crate) const MOST_ITERATIONS: usize = 1_000_000;

    /// Fits on a bank: the test queries, or others.
    ///
    /// # Errors
    /// If the bank is empty, ε is not above 0 and below 1e200, the tolerance is negative or NaN, there are more than 1,000,000 iterations, or all
    /// scores of a query or item are −∞.
    pub fn fit<B: Bank>(
        &self,
        bank: &B,
        direction: Direction,
    ) -> Result<SinkhornFit<B::Knowledge>> {
        let Sinkhorn { epsilon, iterations, tolerance } = *self;
        positive("ε of Sinkhorn", epsilon)?;
        positive("1/ε of Sinkhorn", 1.0 / epsilon)?;
        let most = Self::MOST_ITERATIONS;
        let expected = format_args!("at most {most}");
        Error::unless(iterations <= most, "iterations of Sinkhorn", expected, iterations)?;
        let expected = "a number, 0 or more"; // NaN is none
        Error::unless(tolerance >= 0.0, "tolerance of Sinkhorn", expected, tolerance)?;
        let beta = 1.0 / epsilon;
        let bank = DirectedScores::new("bank", bank.scores(), direction)?;
        // The potentials here are divided by ε. A single row has a constant potential, exactly 0, so that ties stay ties; so
        // has a single column.
        let (p, m) = (bank.queries(), bank.items());
        let f_of = |rows: &[f64]| if p == 1 { vec![0.0] } else { potentials(rows) };
        let single = m == 1 && p > 1;
        let g_of = |columns: &[f64]| if single { vec![0.0] } else { potentials(columns) };
        let (mut f, mut made) = (vec![0.0; p], 0);
        let (columns, error) = loop {
            let columns = bank.shifted_item_sums(beta, f.clone())?;
            if single && made == 0 {
                f = vec![-columns[0]; p]; // g is 0 for a single item, so f takes its constant
            }
            // After a step of g, the row error needs only the next f, and no extra pass.
            let next = f_of(&bank.query_sums(beta, g_of(&columns))?);
            let error = row_error(&f, &next);
            if made == iterations || error <= tolerance {
                break (columns, error);
            }
            (f, made) = (next, made + 1);
        };
        let scaled = |values: Vec<f64>| values.into_iter().map(|x| epsilon * x).collect();
        let (queries, items) = (scaled(f), scaled(g_of(&columns)));
        let correction = Correction::new(direction, Affine::of_items(beta, columns));
        Ok(SinkhornFit { correction, iterations: made, row_error: error, queries, items })
    }
}

/// One step of a side: its potentials, from the log-sums of its rows or columns.
fn potentials(sums: &[f64]) -> Vec<f64> {
    let share = (sums.len() as f64).ln();
    sums.iter().map(|sum| -share - sum).collect()
}

/// `maxᵢ |p·Σⱼ P(i, j) − 1|`: `f − next` is the logarithm of `p·Σⱼ P(i, j)`.
fn row_error(f: &[f64], next: &[f64]) -> f64 {
    f.iter().zip(next).map(|(f, next)| (f - next).exp_m1().abs()).fold(0.0, f64::max)
}

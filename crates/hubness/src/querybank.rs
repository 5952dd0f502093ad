//! Query-bank normalisation (QB-Norm): the dynamic inverted softmax.

use itm_core::scored::Scored;

use crate::directed::{DirectedScores, at_least_one, positive};
use crate::{Affine, Bank, BankFit, Correction, Direction, Result};

/// Query-bank normalisation by the dynamic inverted softmax (CVPR 2022).
///
/// ```text
/// L(j) = log Σ_b exp(β·z(b, j))
/// A    = { j : j among the k best items of some bank query b }
/// u(q, j) = β·s(q, j) − L(j)      if q's best item is in A (or not `dynamic`)
/// u(q, j) = β·s(q, j)             else
/// ```
///
/// | symbol | here            | shape                |
/// |--------|-----------------|----------------------|
/// | z      | `bank.scores()` | bank queries × items |
/// | s      | `test`          | queries × items      |
/// | β, k   | `beta`, `k`     |                      |
///
/// From the test, a `dynamic` correction uses only each query's best item; any other uses nothing. If it is not
/// `dynamic` and the bank is the test queries, it is the inverted softmax.
///
/// # Departures
/// The authors' program writes into the caller's array: ratios into active rows, while raw similarities stay
/// in the others. It takes no maximum out of the sums, so that f32 overflows near β·s = 88. Here scores are
/// logarithms of these ratios, in f64. β multiplies the scores as they are: for logits of scale 100, take
/// β/100 (the program's 1/1.99 is for such logits).
///
/// ```
/// use hubness::{Direction, HeldOutBank, QueryBank, ScoreMatrix};
///
/// let bank = ScoreMatrix::from_rows([[0.9, 0.2, 0.1], [0.8, 0.1, 0.2]]); // item 0 is a hub
/// let test = ScoreMatrix::from_rows([[0.6, 0.5, 0.1], [0.1, 0.2, 0.7]]);
/// let fit = QueryBank::default().fit(&HeldOutBank(&bank), &test, Direction::I2t)?;
/// assert_eq!(fit.apply(&test)?.ranking(0), [1, 2, 0]); // its best item is active
/// assert_eq!(fit.apply(&test)?.ranking(1), [2, 1, 0]); // as it was
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryBank {
    /// Inverse temperature, β.
    pub beta: f64,
    /// How many items a bank query makes active.
    pub k: usize,
    /// Whether only rows whose best item is active are corrected; else all rows are.
    pub dynamic: bool,
}

impl Default for QueryBank {
    fn default() -> Self {
        Self { beta: 20.0, k: 1, dynamic: true }
    }
}

impl QueryBank {
    /// Fits on a bank; of the test scores only each query's best item is needed. Where one query of the bank makes nearly the whole sum,
    /// the scores have fewer digits than the scores of [`inverted_softmax`](crate::inverted_softmax).
    ///
    /// # Errors
    /// If bank or test are empty or have different items, β is not above 0 and below 1e200, k is 0, or a
    /// sum is not finite.
    pub fn fit<B: Bank>(&self, bank: &B, test: &dyn Scored, direction: Direction) -> BankFit<B> {
        positive("β of QB-Norm", self.beta)?;
        at_least_one("k of QB-Norm", self.k)?;
        let [bank, test] = DirectedScores::pair(("bank", bank.scores()), test, direction)?;
        let sums = bank.item_sums(self.beta)?;
        if !self.dynamic {
            return Ok(Correction::new(direction, Affine::of_items(self.beta, sums)));
        }
        let active = active_items(&bank, self.k)?;
        let by_best: Vec<u8> = active.into_iter().map(|active| u8::from(!active)).collect();
        let groups = best_items(&test)?.into_iter().map(|item| by_best[item]).collect();
        let items = vec![sums, vec![0.0; test.items()]];
        let map = Affine { scale: self.beta, items, groups, by_best, ..Affine::default() };
        Ok(Correction::new(direction, map))
    }
}

/// Whether an item is among the `k` best of some query of a bank.
pub(crate) fn active_items(bank: &DirectedScores<'_>, k: usize) -> Result<Vec<bool>> {
    let best = bank.best_items(k)?;
    let mut active = vec![false; bank.items()];
    for query in 0..bank.queries() {
        best.items(query).iter().for_each(|&item| active[item as usize] = true);
    }
    Ok(active)
}

/// The best item of every query.
pub(crate) fn best_items(test: &DirectedScores<'_>) -> Result<Vec<usize>> {
    let best = test.best_items(1)?;
    Ok((0..test.queries()).map(|query| best.items(query)[0] as usize).collect())
}

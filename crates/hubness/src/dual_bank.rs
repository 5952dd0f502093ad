//! DBNorm: inverted softmax over a bank of queries and a bank of items.

use itm_core::scored::Scored;

use crate::directed::{DirectedScores, at_least_one};
use crate::querybank::{active_items, best_items};
use crate::{Affine, Bank, BankFit, Correction, Direction, Error, Result};

/// Normalisation by two banks (EMNLP 2023): Dual-IS, and Dual-DIS if `dynamic`.
///
/// ```text
/// LQ(j) = log Σ_b exp(β₁·z(b, j))      LG(j) = log Σ_h exp(β₂·g(h, j))
/// Dual-IS:   u(q, j) = (β₁ + β₂)·s(q, j) − LQ(j) − LG(j)
/// Dual-DIS:  u(q, j) = (β₁ + β₂)·s(q, j) − [top(q) ∈ AQ]·LQ(j) − [top(q) ∈ AG]·LG(j)
/// ```
///
/// | symbol  | here                         | shape                                       |
/// |---------|------------------------------|---------------------------------------------|
/// | z       | `queries.scores()`           | bank queries × items                        |
/// | g       | `items`                      | bank items × items, within one modality     |
/// | s       | `test`                       | queries × items                             |
/// | β₁, β₂  | `query_beta`, `item_beta`    |                                             |
/// | AQ, AG  | `query_k`, `item_k` best     | items that some member of the bank is near  |
///
/// Items are always the test items, so only the query bank decides what the correction has seen of other
/// test queries. Scorers without embeddings (cross-attention) have no `g`, and cannot use DBNorm.
///
/// If the item bank or `item_k` is large, AG holds nearly all items, and the item factor of Dual-DIS is active
/// for nearly every query, as in Dual-IS.
///
/// # Departures
/// The authors' program scores the bank instead of the test queries, and its dynamic mode overwrites the
/// array that its second factor starts from; here both factors are independent. A factor that is not active
/// keeps `exp(β·s)`; in the program it becomes the raw similarity. The defaults come from the program and suit
/// scores with a logit scale; for cosines, choose both β in 5..100 on validation.
///
/// ```
/// use hubness::{Direction, DualBank, HeldOutBank, ScoreMatrix};
///
/// let test = ScoreMatrix::from_rows([[0.6, 0.5], [0.1, 0.7]]);
/// let bank = ScoreMatrix::from_rows([[0.9, 0.2], [0.8, 0.1]]);
/// let texts = ScoreMatrix::from_rows([[0.8, 0.1], [0.1, 0.2]]); // other texts against the texts of the test
/// let dual = DualBank { query_beta: 20.0, item_beta: 20.0, ..DualBank::default() };
/// let fit = dual.fit(&HeldOutBank(&bank), &texts, &test, Direction::I2t)?;
/// assert_eq!(fit.apply(&test)?.ranking(0), [1, 0]);
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DualBank {
    /// Inverse temperature of the query bank, β₁.
    pub query_beta: f64,
    /// Inverse temperature of the item bank, β₂.
    pub item_beta: f64,
    /// How many items a bank query makes active.
    pub query_k: usize,
    /// How many items a bank item makes active.
    pub item_k: usize,
    /// Whether a factor holds only for queries whose best item it makes active (Dual-DIS); else it holds for
    /// all queries (Dual-IS).
    pub dynamic: bool,
}

impl Default for DualBank {
    fn default() -> Self {
        Self { query_beta: 1.0 / 1.99, item_beta: 3.0, query_k: 1, item_k: 1, dynamic: false }
    }
}

impl DualBank {
    /// Fits on both banks: `items` has bank items against the test items, and they take the place of the queries in the matrix.
    /// The test scores are needed only if `dynamic`, for each query's best item.
    ///
    /// # Errors
    /// If a bank or the test is empty, they have different items, a β is negative or not finite or both are
    /// 0, a k is 0, or a sum is not finite.
    pub fn fit<B: Bank>(
        &self,
        queries: &B,
        items: &dyn Scored,
        test: &dyn Scored,
        direction: Direction,
    ) -> BankFit<B> {
        self.check()?;
        let [queries, test] =
            DirectedScores::pair(("query bank", queries.scores()), test, direction)?;
        let items = DirectedScores::new("item bank", items, direction)?;
        items.expect_items(test.items())?;
        // With β = 0 every term is 1, and any constant is equivalent.
        let factor = |bank: &DirectedScores<'_>, beta: f64, k: usize| -> Result<_> {
            let sums = if beta == 0.0 { vec![0.0; bank.items()] } else { bank.item_sums(beta)? };
            Ok((sums, active_items(bank, k)?))
        };
        let (of_queries, by_queries) = factor(&queries, self.query_beta, self.query_k)?;
        let (of_items, by_items) = factor(&items, self.item_beta, self.item_k)?;
        let scale = self.query_beta + self.item_beta;
        let both = of_queries.iter().zip(&of_items).map(|(q, g)| q + g).collect();
        if !self.dynamic {
            return Ok(Correction::new(direction, Affine::of_items(scale, both)));
        }
        // Four groups of queries: bit 0 is set where the query factor holds, bit 1 where the item factor does.
        let active = by_queries.into_iter().zip(by_items);
        let by_best: Vec<u8> = active.map(|(q, i)| u8::from(q) + 2 * u8::from(i)).collect();
        let groups = best_items(&test)?.into_iter().map(|item| by_best[item]).collect();
        let items = vec![vec![0.0; test.items()], of_queries, of_items, both];
        let map = Affine { scale, items, groups, by_best, ..Affine::default() };
        Ok(Correction::new(direction, map))
    }

    fn check(&self) -> Result<()> {
        for (name, beta) in [("β₁", self.query_beta), ("β₂", self.item_beta)] {
            let (fits, place) = ((0.0..1e200).contains(&beta), format_args!("{name} of DBNorm"));
            Error::unless(fits, place, "a number from 0, below 1e200", beta)?;
        }
        let sum = self.query_beta + self.item_beta;
        Error::unless(sum != 0.0, "β₁ + β₂ of DBNorm", "a number above 0", 0)?;
        at_least_one("k of DBNorm's query bank", self.query_k)?;
        at_least_one("k of DBNorm's item bank", self.item_k)
    }
}

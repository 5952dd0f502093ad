//! DBNorm: inverted softmax over a bank of queries and a bank of items.

use std::ops::Range;

use itm_core::scored::Scored;
use itm_core::tiles::{Consumer, Tile};
use serde::{Deserialize, Serialize};

use crate::directed::{DirectedScores, WithoutSelf, at_least_one};
use crate::querybank::{active_items, best_items};
use crate::rescore::{best_of, check_values};
use crate::{Affine, Bank, Correction, Direction, Error, Rescore, Result};

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
/// keeps `exp(β·s)`; see [`Inactive`] for the program's reading. The defaults come from the program and suit
/// scores with a logit scale; for cosines, choose both β in 5..100 on validation.
///
/// ```
/// use hubness::{Direction, DualBank, HeldOutBank, ItemBank, ScoreMatrix};
///
/// let test = ScoreMatrix::from_rows([[0.6, 0.5], [0.1, 0.7]]);
/// let bank = ScoreMatrix::from_rows([[0.9, 0.2], [0.8, 0.1]]);
/// let texts = ScoreMatrix::from_rows([[1.0, 0.1], [0.1, 1.0]]); // the test's texts against themselves
/// let dual = DualBank { query_beta: 20.0, item_beta: 20.0, ..DualBank::default() };
/// let items = ItemBank::TestItems(&texts);
/// let fit = dual.fit(&HeldOutBank(&bank), items, &test, Direction::I2t)?;
/// assert_eq!(fit.apply(&test)?.ranking(0), [1, 0]);
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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
    /// What happens to a factor that is not active.
    pub inactive: Inactive,
}

/// What happens to a factor of Dual-DIS for a query whose best item is not active.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inactive {
    /// It loses its bias and stays `exp(β·s)`.
    #[default]
    DropBias,
    /// It becomes the raw similarity, as in the authors' program. The corrected score is the logarithm of the
    /// product of both factors. All test scores must be above 0, because other scores would reverse an order.
    RawProduct,
}

/// A bank of items against the test items: the bank items take the place of the queries in the matrix.
#[derive(Clone, Copy)]
pub enum ItemBank<'a> {
    /// Items that are not in the test.
    HeldOut(&'a dyn Scored),
    /// The test items against themselves; no item counts for itself.
    TestItems(&'a dyn Scored),
}

impl Default for DualBank {
    fn default() -> Self {
        let (query_beta, item_beta) = (1.0 / 1.99, 3.0);
        let inactive = Inactive::DropBias;
        Self { query_beta, item_beta, query_k: 1, item_k: 1, dynamic: false, inactive }
    }
}

impl DualBank {
    /// Fits on both banks. The test scores are needed only if `dynamic`, for each query's best item; for the
    /// raw product, all of them must be positive.
    ///
    /// # Errors
    /// If a bank or the test is empty, they have different items, a β is negative or not finite or both are
    /// 0, a k is 0, a sum is not finite, a bank of test items has one item or is not square, or a score
    /// is not above 0 for the raw product.
    pub fn fit<B: Bank>(
        &self,
        queries: &B,
        items: ItemBank<'_>,
        test: &dyn Scored,
        direction: Direction,
    ) -> Result<Correction<B::Knowledge>> {
        self.check()?;
        let queries = DirectedScores::new("query bank", queries.scores(), direction)?;
        let test = DirectedScores::new("test", test, direction)?;
        queries.expect_items(test.items())?;
        let query_factor = Factor::fit(&queries, self.query_beta, self.query_k)?;
        let item_factor = match items {
            ItemBank::HeldOut(items) => {
                let items = DirectedScores::new("item bank", items, direction)?;
                items.expect_items(test.items())?;
                Factor::fit(&items, self.item_beta, self.item_k)?
            }
            ItemBank::TestItems(items) => {
                let (items, others) = (WithoutSelf(items), test.items() - 1);
                let items = DirectedScores::new("item bank", &items, direction)?;
                items.expect_items(test.items())?;
                if others == 0 || items.queries() != items.items() {
                    let shape = format!("{} × {}", items.queries(), items.items());
                    let expected = "two or more test items against themselves";
                    return Err(Error::invalid("item bank", expected, shape));
                }
                Factor::fit(&items, self.item_beta, self.item_k.min(others))?
            }
        };
        let map = self.combine(query_factor, item_factor, &test)?;
        if self.dynamic && self.inactive == Inactive::RawProduct {
            only_positive(&test)?;
            let betas = (self.query_beta, self.item_beta);
            return Ok(Correction::new(direction, RawProduct { betas, map }));
        }
        Ok(Correction::new(direction, map))
    }

    fn check(&self) -> Result<()> {
        for (name, beta) in [("β₁", self.query_beta), ("β₂", self.item_beta)] {
            if !(0.0..1e200).contains(&beta) {
                let place = format!("{name} of DBNorm");
                return Err(Error::invalid(place, "a finite number, 0 or more", beta));
            }
        }
        if self.query_beta + self.item_beta == 0.0 {
            return Err(Error::invalid("β₁ + β₂ of DBNorm", "a number above 0", 0));
        }
        at_least_one("k of DBNorm's query bank", self.query_k)?;
        at_least_one("k of DBNorm's item bank", self.item_k)
    }

    /// Four groups of queries: bit 0 is set where the query factor holds, bit 1 where the item factor does.
    fn combine(&self, query: Factor, item: Factor, test: &DirectedScores<'_>) -> Result<Affine> {
        let scale = self.query_beta + self.item_beta;
        let both = query.sums.iter().zip(&item.sums).map(|(q, g)| q + g).collect();
        if !self.dynamic {
            return Ok(Affine::of_items(scale, both));
        }
        let active = query.active.iter().zip(&item.active);
        let by_best: Vec<u8> = active.map(|(&q, &i)| u8::from(q) + 2 * u8::from(i)).collect();
        let groups = best_items(test)?.into_iter().map(|item| by_best[item]).collect();
        let items = vec![vec![0.0; test.items()], query.sums, item.sums, both];
        Ok(Affine { scale, items, groups, by_best, ..Affine::default() })
    }
}

/// The sums of one bank, and the items that it makes active.
struct Factor {
    sums: Vec<f64>,
    active: Vec<bool>,
}

impl Factor {
    fn fit(bank: &DirectedScores<'_>, beta: f64, k: usize) -> Result<Self> {
        // With β = 0 every term is 1, but a left-out score would give 0·(−∞) = NaN. Any constant is equivalent.
        let sums = if beta == 0.0 { vec![0.0; bank.items()] } else { bank.item_sums(beta)? };
        Ok(Self { sums, active: active_items(bank, k)? })
    }
}

/// The logarithm of the product of two factors. A factor that is not active is the score itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawProduct {
    betas: (f64, f64),
    map: Affine, // its groups say which factors hold
}

impl RawProduct {
    /// # Errors
    /// If a β is out of range, the parts of the map do not fit each other, or the map does not have the four groups of
    /// [`DualBank::combine`].
    pub(crate) fn check(&self) -> Result<()> {
        check_values("betas", &[self.betas.0, self.betas.1], 0.0, "a finite number, 0 or more")?;
        self.map.check()?;
        let Affine { items, groups, by_best, .. } = &self.map;
        if items.len() == 4 && !groups.is_empty() && !by_best.is_empty() {
            return Ok(());
        }
        let got = format!("{}, {}, {}", items.len(), groups.len(), by_best.len());
        let expected = "4 groups of items, a group for each query, a group for each best item";
        Err(Error::invalid("map of the correction", expected, got))
    }

    fn value(&self, group: u8, item: usize, score: f32) -> f64 {
        let s = f64::from(score);
        let raw = s.max(0.0).ln();
        let factor = |holds: bool, beta: f64| if holds { beta * s } else { raw };
        let product = factor(group & 1 != 0, self.betas.0) + factor(group & 2 != 0, self.betas.1);
        product - self.map.items[usize::from(group)][item]
    }
}

impl Rescore for RawProduct {
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64 {
        self.value(self.map.groups[query], item, score)
    }

    fn items(&self) -> usize {
        Rescore::items(&self.map)
    }

    fn queries(&self) -> Option<usize> {
        Some(self.map.groups.len())
    }

    fn of_query(&self, scores: &[f32]) -> Result<Vec<f64>> {
        above_zero("scores of a query", scores.iter().copied().fold(f32::INFINITY, f32::min))?;
        let group = self.map.by_best[best_of(scores)];
        Ok(scores.iter().enumerate().map(|(item, &score)| self.value(group, item, score)).collect())
    }
}

/// # Errors
/// If a score is 0 or less.
fn only_positive(test: &DirectedScores<'_>) -> Result<()> {
    above_zero("test", test.visit(&Lowest)?)
}

fn above_zero(name: &str, lowest: f32) -> Result<()> {
    if lowest > 0.0 {
        return Ok(());
    }
    Err(Error::invalid(name, "scores above 0, because the raw product takes logarithms", lowest))
}

/// The smallest score of all.
struct Lowest;

impl Consumer for Lowest {
    type State = f32;
    type Output = f32;

    fn start(&self, _images: Range<usize>, _texts: Range<usize>) -> f32 {
        f32::INFINITY
    }

    fn tile(&self, lowest: &mut f32, tile: &Tile<'_>) {
        *lowest = tile.rows().flat_map(|(_, row)| row).fold(*lowest, |least, &s| least.min(s));
    }

    fn merge(&self, total: &mut f32, lane: f32) {
        *total = total.min(lane);
    }

    fn finish(&self, total: f32) -> f32 {
        total
    }
}

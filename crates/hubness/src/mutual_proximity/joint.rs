//! Mutual proximity by counting matched pairs.

use rayon::prelude::*;

use super::check_entries;
use crate::side::Side;
use crate::{Bank, Correction, Direction, Error, Rescore, Result, Scores};

/// Mutual proximity (JMLR 2012) in its joint form: the third objects are matched pairs of a query and an
/// item, so that both ends can be compared with them.
///
/// ```text
/// u(q, j) = #{ l : s(q, y(l)) < s(q, j) and s(x(l), j) < s(q, j) } / b
/// ```
///
/// | symbol     | here            | shape                              |
/// |------------|-----------------|------------------------------------|
/// | s(x(l), j) | `bank.scores()` | b bank queries × items             |
/// | s(q, y(l)) | `bank_items`    | queries × b bank items, `y(l)` the match of `x(l)` |
///
/// `s(q, j)` breaks ties of equal counts: its place among all f32, below 1, is added to the count. The fit
/// keeps all scores of both banks, 4 bytes each. Each corrected score costs O(b).
///
/// ```
/// use hubness::{Direction, HeldOutBank, JointProximity, OwnPairs, ScoreMatrix};
///
/// let bank = ScoreMatrix::from_rows([[0.7, 0.1], [0.2, 0.2]]); // two bank images, two test texts
/// let bank_items = ScoreMatrix::from_rows([[0.3, 0.4]]); // one test image, two bank texts
/// let fit = JointProximity::default().fit(
///     &HeldOutBank(&bank),
///     &bank_items,
///     OwnPairs::None,
///     Direction::I2t,
/// )?;
/// // Text 0 at 0.6: pair 0 is nearer to it (0.7), pair 1 is farther on both sides: one of two.
/// assert!((0.5..1.0).contains(&fit.map().rescore(0, 0, 0.6)));
/// assert!((1.0..1.5).contains(&fit.map().rescore(0, 1, 0.5)));
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JointProximity {
    /// Largest number of scores to keep of each of the two banks; more are refused.
    pub most_entries: usize,
}

/// Which test queries are in the bank. The pair of such a query says nothing about that query and is left
/// out; b is then one less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnPairs<'a> {
    /// None of them.
    None,
    /// The pair of every query that has one.
    At(&'a [Option<usize>]),
}

impl Default for JointProximity {
    fn default() -> Self {
        Self { most_entries: 100_000_000 }
    }
}

impl JointProximity {
    /// Fits on matched pairs.
    ///
    /// # Errors
    /// If there are no queries, pairs or items, the two banks have different numbers of pairs or more scores
    /// than allowed, there are 2¹⁹ pairs or more (a count and a place of `s` would not fit into an f64),
    /// `own` has not one entry per query, or an entry is not a pair of the bank or is its only pair.
    pub fn fit<B: Bank>(
        &self,
        bank: &B,
        bank_items: &impl Scores,
        own: OwnPairs<'_>,
        direction: Direction,
    ) -> Result<Correction<B::Knowledge>> {
        let side = Side::new("bank", bank.scores(), direction)?;
        let test = Side::new("bank items", bank_items, direction)?;
        let (pairs, items, queries) = (side.queries(), side.items(), test.queries());
        if test.items() != pairs {
            let expected = format!("one for each of the bank's {pairs} queries");
            return Err(Error::invalid("bank items", expected, test.items()));
        }
        if pairs >= 1 << 19 {
            return Err(Error::invalid("bank", "fewer than 2¹⁹ matched pairs", pairs));
        }
        check_entries(self.most_entries, items.checked_mul(pairs))?;
        check_entries(self.most_entries, queries.checked_mul(pairs))?;
        let own = own_pairs(own, queries, pairs)?;
        let of_queries = all_rows(bank_items, direction, queries, pairs);
        let of_items = all_rows(bank.scores(), direction.reversed(), items, pairs);
        Ok(Correction::new(direction, Joint { pairs, of_queries, of_items, own }))
    }
}

fn own_pairs(own: OwnPairs<'_>, queries: usize, pairs: usize) -> Result<Vec<Option<usize>>> {
    let OwnPairs::At(own) = own else { return Ok(vec![None; queries]) };
    if own.len() != queries {
        let expected = format!("one entry for each of {queries} queries");
        return Err(Error::invalid("own pairs", expected, own.len()));
    }
    let most = if pairs == 1 { 0 } else { pairs }; // without the only pair there is nothing to count
    match own.iter().position(|own| own.is_some_and(|own| own >= most)) {
        None => Ok(own.to_vec()),
        Some(at) => {
            let place = format!("own pairs, query {at}");
            let expected = format!("one of {pairs} pairs, and not the only one");
            Err(Error::invalid(place, expected, own[at].unwrap_or(pairs)))
        }
    }
}

/// All scores, a row for each query of the direction.
fn all_rows(scores: &impl Scores, direction: Direction, count: usize, width: usize) -> Vec<f32> {
    const BATCH: usize = 64;
    let mut rows = vec![0.0; count * width];
    rows.par_chunks_mut(BATCH * width).enumerate().for_each(|(batch, out)| {
        let some: Vec<_> = (batch * BATCH..).take(out.len() / width).collect();
        out.copy_from_slice(&scores.rows(direction, &some));
    });
    rows
}

#[derive(Debug)]
struct Joint {
    pairs: usize,
    of_queries: Vec<f32>, // [queries, pairs]
    of_items: Vec<f32>,   // [items, pairs]
    own: Vec<Option<usize>>,
}

impl Rescore for Joint {
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64 {
        let row = &self.of_queries[query * self.pairs..][..self.pairs];
        let column = &self.of_items[item * self.pairs..][..self.pairs];
        let farther = |pair: usize| u32::from(row[pair] < score) & u32::from(column[pair] < score);
        let all: u32 = (0..self.pairs).map(farther).sum();
        let (count, pairs) = match self.own[query] {
            None => (all, self.pairs),
            Some(own) => (all - farther(own), self.pairs - 1),
        };
        (f64::from(count) + place(score)) / pairs as f64
    }

    fn items(&self) -> usize {
        self.of_items.len() / self.pairs
    }

    fn queries(&self) -> Option<usize> {
        Some(self.own.len())
    }
}

/// The place of a score among all f32, in 0..1: larger for larger scores, the same for both zeros.
fn place(score: f32) -> f64 {
    let bits = (score + 0.0).to_bits();
    let ordered = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
    f64::from(ordered) / 2f64.powi(32)
}

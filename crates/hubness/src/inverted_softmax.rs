//! Inverted softmax (IS), Eq. 5: how likely a query is, given the item.

use itm_core::scored::{Scored, visit};
use itm_core::tiles::{ExpSums, Maxima};
use itm_core::{Error, Result};
use rayon::prelude::*;

use crate::directed::positive;
use crate::{Affine, Bank, BankFit, Correction, Direction, Rescore, Transductive};

/// Whether the sum of the inverted softmax contains the query itself.
///
/// If `p` is the value of `Inclusive`, `Exclusive` has the value `p / (1 − p)`: both put all entries of a matrix into the
/// same order, so ranks, N_k and matchings are the same. Only values differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InvertedSoftmaxForm {
    /// Over all queries; the usual form.
    #[default]
    Inclusive,
    /// Over all other queries, as Eq. 5 prints it.
    Exclusive,
}

/// Inverted softmax over a bank of queries, as a logarithm.
///
/// ```text
/// u(q, j) = log p(q | j) = β·s(q, j) − L(j)      L(j) = log Σ_b exp(β·s(b, j)) over the queries b of the bank
/// ```
///
/// | symbol | here       | shape             |
/// |--------|------------|-------------------|
/// | s      | scores     | `[n, m]`          |
/// | β      | `beta`, 30 in the paper | > 0  |
/// | L      | item bias  | one value per item |
///
/// The sum runs over queries; a sum over items would be one number per query and change nothing. The sum is computed in f64
/// with its maximum taken out. Where one query makes nearly the whole sum, `log p` is a tiny difference of two large numbers.
/// Such items are computed again in two parts, so that `log p` keeps its digits and order ([`Affine::fine`]).
///
/// # Errors
/// If β is not above 0 and below 1e200, the bank has fewer than two queries, or a score is not finite.
///
/// ```
/// use hubness::{Direction, ScoreMatrix, TestQueries, inverted_softmax};
///
/// let scores = ScoreMatrix::from_rows([[0.9, 0.3], [0.7, 0.6]]); // text 0 is a hub
/// let fair = inverted_softmax(&TestQueries(&scores), Direction::I2t, 30.0)?.apply(&scores)?;
/// assert_eq!([0, 1].map(|image| fair.ranking(image)[0]), [0, 1]);
/// # Ok::<(), hubness::Error>(())
/// ```
pub fn inverted_softmax<B: Bank>(bank: &B, direction: Direction, beta: f64) -> BankFit<B> {
    positive("β", beta)?;
    let scores = bank.scores();
    check_queries(direction.queries(scores.images(), scores.texts()))?;
    let (sums, largest) = visit(scores, &(ExpSums::new(beta), Maxima))?;
    let items = direction.items(sums.images, sums.texts);
    let largest = direction.items(largest.images, largest.texts);
    Ok(Correction::new(direction, with_fine(scores, direction, beta, items, &largest)?))
}

/// A log-sum that exceeds its largest term by less than this has too few digits left for the other terms.
const DOMINATED: f64 = 1e-6;

/// `β·s − L(j)`. For items that one query dominates, `L` has two parts: the query's term, and `log(1 + others / this term)`.
pub(crate) fn with_fine(
    scores: &dyn Scored,
    direction: Direction,
    beta: f64,
    mut items: Vec<f64>,
    largest: &[f32],
) -> Result<Affine> {
    let near = |&j: &usize| items[j] - beta * f64::from(largest[j]) < DOMINATED;
    let dominated: Vec<_> = (0..items.len()).filter(near).collect();
    let mut fine = vec![0.0; if dominated.is_empty() { 0 } else { items.len() }];
    for (&item, others) in dominated.iter().zip(others(scores, direction, beta, &dominated)?) {
        items[item] = others.largest;
        fine[item] = (others.rest - others.largest).exp().ln_1p();
    }
    Ok(Affine { fine, ..Affine::of_items(beta, items) })
}

/// The largest term and the rest of some items' sums, from their whole columns.
fn others(
    scores: &dyn Scored,
    direction: Direction,
    beta: f64,
    items: &[usize],
) -> Result<Vec<LogSumParts>> {
    let queries = direction.queries(scores.images(), scores.texts());
    let mut all = Vec::with_capacity(items.len());
    direction.reversed().batches(scores, items, |_, columns| {
        all.par_extend(columns.par_chunks(queries).map(|column| LogSumParts::new(column, beta)));
    })?;
    Ok(all)
}

/// Inverted softmax of the test queries in either form. The exclusive form needs all scores of each item at once.
///
/// # Errors
/// As [`inverted_softmax`].
pub fn inverted_softmax_form(
    scores: &dyn Scored,
    direction: Direction,
    beta: f64,
    form: InvertedSoftmaxForm,
) -> Result<Correction<Transductive>> {
    if form == InvertedSoftmaxForm::Inclusive {
        return inverted_softmax(&crate::TestQueries(scores), direction, beta);
    }
    positive("β", beta)?;
    let (n, m) = (scores.images(), scores.texts());
    let queries = direction.queries(n, m);
    check_queries(queries)?;
    let items: Vec<usize> = (0..direction.items(n, m)).collect();
    let items = others(scores, direction, beta, &items)?;
    Ok(Correction::new(direction, Exclusive { beta, queries, items }))
}

/// Refuses a bank of a single query, which would be certain for every item, so that all would tie.
pub(crate) fn check_queries(queries: usize) -> Result<()> {
    Error::unless(queries >= 2, "inverted softmax", "a bank of at least 2 queries", queries)
}

/// `u(q, j) = β·s(q, j) − log Σ_{b ≠ q} exp(β·s(b, j))`.
#[derive(Debug)]
struct Exclusive {
    beta: f64,
    queries: usize,
    items: Vec<LogSumParts>,
}

/// An item's largest term and the sum of all other terms, so that no term is subtracted from a sum that it dominates.
#[derive(Debug, Clone, Copy)]
struct LogSumParts {
    query: usize,
    largest: f64,
    rest: f64, // log of the sum without the largest term
}

impl LogSumParts {
    fn new(column: &[f32], beta: f64) -> Self {
        let first = |best: usize, q: usize| if column[q] > column[best] { q } else { best };
        let query = (1..column.len()).fold(0, first);
        let terms =
            || (0..column.len()).filter(|&q| q != query).map(|q| beta * f64::from(column[q]));
        let most = terms().fold(f64::NEG_INFINITY, f64::max);
        let rest = most + terms().map(|z| (z - most).exp()).sum::<f64>().ln();
        Self { query, largest: beta * f64::from(column[query]), rest }
    }

    /// Log of the sum over all queries except `query`, whose term is `z`.
    fn without(&self, query: usize, z: f64) -> f64 {
        if query == self.query {
            return self.rest;
        }
        // e^z* + (e^rest − e^z): z is one of the terms of rest.
        let others = (self.rest - self.largest).exp() - (z - self.largest).exp();
        self.largest + others.max(0.0).ln_1p()
    }
}

impl Rescore for Exclusive {
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64 {
        let z = self.beta * f64::from(score);
        z - self.items[item].without(query, z)
    }

    fn items(&self) -> usize {
        self.items.len()
    }

    fn queries(&self) -> Option<usize> {
        Some(self.queries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ScoreMatrix, TestQueries, pass};
    use itm_core::Pairs;

    /// Worked by hand, β = 2: column 0 is (0.5, 0), so L = log(e¹ + e⁰) = 1.3132616875182228; column 1 is (0, 1):
    /// L = log(1 + e²) = 2.1269280110429727. Exclusive: only the other term.
    #[test]
    fn golden_two_by_two() {
        let s = ScoreMatrix::from_rows([[0.5, 0.0], [0.0, 1.0]]);
        let value = |form, direction, query, item| {
            let (image, text) =
                if direction == Direction::I2t { (query, item) } else { (item, query) };
            let is = inverted_softmax_form(&s, direction, 2.0, form).unwrap();
            is.map().rescore(query, item, s.row(image)[text])
        };
        use InvertedSoftmaxForm::{Exclusive, Inclusive};
        for direction in Direction::BOTH {
            for (form, query, item, want) in [
                (Inclusive, 0, 0, 1.0 - 1.313_261_687_518_222_8),
                (Inclusive, 1, 0, -1.313_261_687_518_222_8),
                (Inclusive, 0, 1, -2.126_928_011_042_972_7),
                (Exclusive, 0, 0, 1.0),  // e¹ / e⁰
                (Exclusive, 1, 0, -1.0), // e⁰ / e¹
                (Exclusive, 1, 1, 2.0),
            ] {
                let got = value(form, direction, query, item);
                assert!((got - want).abs() < 1e-15, "{form:?}, {query}, {item}: {got} for {want}");
            }
        }
    }

    /// Trap "IS exclusive form in f32": only image 0 is near text 0; its p is within 1e-17 of 1.
    #[test]
    fn trap_a_column_that_one_query_dominates() {
        let s = ScoreMatrix::from_rows([[1.0, 0.9, 0.2], [0.125, 0.5, 0.3], [0.0, 0.4, 0.9]]);
        let form = |form| inverted_softmax_form(&s, Direction::I2t, 100.0, form).unwrap();
        let (all, others) =
            (form(InvertedSoftmaxForm::Inclusive), form(InvertedSoftmaxForm::Exclusive));
        let order = |correction: &Correction<_>| {
            let value = |at: usize| correction.map().rescore(at / 3, at % 3, s.values()[at]);
            let mut order: Vec<_> = (0..9).collect();
            order.sort_by(|&a, &b| value(b).total_cmp(&value(a)));
            assert!((0..9).all(|at| value(at).is_finite()));
            order
        };
        assert_eq!(order(&all), order(&others));
        let far = others.map().rescore(0, 0, 1.0); // 100 · 1 − log(e^12.5 + e⁰)
        assert!((far - (100.0 - (12.5f64.exp() + 1.0).ln())).abs() < 1e-12);
    }

    /// Trap "IS normaliser over items instead of queries": that form could not change a rank.
    #[test]
    fn trap_the_sum_runs_over_queries() {
        let s = ScoreMatrix::from_rows([[0.9, 0.3, 0.2], [0.7, 0.6, 0.1], [0.8, 0.2, 0.7]]);
        let fair =
            inverted_softmax(&TestQueries(&s), Direction::I2t, 30.0).unwrap().apply(&s).unwrap();
        assert_eq!([0, 1, 2].map(|image| fair.ranking(image)[0]), [0, 1, 2]);
        assert_eq!([0, 1, 2].map(|image| s.ranking(image)[0]), [0, 0, 0]);
    }

    #[test]
    fn a_small_and_a_large_beta_differ() {
        let s = ScoreMatrix::from_rows([[0.9, 0.85, 0.2], [0.89, 0.6, 0.1], [0.3, 0.84, 0.7]]);
        let pairs = Pairs::uniform(3, 1);
        let ranks = |beta| {
            let [i2t, t2i] =
                Direction::BOTH.map(|d| inverted_softmax(&TestQueries(&s), d, beta).unwrap());
            pass::ranks(&s, &pairs, &i2t, &t2i).unwrap()
        };
        assert_ne!(ranks(1.0), ranks(100.0));
    }

    #[test]
    fn what_has_no_value_is_refused() {
        let s = ScoreMatrix::from_rows([[0.5, 0.25]]);
        for beta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = inverted_softmax(&TestQueries(&s), Direction::I2t, beta).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("β: expected a number above 0 and below 1e200, got {beta}")
            );
        }
        for form in [InvertedSoftmaxForm::Inclusive, InvertedSoftmaxForm::Exclusive] {
            let error = inverted_softmax_form(&s, Direction::I2t, 30.0, form).unwrap_err();
            let want = "inverted softmax: expected a bank of at least 2 queries, got 1";
            assert_eq!(error.to_string(), want);
            assert!(inverted_softmax_form(&s, Direction::T2i, 30.0, form).is_ok());
        }
    }
}

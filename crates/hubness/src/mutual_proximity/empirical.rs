//! Mutual proximity by counting, with rows and columns taken as independent.

use itm_core::scored::Scored;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::directed::DirectedScores;
use crate::{Bank, BankFit, Correction, Direction, Error, Rescore, Result};

/// Exact mutual proximity (JMLR 2012), with rows and columns taken as independent.
///
/// ```text
/// u(q, j) = F(q)·G(j)      F(q) = #{ j′ : s(q, j′) < s(q, j) } / m      G(j) = #{ b : z(b, j) < s(q, j) } / p
/// ```
///
/// | symbol | here            | shape                    |
/// |--------|-----------------|--------------------------|
/// | s      | `test`          | queries × m items        |
/// | z      | `bank.scores()` | p bank queries × m items |
///
/// Equal products are common. Among the items of one query, `s` breaks the ties: `F(q)/(m·p)` is added to
/// each product. This term rises with `s` and is less than the step between two products. Between queries
/// too, it puts the larger F(q) first. The fit keeps sorted rows and columns, 4 bytes per score.
///
/// # Departures
/// The original counts third objects that both ends can be compared with. Between two sets, only matched
/// pairs are such objects; here rows and columns are counted separately.
///
/// ```
/// use hubness::{Direction, EmpiricalProximity, ScoreMatrix, TestQueries};
///
/// let scores = ScoreMatrix::from_rows([[0.9, 0.3, 0.2], [0.7, 0.6, 0.1], [0.8, 0.2, 0.7]]);
/// let all = TestQueries(&scores);
/// let fit = EmpiricalProximity::default().fit(&all, &scores, Direction::I2t)?;
/// // Image 1, text 0: two smaller scores in the row, none in the column. Text 1: one and two.
/// let u = [0, 1].map(|j| fit.map().rescore(1, j, scores.row(1)[j]));
/// assert!((u[0] - 0.0).abs() < 0.1 && (u[1] - 1.0 / 3.0 * 2.0 / 3.0).abs() < 0.1);
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmpiricalProximity {
    /// Largest number of scores to keep of the test, and of the bank; more are refused.
    pub most_entries: usize,
}

impl Default for EmpiricalProximity {
    fn default() -> Self {
        Self { most_entries: 100_000_000 }
    }
}

impl EmpiricalProximity {
    /// Fits on a bank and on each test query's own scores.
    ///
    /// # Errors
    /// If bank or test are empty or have different items, hold more scores than allowed, or m²·p is 2⁵¹ or
    /// more (the counts would not fit into an f64).
    pub fn fit<B: Bank>(&self, bank: &B, test: &dyn Scored, direction: Direction) -> BankFit<B> {
        let [bank, test] = DirectedScores::pair(("bank", bank.scores()), test, direction)?;
        let (p, m) = (bank.queries(), bank.items());
        let most = self.most_entries;
        let expected =
            format_args!("at most {most} scores held at once (GaussianProximity holds none)");
        for entries in [p.checked_mul(m), test.queries().checked_mul(m)] {
            let got = entries.map_or_else(|| "more".to_string(), |entries| entries.to_string());
            let fits = entries.is_some_and(|entries| entries <= most);
            Error::unless(fits, "mutual proximity", expected, got)?;
        }
        check_counts(m, p)?;
        let rows = SortedLists::new(test.scores, direction, m)?;
        let columns = SortedLists::new(bank.scores, direction.reversed(), p)?;
        Ok(Correction::new(direction, SortedScores { rows, columns }))
    }
}

/// Refuses more items and queries of the bank than counts in an f64 tell apart.
fn check_counts(m: usize, p: usize) -> Result<()> {
    let fits = m as f64 * m as f64 * (p as f64) < 2f64.powi(51);
    let (expected, got) = ("items² · bank queries below 2⁵¹", format_args!("{m}² · {p}"));
    Error::unless(fits, "mutual proximity", expected, got)
}

/// Scores of some queries (or items), each in ascending order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SortedLists {
    width: usize,
    scores: Vec<f32>, // [count, width]
}

impl SortedLists {
    /// The lists of all queries of a direction, `width` scores each.
    fn new(scores: &dyn Scored, direction: Direction, width: usize) -> Result<Self> {
        let queries: Vec<_> = (0..direction.queries(scores.images(), scores.texts())).collect();
        let mut sorted = Vec::with_capacity(queries.len() * width);
        direction.batches(scores, &queries, |_, rows| sorted.extend_from_slice(rows))?;
        sorted.par_chunks_mut(width).for_each(|row| row.sort_unstable_by(f32::total_cmp));
        Ok(Self { width, scores: sorted })
    }

    fn list(&self, at: usize) -> &[f32] {
        &self.scores[at * self.width..][..self.width]
    }

    /// # Errors
    /// If there are not whole lists of finite scores, each in ascending order.
    fn check(&self, name: &str) -> Result<()> {
        let (width, place) = (self.width, format_args!("{name} of the correction"));
        let fits = width > 0 && self.scores.len().is_multiple_of(width);
        let expected = format_args!("whole lists of {width} scores, at least one score each");
        Error::unless(fits, place, expected, format_args!("{} scores", self.scores.len()))?;
        let value = |at| format!("{place}, value {at}");
        Error::unless_finite(&self.scores, value, "a finite number")?;
        self.scores.chunks(width).enumerate().try_for_each(|(number, list)| {
            let place = format_args!("{place}, list {number}");
            Error::unless(list.is_sorted(), place, "scores in ascending order", "another order")
        })
    }
}

/// How many scores are smaller. Equal scores do not count, and −0 equals +0.
fn below(sorted: &[f32], score: f32) -> f64 {
    sorted.partition_point(|&other| other < score) as f64
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SortedScores {
    rows: SortedLists,
    columns: SortedLists,
}

impl SortedScores {
    /// # Errors
    /// If rows and columns are not lists as a fit makes them, differ in the number of items, or are more than counts tell apart.
    pub(crate) fn check(&self) -> Result<()> {
        self.rows.check("rows")?;
        self.columns.check("columns")?;
        let (items, columns) = (self.rows.width, self.columns.scores.len() / self.columns.width);
        let expected = format_args!("one list for each of {items} items");
        let got = format_args!("{columns} lists");
        Error::unless(items == columns, "columns of the correction", expected, got)?;
        check_counts(items, self.columns.width)
    }

    /// `row` holds all scores of the query in ascending order.
    fn value(&self, row: &[f32], item: usize, score: f32) -> f64 {
        let (m, p) = (self.rows.width as f64, self.columns.width as f64);
        let in_row = below(row, score);
        let in_column = below(self.columns.list(item), score);
        // An exact whole number below m²·p + m: products differ by at least m, and `in_row` is less.
        (in_row * in_column * m + in_row) / (m * m * p)
    }
}

impl Rescore for SortedScores {
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64 {
        self.value(self.rows.list(query), item, score)
    }

    fn items(&self) -> usize {
        self.rows.width
    }

    fn queries(&self) -> Option<usize> {
        Some(self.rows.scores.len() / self.rows.width)
    }

    fn of_query(&self, scores: &[f32]) -> Result<Vec<f64>> {
        let mut row = scores.to_vec();
        row.sort_unstable_by(f32::total_cmp);
        Ok(scores.iter().enumerate().map(|(item, &score)| self.value(&row, item, score)).collect())
    }
}

//! A score matrix seen from one direction: queries and items instead of images and texts.

use itm_core::scored::{Scored, visit};
use itm_core::tiles::{ExpSums, TopK};

use crate::rescore::check_values;
use crate::{Direction, Error, Result};

/// Scores of queries against items, with the lists and sums that the corrections need.
pub(crate) struct DirectedScores<'a> {
    name: &'static str,
    pub(crate) scores: &'a dyn Scored,
    direction: Direction,
}

impl<'a> DirectedScores<'a> {
    /// # Errors
    /// If there is no query or no item; `name` is what the error calls the scores.
    pub(crate) fn new(
        name: &'static str,
        scores: &'a dyn Scored,
        direction: Direction,
    ) -> Result<Self> {
        let directed = Self { name, scores, direction };
        for (what, count) in [("query", directed.queries()), ("item", directed.items())] {
            Error::unless(count > 0, name, format_args!("at least one {what}"), "none")?;
        }
        Ok(directed)
    }

    /// Scores of a bank and of the test, over the same items.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if the numbers of items differ.
    pub(crate) fn pair(
        (name, bank): (&'static str, &'a dyn Scored),
        test: &'a dyn Scored,
        direction: Direction,
    ) -> Result<[Self; 2]> {
        let bank = Self::new(name, bank, direction)?;
        let test = Self::new("test", test, direction)?;
        bank.expect_items(test.items())?;
        Ok([bank, test])
    }

    pub(crate) fn queries(&self) -> usize {
        self.direction.queries(self.scores.images(), self.scores.texts())
    }

    pub(crate) fn items(&self) -> usize {
        self.direction.items(self.scores.images(), self.scores.texts())
    }

    /// # Errors
    /// If these scores have another number of items.
    pub(crate) fn expect_items(&self, items: usize) -> Result<()> {
        let expected = format_args!("the {items} test items");
        Error::unless(self.items() == items, self.name, expected, self.items())
    }

    /// The `k` best items of every query.
    pub(crate) fn best_items(&self, k: usize) -> Result<TopK> {
        self.direction.nearest(self.scores, k)
    }

    /// The `k` best queries of every item.
    pub(crate) fn best_queries(&self, k: usize) -> Result<TopK> {
        self.direction.reversed().nearest(self.scores, k)
    }

    /// `log Σ exp(β·s)` over all queries, for every item.
    ///
    /// # Errors
    /// If a sum is not finite.
    pub(crate) fn item_sums(&self, beta: f64) -> Result<Vec<f64>> {
        let sums = visit(self.scores, &ExpSums::new(beta))?;
        let items = self.direction.items(sums.images, sums.texts);
        self.finite("item", "log Σ exp(β·s) over the queries", items)
    }

    /// `log Σ exp(β·s + y)` over all items, for every query; `y` are shifts of the items.
    ///
    /// # Errors
    /// If a sum is not finite.
    pub(crate) fn query_sums(&self, beta: f64, item_shifts: Vec<f64>) -> Result<Vec<f64>> {
        let sums = self.shifted(beta, vec![0.0; self.queries()], item_shifts)?;
        self.finite("query", "log Σ exp(β·s) over the items", sums.0)
    }

    /// `log Σ exp(β·s + x)` over all queries, for every item; `x` are shifts of the queries.
    ///
    /// # Errors
    /// If a sum is not finite.
    pub(crate) fn shifted_item_sums(&self, beta: f64, query_shifts: Vec<f64>) -> Result<Vec<f64>> {
        let sums = self.shifted(beta, query_shifts, vec![0.0; self.items()])?;
        self.finite("item", "log Σ exp(β·s) over the queries", sums.1)
    }

    /// Sums of the queries and of the items.
    fn shifted(
        &self,
        beta: f64,
        queries: Vec<f64>,
        items: Vec<f64>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let (images, texts) = self.direction.sides(queries, items);
        let sums = visit(self.scores, &ExpSums::new(beta).with_shifts(images, texts))?;
        Ok(self.direction.sides(sums.images, sums.texts))
    }

    /// The values.
    ///
    /// # Errors
    /// If a value of a query or item is infinite or NaN, because scores are infinite.
    pub(crate) fn finite(&self, each: &str, what: &str, values: Vec<f64>) -> Result<Vec<f64>> {
        let place = format_args!("{}, {each}", self.name);
        check_values(place, &values, f64::MIN, format_args!("a finite {what}"))?;
        Ok(values)
    }
}

/// # Errors
/// If a parameter is not above 0, or so large that its products with scores could overflow.
pub(crate) fn positive(name: &str, value: f64) -> Result<()> {
    // The upper bound comes from `ExpSums`: products with scores must not overflow.
    let fits = value > 0.0 && value < 1e200;
    Error::unless(fits, name, "a number above 0 and below 1e200", value)
}

/// # Errors
/// If a number of neighbours is 0.
pub(crate) fn at_least_one(name: &str, k: usize) -> Result<()> {
    Error::unless(k > 0, name, "at least 1 neighbour", k)
}

//! A score matrix seen from one direction: queries and items instead of images and texts.

use std::ops::Range;

use itm_core::tiles::{Consumer, ExpSums, Tile, TopK};

use crate::{Direction, Error, Result, Scores};

/// Scores of queries against items, with the lists and sums that the corrections need.
#[derive(Debug)]
pub(crate) struct Side<'a, S> {
    name: &'static str,
    scores: &'a S,
    direction: Direction,
}

impl<'a, S: Scores> Side<'a, S> {
    /// # Errors
    /// If there is no query or no item, or a score is not finite; `name` is what the error calls the scores.
    pub(crate) fn new(name: &'static str, scores: &'a S, direction: Direction) -> Result<Self> {
        let side = Self { name, scores, direction };
        for (what, count) in [("query", side.queries()), ("item", side.items())] {
            if count == 0 {
                return Err(Error::invalid(name, format!("at least one {what}"), "none"));
            }
        }
        scores.check_finite()?;
        Ok(side)
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
        if self.items() == items {
            return Ok(());
        }
        Err(Error::invalid(self.name, format!("the {items} test items"), self.items()))
    }

    /// The output of a consumer that reads all scores.
    pub(crate) fn run<C: Consumer>(&self, consumer: &C) -> C::Output {
        self.scores.run(consumer)
    }

    /// The `k` best items of every query.
    pub(crate) fn best_items(&self, k: usize) -> TopK {
        self.scores.nearest(self.direction, k)
    }

    /// The `k` best queries of every item.
    pub(crate) fn best_queries(&self, k: usize) -> TopK {
        self.scores.nearest(self.direction.reversed(), k)
    }

    /// `log Σ exp(β·s)` over all queries, for every item.
    ///
    /// # Errors
    /// If a sum is not finite.
    pub(crate) fn item_sums(&self, beta: f64) -> Result<Vec<f64>> {
        let sums = self.run(&ExpSums::new(beta));
        let items = self.direction.items(sums.images, sums.texts);
        self.finite("item", "log Σ exp(β·s) over the queries", &items)?;
        Ok(items)
    }

    /// `log Σ exp(β·s + y)` over all items, for every query; `y` are shifts of the items.
    ///
    /// # Errors
    /// If a sum is not finite.
    pub(crate) fn query_sums(&self, beta: f64, item_shifts: Vec<f64>) -> Result<Vec<f64>> {
        let sums = self.shifted(beta, vec![0.0; self.queries()], item_shifts);
        self.finite("query", "log Σ exp(β·s) over the items", &sums.0)?;
        Ok(sums.0)
    }

    /// `log Σ exp(β·s + x)` over all queries, for every item; `x` are shifts of the queries.
    ///
    /// # Errors
    /// If a sum is not finite.
    pub(crate) fn shifted_item_sums(&self, beta: f64, query_shifts: Vec<f64>) -> Result<Vec<f64>> {
        let sums = self.shifted(beta, query_shifts, vec![0.0; self.items()]);
        self.finite("item", "log Σ exp(β·s) over the queries", &sums.1)?;
        Ok(sums.1)
    }

    fn shifted(&self, beta: f64, queries: Vec<f64>, items: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
        let (images, texts) = match self.direction {
            Direction::I2t => (queries, items),
            Direction::T2i => (items, queries),
        };
        let sums = self.run(&ExpSums::new(beta).with_shifts(images, texts));
        match self.direction {
            Direction::I2t => (sums.images, sums.texts),
            Direction::T2i => (sums.texts, sums.images),
        }
    }

    /// # Errors
    /// If a value of a query or item is infinite or NaN, because scores are infinite.
    pub(crate) fn finite(&self, each: &str, what: &str, values: &[f64]) -> Result<()> {
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(at) => {
                let place = format!("{}, {each} {at}", self.name);
                Err(Error::invalid(place, format!("a finite {what}"), values[at]))
            }
        }
    }
}

/// # Errors
/// If a parameter is not above 0, or so large that its products with scores could overflow.
pub(crate) fn positive(name: &str, value: f64) -> Result<()> {
    // The upper bound comes from `ExpSums`: products with scores must not overflow.
    if value > 0.0 && value < 1e200 {
        return Ok(());
    }
    Err(Error::invalid(name, "a number above 0 and below 1e200", value))
}

/// # Errors
/// If a number of neighbours is 0.
pub(crate) fn at_least_one(name: &str, k: usize) -> Result<()> {
    if k > 0 {
        return Ok(());
    }
    Err(Error::invalid(name, "at least 1 neighbour", k))
}

/// Scores of items against themselves, without the diagonal: its scores count as −∞.
#[derive(Debug)]
pub(crate) struct WithoutSelf<'a, S>(pub(crate) &'a S);

impl<S: Scores> Scores for WithoutSelf<'_, S> {
    fn images(&self) -> usize {
        self.0.images()
    }

    fn texts(&self) -> usize {
        self.0.texts()
    }

    fn run<C: Consumer + ?Sized>(&self, consumer: &C) -> C::Output {
        self.0.run(&LeaveOut(consumer))
    }

    fn pair_scores(&self, images: &[usize], texts: &[usize]) -> Vec<f32> {
        let mut scores = self.0.pair_scores(images, texts);
        let pairs = images.iter().zip(texts);
        scores.iter_mut().zip(pairs).filter(|(_, (i, j))| i == j).for_each(|(s, _)| *s = NOTHING);
        scores
    }

    fn rows(&self, direction: Direction, queries: &[usize]) -> Vec<f32> {
        let mut rows = self.0.rows(direction, queries);
        let items = direction.items(self.images(), self.texts());
        queries.iter().enumerate().for_each(|(row, &query)| rows[row * items + query] = NOTHING);
        rows
    }
}

const NOTHING: f32 = f32::NEG_INFINITY;

/// Passes tiles on, with −∞ on the diagonal.
struct LeaveOut<'a, C: ?Sized>(&'a C);

impl<C: Consumer + ?Sized> Consumer for LeaveOut<'_, C> {
    type State = C::State;
    type Output = C::Output;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> C::State {
        self.0.start(images, texts)
    }

    fn hint(&self, lane: &mut C::State, total: &C::State) {
        self.0.hint(lane, total);
    }

    fn tile(&self, state: &mut C::State, tile: &Tile<'_>) {
        let (images, texts) = (tile.images(), tile.texts());
        if images.end <= texts.start || texts.end <= images.start {
            return self.0.tile(state, tile);
        }
        let width = texts.len();
        let mut scores: Vec<f32> = tile.rows().flat_map(|(_, row)| row).copied().collect();
        for image in images.start.max(texts.start)..images.end.min(texts.end) {
            scores[(image - images.start) * width + image - texts.start] = NOTHING;
        }
        self.0.tile(state, &Tile::new(images, texts, &scores, width));
    }

    fn merge(&self, total: &mut C::State, lane: C::State) {
        self.0.merge(total, lane);
    }

    fn finish(&self, total: C::State) -> C::Output {
        self.0.finish(total)
    }
}

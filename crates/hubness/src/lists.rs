//! The best items of every query.

use std::ops::Deref;

use itm_core::tiles::TopK;

use crate::Direction;

/// The best items of every query, best first, with corrected scores: a [`TopK`] with a direction, whose methods it has.
#[derive(Debug, Clone, PartialEq)]
pub struct TopLists {
    pub(crate) direction: Direction,
    lists: TopK<f64>,
}

impl TopLists {
    /// From row-major lists of `k` items per query.
    ///
    /// # Panics
    /// If the lengths differ or are not a multiple of `k`, or a score is NaN.
    pub fn new(direction: Direction, k: usize, items: Vec<u32>, scores: Vec<f64>) -> Self {
        assert!(!scores.iter().any(|score| score.is_nan()), "scores of lists, got NaN");
        Self { direction, lists: TopK::of_lists(k, items, scores) }
    }

    /// The items of a query with a score above −∞, which pairs have that a run does not hold.
    pub(crate) fn held(&self, query: usize) -> &[u32] {
        let held = self.scores(query).partition_point(|&score| score > f64::NEG_INFINITY);
        &self.items(query)[..held]
    }
}

impl Deref for TopLists {
    type Target = TopK<f64>;

    fn deref(&self) -> &TopK<f64> {
        &self.lists
    }
}

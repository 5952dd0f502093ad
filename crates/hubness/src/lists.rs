//! The best items of every query.

use std::ops::Range;

use crate::Direction;

/// The best items of every query, best first, with corrected scores.
#[derive(Debug, Clone, PartialEq)]
pub struct TopLists {
    direction: Direction,
    k: usize,
    items: Vec<u32>,
    scores: Vec<f64>,
}

impl TopLists {
    /// From row-major lists of `k` items per query.
    ///
    /// # Panics
    /// If the lengths differ or are not a multiple of `k`, or a score is NaN.
    pub fn new(direction: Direction, k: usize, items: Vec<u32>, scores: Vec<f64>) -> Self {
        assert_eq!(items.len(), scores.len(), "one score for each item");
        assert!(items.is_empty() || items.len().is_multiple_of(k), "lists of {k}");
        assert!(!scores.iter().any(|score| score.is_nan()), "scores of lists, got NaN");
        Self { direction, k, items, scores }
    }

    /// The direction of the queries.
    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// Items per query: the wanted number, or all items if there are fewer.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Number of queries.
    pub fn queries(&self) -> usize {
        self.items.len().checked_div(self.k).unwrap_or(0)
    }

    /// The items of a query, best first; equal scores by ascending index.
    ///
    /// # Panics
    /// If there is no such query.
    pub fn items(&self, query: usize) -> &[u32] {
        &self.items[self.places(query)]
    }

    /// The scores of these items.
    ///
    /// # Panics
    /// If there is no such query.
    pub fn scores(&self, query: usize) -> &[f64] {
        &self.scores[self.places(query)]
    }

    fn places(&self, query: usize) -> Range<usize> {
        assert!(query < self.queries(), "query {query} of {}", self.queries());
        query * self.k..(query + 1) * self.k
    }
}

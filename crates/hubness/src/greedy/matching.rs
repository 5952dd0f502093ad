//! The result of greedy matching: pairs of queries and items, in push order.

use crate::edge::Edge;
use crate::{Direction, Pairs};

/// Pairs of queries and items, in the order in which they were pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matching {
    direction: Direction,
    number_of_items: usize,
    stack: Vec<(u32, u32)>,
    lists: Vec<Vec<u32>>, // of each query
}

impl Matching {
    /// From edges in the order of the matrix.
    pub(super) fn new(direction: Direction, queries: usize, items: usize, edges: &[Edge]) -> Self {
        let stack: Vec<_> = edges.iter().map(|edge| (edge.query(), edge.item())).collect();
        let mut lists = vec![vec![]; queries];
        stack.iter().for_each(|&(query, item)| lists[query as usize].push(item));
        Self { direction, number_of_items: items, stack, lists }
    }

    /// Number of queries, matched or not.
    pub(crate) fn queries(&self) -> usize {
        self.lists.len()
    }

    /// Every pair of a query and an item, in push order: by descending score, then by query, then by item.
    pub fn stack(&self) -> &[(u32, u32)] {
        &self.stack
    }

    /// The items of a query in push order, its best first: `k`, or fewer where no item had room.
    pub fn items(&self, query: usize) -> &[u32] {
        &self.lists[query]
    }

    /// `N_k`: how many queries hold each item, 0 where none does.
    pub fn counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.number_of_items];
        self.stack.iter().for_each(|&(_, item)| counts[item as usize] += 1);
        counts
    }

    /// The place of each query's first true item in its list, from 0. The query hits at K if the place is below K.
    ///
    /// # Panics
    /// If `pairs` have other numbers of images and texts.
    pub(crate) fn places(&self, pairs: &Pairs) -> Vec<Option<usize>> {
        check(pairs, self.direction, self.queries(), self.number_of_items);
        let is_true = |query, item| belongs(pairs, self.direction, query, item);
        let place = |q| self.items(q).iter().position(|&item| is_true(q as u32, item));
        (0..self.queries()).map(place).collect()
    }
}

/// Whether an item is one that the query should find.
#[inline]
pub(super) fn belongs(pairs: &Pairs, direction: Direction, query: u32, item: u32) -> bool {
    let (image, text) = direction.sides(query, item);
    pairs.contains(image as usize, text as usize)
}

/// # Panics
/// Unless `pairs` have these numbers of queries and items.
pub(super) fn check(pairs: &Pairs, direction: Direction, queries: usize, items: usize) {
    let (images, texts) = (pairs.images(), pairs.texts());
    let of = direction.sides(images, texts);
    assert_eq!(of, (queries, items), "queries and items of the pairs, and of the scores");
}

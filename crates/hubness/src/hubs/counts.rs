//! How many queries have an item among their nearest.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::TopLists;

/// `N_k` of every item: the number of queries that have it among their `k` nearest. Items that no query has count 0.
///
/// ```text
/// N_k(j) = #{ q : j ∈ list(q), among its first k }       Σ_j N_k(j) ≤ n · k
/// ```
///
/// Where lists are shorter than `k`, the sum is smaller than `n · k`. Shares of answers are shares of the sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Wanted items per query, before lists were cut to the number of items.
    pub k: usize,
    /// Number of queries `n`.
    pub queries: usize,
    /// `N_k`, one for each item.
    pub values: Vec<u32>,
}

impl Counts {
    /// Counts the first `k` items of every list. `items` is the number of all items, in a list or not.
    ///
    /// # Panics
    /// If an item of a list is not below `items`, or there are more than 2³² items.
    pub fn new<'a>(items: usize, k: usize, lists: impl IntoIterator<Item = &'a [u32]>) -> Self {
        Self::weighted(items, k, lists, |_| 1)
    }

    /// Counts the first `k` of longer lists. Items with −∞, which a run does not hold, are left out.
    ///
    /// # Panics
    /// If the lists are shorter than `k` although there are more items, or name an item that is not below `items`.
    pub fn top(items: usize, k: usize, lists: &TopLists) -> Self {
        let enough = lists.queries() == 0 || lists.k() >= k.min(items);
        assert!(enough, "the first {k} of {items} items, got lists of {}", lists.k());
        let all = (0..lists.queries()).map(|query| lists.held(query));
        Self::new(items, k, all)
    }

    /// Counts a query as often as it was drawn.
    pub(super) fn weighted<'a>(
        items: usize,
        k: usize,
        lists: impl IntoIterator<Item = &'a [u32]>,
        times: impl Fn(usize) -> u32,
    ) -> Self {
        assert!(items <= 1 << 32, "{items} items, not at most 2³²");
        let mut values = vec![0; items];
        let mut queries = 0;
        for (query, list) in lists.into_iter().enumerate() {
            let times = times(query);
            queries += times as usize;
            for &item in &list[..k.min(list.len())] {
                let Some(count) = values.get_mut(item as usize) else {
                    panic!("list of query {query}: item {item} of {items}");
                };
                *count += times;
            }
        }
        Self { k, queries, values }
    }

    /// `Σ_j N_k(j)`: the answers that were given.
    pub(crate) fn total(&self) -> u64 {
        self.values.iter().map(|&count| u64::from(count)).sum()
    }

    /// Mean of `N_k` over all `m` items; 0 without items.
    pub fn mean(&self) -> f64 {
        if self.values.is_empty() { 0.0 } else { self.total() as f64 / self.values.len() as f64 }
    }

    /// At most `limit` items with the largest counts, largest first, equal counts by ascending index. Items that no query
    /// has are left out.
    pub fn largest(&self, limit: usize) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..self.values.len()).filter(|&item| self.values[item] > 0).collect();
        order.sort_by_key(|&item| Reverse(self.values[item])); // stable: equal ones stay ascending
        order.truncate(limit);
        order
    }
}

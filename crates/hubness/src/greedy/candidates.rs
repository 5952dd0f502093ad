//! The source of a query's next best items: its list of candidates, and after that the scores.

use itm_core::{Error, Result};
use rayon::prelude::*;

use super::edge::Edge;
use crate::{AnyCorrection, Direction, Rescore, Scores, TopLists};

/// The best items of every query under a correction, and the scores, which give more items when the lists run out.
///
/// Lists of any length give the same matching. When a list runs out, its row of scores is computed again. So longer lists
/// are faster if items have little room (λ = 1); see [`advised`](Self::advised).
#[derive(Debug)]
pub struct Candidates<'a, S> {
    scores: &'a S,
    direction: Direction,
    map: &'a dyn Rescore,
    lists: &'a TopLists,
    queries: usize,
    items: usize,
}

/// The request of a query whose list ran out: its best `want` items that come after `below`.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) query: u32,
    pub(super) below: Edge,
    pub(super) want: usize,
}

impl<'a, S: Scores> Candidates<'a, S> {
    /// Candidates of one direction. `lists` must hold the best items of `scores` under the correction, as
    /// [`pass::top`](crate::pass::top) gives them.
    ///
    /// # Errors
    /// If the lists have the other direction or another number of queries, name an item that does not exist, or begin with
    /// another score than the correction gives (then the lists come from other scores or from another correction). Also if
    /// the correction is for other items or queries.
    pub fn new(scores: &'a S, correction: &'a AnyCorrection, lists: &'a TopLists) -> Result<Self> {
        correction.check(scores)?;
        let (n, m, direction) = (scores.images(), scores.texts(), correction.direction());
        let (queries, items) = (direction.queries(n, m), direction.items(n, m));
        if lists.direction() != direction {
            let expected = format!("lists of direction {direction}");
            return Err(Error::invalid("candidates", expected, lists.direction()));
        }
        let listed = lists.queries();
        if listed != queries && lists.k() > 0 {
            let expected = format!("lists of {queries} queries, as the scores");
            return Err(Error::invalid("candidates", expected, listed));
        }
        if lists.k() > 0 {
            check_lists(scores, correction, lists, items)?;
        }
        Ok(Self { scores, direction, map: correction.map(), lists, queries, items })
    }

    /// A good length of the lists for matchings of up to `k` items per query. With 25,000 queries against 5,000 items, λ = 1, on
    /// three synthetic sets, 1 to 6 of 100 rows were computed again; with lists of 32, 3 to 29. From λ = 2 on, both lengths
    /// suffice.
    pub fn advised(k: usize) -> usize {
        k.saturating_mul(12).max(64)
    }

    /// Number of queries.
    pub fn queries(&self) -> usize {
        self.queries
    }

    /// Number of items.
    pub fn items(&self) -> usize {
        self.items
    }

    /// The direction of the candidates.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Items in each list.
    pub(super) fn listed(&self) -> usize {
        self.lists.k()
    }

    /// The item at a place of a query's list.
    #[inline]
    pub(super) fn at(&self, query: u32, place: usize) -> Edge {
        let q = query as usize;
        Edge::new(self.lists.scores(q)[place], query, self.lists.items(q)[place])
    }

    /// The best items of each request, best first; fewer than wanted only if there are no more. `floor` holds one edge per
    /// item: the item takes only better edges.
    pub(super) fn refill(&self, requests: &[Request], floor: &[Edge]) -> Vec<Vec<Edge>> {
        /// Scores that a thread holds at once, unless 64 queries have more: 16 MiB.
        const SCORES: usize = 1 << 22;
        let most = (SCORES / self.items.max(1)).max(64);
        let block = requests.len().div_ceil(rayon::current_num_threads()).clamp(1, most);
        let answer = |requests: &[Request]| {
            let queries: Vec<_> = requests.iter().map(|r| r.query as usize).collect();
            let scores = self.scores.rows(self.direction, &queries); // [requests, items]
            let rows = requests.par_iter().zip(scores.par_chunks(self.items.max(1)));
            rows.map(|(request, row)| self.best(request, row, floor)).collect::<Vec<_>>()
        };
        requests.par_chunks(block).flat_map_iter(answer).collect()
    }

    fn best(&self, request: &Request, row: &[f32], floor: &[Edge]) -> Vec<Edge> {
        let &Request { query, below, want } = request;
        let edges = row.iter().enumerate().map(|(item, &score)| {
            Edge::new(self.map.rescore(query as usize, item, score), query, item as u32)
        });
        let mut best: Vec<_> = edges
            .zip(floor)
            .filter(|&(e, &floor)| e < below && e > floor)
            .map(|(e, _)| e)
            .collect();
        if best.len() > want {
            best.select_nth_unstable_by(want, |a, b| b.cmp(a));
            best.truncate(want);
        }
        best.sort_unstable_by(|a, b| b.cmp(a));
        best
    }
}

/// Checks that the lists name only existing items, and that each list begins with the score that the correction gives to its
/// first item.
fn check_lists<S: Scores>(
    scores: &S,
    correction: &AnyCorrection,
    lists: &TopLists,
    items: usize,
) -> Result<()> {
    let queries: Vec<_> = (0..lists.queries()).collect();
    for &query in &queries {
        if let Some(&item) = lists.items(query).iter().find(|&&item| item as usize >= items) {
            let place = format!("candidates of query {query}");
            return Err(Error::invalid(place, format!("items below {items}"), item));
        }
    }
    let first: Vec<_> = queries.iter().map(|&query| lists.items(query)[0] as usize).collect();
    let own = match correction.direction() {
        Direction::I2t => scores.pair_scores(&queries, &first),
        Direction::T2i => scores.pair_scores(&first, &queries),
    };
    for (query, score) in own.into_iter().enumerate() {
        let (want, got) =
            (correction.map().rescore(query, first[query], score), lists.scores(query)[0]);
        if want != got {
            let place = format!("candidates of query {query}, score of item {}", first[query]);
            return Err(Error::invalid(place, format!("{want}, as under the correction"), got));
        }
    }
    Ok(())
}

//! The source of a query's next best items: its list of candidates, and after that the scores.

use itm_core::scored::Scored;
use itm_core::{Error, Result};
use rayon::prelude::*;

use super::{CapacityScale, capacity};
use crate::edge::Edge;
use crate::{AnyCorrection, Direction, Rescore, TopLists};

/// The best items of every query under a correction, and the scores, which give more items when the lists run out.
///
/// Lists of any length give the same matching. When a list runs out, its row of scores is computed again. So longer lists
/// are faster if items have little room (λ = 1); see [`advised`](Self::advised).
pub struct Candidates<'a> {
    scores: &'a dyn Scored,
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

impl<'a> Candidates<'a> {
    /// Candidates of one direction. `lists` must hold the best items of `scores` under the correction, as
    /// [`pass::top`](crate::pass::top) gives them.
    ///
    /// # Errors
    /// If the lists have the other direction or another number of queries, name an item that does not exist, or begin with
    /// another score than the correction gives (then the lists come from other scores or from another correction). Also if
    /// the correction is for other items or queries.
    pub fn new(
        scores: &'a dyn Scored,
        correction: &'a AnyCorrection,
        lists: &'a TopLists,
    ) -> Result<Self> {
        correction.check(scores)?;
        let (n, m, direction) = (scores.images(), scores.texts(), correction.direction());
        let (queries, items) = direction.sides(n, m);
        let (place, got) = ("candidates", lists.direction());
        let expected = format_args!("lists of direction {direction}");
        Error::unless(got == direction, place, expected, got)?;
        if lists.k() > 0 {
            let expected = format_args!("lists of {queries} queries, as the scores");
            Error::unless(lists.queries() == queries, place, expected, lists.queries())?;
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
    pub(crate) fn queries(&self) -> usize {
        self.queries
    }

    /// Number of items.
    pub(crate) fn items(&self) -> usize {
        self.items
    }

    /// [`capacity`] with as many queries and items.
    pub(crate) fn capacity(&self, lambda: f64, k: usize, scale: CapacityScale) -> Result<usize> {
        capacity(lambda, k, self.queries, self.items, scale)
    }

    /// The direction of the candidates.
    pub(crate) fn direction(&self) -> Direction {
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
    pub(super) fn refill(&self, requests: &[Request], floor: &[Edge]) -> Result<Vec<Vec<Edge>>> {
        let queries: Vec<_> = requests.iter().map(|r| r.query as usize).collect();
        let mut lists = Vec::with_capacity(requests.len());
        let (map, items) = (self.map, self.items.max(1));
        self.direction.batches(self.scores, &queries, |some, rows| {
            let requests = &requests[lists.len()..][..some.len()];
            let rows = requests.par_iter().zip(rows.par_chunks(items));
            lists.par_extend(rows.map(|(request, row)| best(map, request, row, floor)));
        })?;
        Ok(lists)
    }
}

/// The best items of a request, from the scores of its query.
fn best(map: &dyn Rescore, request: &Request, row: &[f32], floor: &[Edge]) -> Vec<Edge> {
    let &Request { query, below, want } = request;
    let edges = row.iter().enumerate().map(|(item, &score)| {
        Edge::new(map.rescore(query as usize, item, score), query, item as u32)
    });
    let open = edges.zip(floor).filter(|&(edge, &floor)| edge < below && edge > floor);
    let mut best: Vec<_> = open.map(|(edge, _)| edge).collect();
    if best.len() > want {
        best.select_nth_unstable_by(want, |a, b| b.cmp(a));
        best.truncate(want);
    }
    best.sort_unstable_by(|a, b| b.cmp(a));
    best
}

/// Checks that the lists name only existing items, and that each list begins with the score that the correction gives to its
/// first item.
fn check_lists(
    scores: &dyn Scored,
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
    let (images, texts) = correction.direction().sides(&queries, &first);
    let own = scores.pairs(images, texts)?;
    for (query, score) in own.into_iter().enumerate() {
        let (want, got) =
            (correction.map().rescore(query, first[query], score), lists.scores(query)[0]);
        let place = format_args!("candidates of query {query}, score of item {}", first[query]);
        Error::unless(want == got, place, format_args!("{want}, as under the correction"), got)?;
    }
    Ok(())
}

//! The source of a query's next best items: its list of candidates, and after that the scores.

use itm_core::Result;
use itm_core::scored::Scored;
use rayon::prelude::*;

use super::{CapacityScale, capacity};
use crate::edge::Edge;
use crate::{AnyCorrection, Direction, Rescore, TopLists, pass};

/// The best items of every query under a correction, and the scores, which give more items when the lists run out.
///
/// Lists of any length give the same matching. When a list runs out, its row of scores is computed again. So longer lists
/// are faster if items have little room (λ = 1). With 25,000 queries against 5,000 items, λ = 1, on three synthetic sets, 1 to 6
/// of 100 rows were computed again with lists of 12 k items, at least 64; with lists of 32, 3 to 29. From λ = 2 on, both
/// lengths suffice.
pub struct Candidates<'a> {
    scores: &'a dyn Scored,
    map: &'a dyn Rescore,
    pub(super) lists: TopLists,
    pub(crate) direction: Direction,
    pub(crate) queries: usize,
    pub(crate) items: usize,
}

/// The request of a query whose list ran out: its best `want` items that come after `below`.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) query: u32,
    pub(super) below: Edge,
    pub(super) want: usize,
}

impl<'a> Candidates<'a> {
    /// Candidates under a correction, from one pass over the scores: lists for matchings of up to `k` items per query.
    ///
    /// # Errors
    /// If the correction is for other items or queries, or a score is infinite.
    pub fn new(scores: &'a dyn Scored, correction: &'a AnyCorrection, k: usize) -> Result<Self> {
        Self::listed(scores, correction, k.saturating_mul(12).max(64))
    }

    /// As [`new`](Self::new), with lists of `length` items.
    pub(super) fn listed(
        scores: &'a dyn Scored,
        correction: &'a AnyCorrection,
        length: usize,
    ) -> Result<Self> {
        let lists = pass::top(scores, correction, length)?;
        let (map, direction) = (correction.map(), correction.direction());
        let (queries, items) = direction.sides(scores.images(), scores.texts());
        Ok(Self { scores, map, lists, direction, queries, items })
    }

    /// [`capacity`] with as many queries and items.
    pub(crate) fn capacity(&self, lambda: f64, k: usize, scale: CapacityScale) -> Result<usize> {
        capacity(lambda, k, self.queries, self.items, scale)
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

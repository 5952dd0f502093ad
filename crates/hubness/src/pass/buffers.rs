//! Lists of the best items while tiles come in.

use std::ops::Range;

use crate::edge::Edge;
use crate::{Direction, TopLists};

/// Lists of candidates for a range of queries.
///
/// A list takes scores above its `floor`, a score that `k` earlier items reached. A full list is cut back to `k`.
/// Items come in ascending order, so an item that equals the floor has a larger index than those `k` and stays out.
#[derive(Debug, Clone)]
pub(super) struct BestLists {
    pub(super) first: usize,
    k: usize,
    room: usize,
    entries: Vec<Edge>, // [queries, room]
    filled: Vec<u32>,
    floor: Vec<f64>,
    pub(super) near: Vec<f32>, // the floors, rounded
}

impl BestLists {
    pub(super) fn new(queries: Range<usize>, items: usize, k: usize) -> Self {
        let (k, n) = (k.min(items), queries.len());
        let room = k + k / 4 + 16;
        let floor = if k == 0 { f64::INFINITY } else { f64::NEG_INFINITY };
        Self {
            first: queries.start,
            k,
            room,
            entries: vec![Edge::LAST; n * room],
            filled: vec![0; n],
            floor: vec![floor; n],
            near: vec![floor as f32; n],
        }
    }

    /// Offers an item whose index is larger than all before. A list with fewer than `k` items takes −∞ too.
    #[inline]
    pub(super) fn offer(&mut self, query: usize, score: f64, item: usize) {
        if score > self.floor[query] || (score == f64::NEG_INFINITY && self.takes_any(query)) {
            self.push(query, Edge::new(score, 0, item as u32));
        }
    }

    /// Whether the list takes even −∞.
    fn takes_any(&self, query: usize) -> bool {
        self.k > 0
            && self.floor[query] == f64::NEG_INFINITY
            && (self.filled[query] as usize) < self.k
    }

    #[inline]
    fn push(&mut self, query: usize, entry: Edge) {
        let list = &mut self.entries[query * self.room..(query + 1) * self.room];
        let filled = self.filled[query] as usize;
        list[filled] = entry;
        self.filled[query] += 1;
        if filled + 1 == self.room {
            list.select_nth_unstable_by(self.k - 1, |a, b| b.cmp(a));
            self.filled[query] = self.k as u32;
            self.floor[query] = list[self.k - 1].score();
            self.near[query] = self.floor[query] as f32;
        }
    }

    /// The merged items have smaller indices, so their floors hold here too.
    pub(super) fn raise_floors(&mut self, total: &Self) {
        let known = self.first - total.first..;
        for (query, &floor) in total.floor[known].iter().enumerate().take(self.floor.len()) {
            self.floor[query] = self.floor[query].max(floor);
            self.near[query] = self.floor[query] as f32;
        }
    }

    pub(super) fn add(&mut self, part: &Self) {
        for query in 0..part.filled.len() {
            let list = &part.entries[query * part.room..][..part.filled[query] as usize];
            let query = query + part.first - self.first;
            let floor = self.floor[query]; // of the lanes before; this lane's items come in no order
            for &entry in
                list.iter().filter(|entry| entry.score() > floor || floor == f64::NEG_INFINITY)
            {
                self.push(query, entry);
            }
        }
    }

    pub(super) fn finish(mut self, direction: Direction) -> TopLists {
        let k = self.k;
        let (mut items, mut scores) = (Vec::new(), Vec::new());
        for (list, &filled) in self.entries.chunks_mut(self.room).zip(&self.filled) {
            let list = &mut list[..filled as usize];
            list.sort_unstable_by(|a, b| b.cmp(a));
            items.extend(list[..k].iter().map(|entry| entry.item()));
            scores.extend(list[..k].iter().map(|entry| entry.score()));
        }
        TopLists::new(direction, k, items, scores)
    }
}

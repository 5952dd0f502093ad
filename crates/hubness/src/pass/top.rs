//! The best items of every query under a correction.

use std::ops::Range;

use itm_core::tiles::{Consumer, Tile, widest};

use super::filter::{Filter, STRETCH, compare, largest, places};
use crate::{Direction, Rescore, TopLists};

/// Keeps for each query of one direction the `k` items of the largest corrected scores, the smaller index first on ties.
#[derive(Debug)]
pub struct CorrectedTop<'a> {
    filter: Filter<'a>,
    k: usize,
}

impl<'a> CorrectedTop<'a> {
    /// Keeps `k` items a query; all, if there are fewer.
    pub fn new(direction: Direction, map: &'a dyn Rescore, k: usize) -> Self {
        Self { filter: Filter::new(direction, map), k }
    }
}

/// Corrected score and item; the larger is the better, and no two of a query are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Entry {
    score: u64,
    item: u32, // inverted: of equal scores the smaller index is larger
}

impl Entry {
    fn new(score: f64, item: usize) -> Self {
        let bits = (score + 0.0).to_bits(); // −0 + 0 = +0: the two are tied
        let score = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
        Self { score, item: !(item as u32) }
    }

    fn score(self) -> f64 {
        let high = self.score >> 63 == 1;
        f64::from_bits(if high { self.score & !(1 << 63) } else { !self.score })
    }
}

/// Lists of candidates for some neighbouring queries.
///
/// A list takes what is above its `floor`, a score that `k` items before reached; when it is full it is cut back to `k`.
/// Items come in ascending order, so one that equals the floor has a larger index than those `k` and stays out.
#[derive(Debug, Clone)]
pub struct Lists {
    first: usize,
    items: usize,
    k: usize,
    room: usize,
    entries: Vec<Entry>, // [queries, room]
    filled: Vec<u32>,
    floor: Vec<f64>,
    near: Vec<f32>, // the floors, rounded
}

impl Lists {
    fn new(queries: Range<usize>, items: usize, k: usize) -> Self {
        let (k, n) = (k.min(items), queries.len());
        let room = k + k / 4 + 16;
        let floor = if k == 0 { f64::INFINITY } else { f64::NEG_INFINITY };
        Self {
            first: queries.start,
            items,
            k,
            room,
            entries: vec![Entry::default(); n * room],
            filled: vec![0; n],
            floor: vec![floor; n],
            near: vec![floor as f32; n],
        }
    }

    /// Takes an item whose index is larger than all before. A list that is not full takes −∞ too.
    #[inline]
    fn offer(&mut self, query: usize, score: f64, item: usize) {
        if score > self.floor[query] || (score == f64::NEG_INFINITY && self.takes_any(query)) {
            self.push(query, Entry::new(score, item));
        }
    }

    /// Whether even −∞ is better than nothing.
    fn takes_any(&self, query: usize) -> bool {
        self.k > 0
            && self.floor[query] == f64::NEG_INFINITY
            && (self.filled[query] as usize) < self.k
    }

    #[inline]
    fn push(&mut self, query: usize, entry: Entry) {
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

    fn add(&mut self, part: &Self) {
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

    fn finish(mut self) -> TopLists {
        let k = self.k;
        let (mut items, mut scores) = (Vec::new(), Vec::new());
        for (list, &filled) in self.entries.chunks_mut(self.room).zip(&self.filled) {
            let list = &mut list[..filled as usize];
            list.sort_unstable_by(|a, b| b.cmp(a));
            items.extend(list[..k].iter().map(|entry| !entry.item));
            scores.extend(list[..k].iter().map(|entry| entry.score()));
        }
        TopLists::new(k, items, scores)
    }
}

impl Consumer for CorrectedTop<'_> {
    type State = Lists;
    type Output = TopLists;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Lists {
        let direction = self.filter.direction();
        let items = direction.items(images.len(), texts.len());
        Lists::new(direction.queries(images, texts), items, self.k)
    }

    /// What was merged has smaller indices: its floors hold here as well.
    fn hint(&self, lane: &mut Lists, total: &Lists) {
        if lane.items == 0 {
            return;
        }
        let known = lane.first - total.first..;
        for (query, &floor) in total.floor[known].iter().enumerate().take(lane.floor.len()) {
            lane.floor[query] = lane.floor[query].max(floor);
            lane.near[query] = lane.floor[query] as f32;
        }
    }

    fn tile(&self, lists: &mut Lists, tile: &Tile<'_>) {
        widest(
            #[inline(always)]
            || {
                let slack = self.filter.slack(
                    tile.rows()
                        .map(|(_, row)| largest(row))
                        .fold(0.0, |a, b| if b > a { b } else { a }),
                );
                for (image, row) in tile.rows() {
                    let texts = tile.texts().step_by(STRETCH);
                    for (stretch, text0) in row.chunks(STRETCH).zip(texts) {
                        let corrected = self.filter.stretch(image, text0, stretch);
                        let n = stretch.len();
                        let (above, unclear) = match self.filter.direction() {
                            Direction::I2t => {
                                let t = lists.near[image - lists.first];
                                compare(&corrected, |_| t, slack, n)
                            }
                            Direction::T2i => {
                                let near = &lists.near[text0 - lists.first..][..n];
                                compare(&corrected, |i| near[i], slack, n)
                            }
                        };
                        for i in places(above | unclear) {
                            let text = text0 + i;
                            let direction = self.filter.direction();
                            let query = direction.queries(image, text) - lists.first;
                            let score = self.filter.exact(image, text, stretch[i]);
                            lists.offer(query, score, direction.items(image, text));
                        }
                    }
                }
            },
        );
    }

    fn merge(&self, total: &mut Lists, lane: Lists) {
        total.add(&lane);
    }

    fn finish(&self, total: Lists) -> TopLists {
        total.finish()
    }
}

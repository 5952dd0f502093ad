//! The k best texts of every image, and the k best images of every text.

use std::ops::Range;

use super::kernel::widest;
use super::{Consumer, Tile};

/// The `k` texts of the largest scores for every image, the smaller index first on ties; all, if there are fewer.
#[derive(Debug, Clone, Copy)]
pub struct TopTexts {
    k: usize,
}

/// The `k` images of the largest scores for every text, the smaller index first on ties; all, if there are fewer.
#[derive(Debug, Clone, Copy)]
pub struct TopImages {
    k: usize,
}

/// What [`TopTexts`] and [`TopImages`] give: for every query its best items, best first.
#[derive(Debug, Clone, PartialEq)]
pub struct TopK {
    k: usize,
    items: Vec<u32>,
    scores: Vec<f32>,
}

impl TopTexts {
    /// Keeps `k` texts per image.
    pub fn new(k: usize) -> Self {
        Self { k }
    }
}

impl TopImages {
    /// Keeps `k` images per text.
    pub fn new(k: usize) -> Self {
        Self { k }
    }
}

impl TopK {
    /// How many items each query has: `k`, or all there are.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The items of a query, best first.
    pub fn items(&self, query: usize) -> &[u32] {
        &self.items[query * self.k..(query + 1) * self.k]
    }

    /// The scores of these items; a zero is positive.
    pub fn scores(&self, query: usize) -> &[f32] {
        &self.scores[query * self.k..(query + 1) * self.k]
    }
}

/// Score and index in one number that is larger for the better item: no two items are equal.
fn key(score: f32, item: usize) -> u64 {
    let bits = (score + 0.0).to_bits(); // −0 + 0 = +0: the two are tied
    let ordered = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
    u64::from(ordered) << 32 | u64::from(!(item as u32))
}

fn score_of(key: u64) -> f32 {
    let ordered = (key >> 32) as u32;
    f32::from_bits(if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered })
}

/// Lists of candidates for some neighbouring queries.
///
/// A list takes what is above its `floor`, a score that `k` items before reached; when it is full it is cut back to `k`.
/// Items come in ascending order, so one that equals the floor has a larger index than those `k` and stays out.
#[derive(Debug, Clone)]
pub struct Lists {
    first: usize,
    k: usize,
    room: usize,
    keys: Vec<u64>, // [queries, room]
    filled: Vec<u32>,
    floor: Vec<f32>,
}

impl Lists {
    fn new(queries: Range<usize>, k: usize) -> Self {
        let room = k + k / 4 + 16;
        let n = queries.len();
        // Nothing can be above an infinite floor: no list is kept for k = 0.
        let floor = if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        let (keys, filled, floor) = (vec![0; n * room], vec![0; n], vec![floor; n]);
        Self { first: queries.start, k, room, keys, filled, floor }
    }

    /// Takes an item whose index is larger than all before.
    #[inline]
    fn offer(&mut self, query: usize, score: f32, item: usize) {
        if score > self.floor[query] {
            self.push(query, key(score, item));
        }
    }

    #[inline]
    fn push(&mut self, query: usize, key: u64) {
        let list = &mut self.keys[query * self.room..(query + 1) * self.room];
        let filled = self.filled[query] as usize;
        list[filled] = key;
        self.filled[query] += 1;
        if filled + 1 == self.room {
            list.select_nth_unstable_by(self.k - 1, |a, b| b.cmp(a));
            self.filled[query] = self.k as u32;
            self.floor[query] = score_of(list[self.k - 1]);
        }
    }

    /// What was merged has smaller indices: its floors hold here as well.
    fn raise_floors(&mut self, total: &Self) {
        let floors = &total.floor[self.first - total.first..];
        self.floor.iter_mut().zip(floors).for_each(|(floor, &all)| *floor = floor.max(all));
    }

    fn add(&mut self, part: &Self) {
        for query in 0..part.filled.len() {
            let list = &part.keys[query * part.room..][..part.filled[query] as usize];
            let query = query + part.first - self.first;
            let floor = self.floor[query]; // of the lanes before; this lane's items come in no order
            for &key in list.iter().filter(|&&key| score_of(key) > floor) {
                self.push(query, key);
            }
        }
    }

    fn finish(mut self, items: usize) -> TopK {
        let k = self.k.min(items);
        let mut top = TopK { k, items: Vec::new(), scores: Vec::new() };
        for (list, &filled) in self.keys.chunks_mut(self.room).zip(&self.filled) {
            let list = &mut list[..filled as usize];
            list.sort_unstable_by(|a, b| b.cmp(a));
            top.items.extend(list[..k].iter().map(|&key| !(key as u32)));
            top.scores.extend(list[..k].iter().map(|&key| score_of(key)));
        }
        top
    }
}

/// A stretch of scores that is looked at as one: mostly nothing in it is above its floor.
const STRETCH: usize = 32;

/// Bit `i` is set where `scores[i]` is above `floor(i)`.
#[inline(always)]
fn above(scores: &[f32], floor: impl Fn(usize) -> f32) -> u32 {
    let bit = |i| u32::from(scores[i] > floor(i)) << i;
    if scores.len() == STRETCH {
        (0..STRETCH).fold(0, |mask, i| mask | bit(i)) // a known length: vector code
    } else {
        (0..scores.len()).fold(0, |mask, i| mask | bit(i))
    }
}

/// The places of a mask's set bits, ascending: for consumers that look at scores by the stretch.
#[inline(always)]
pub fn places(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (place < u32::BITS).then_some(place as usize)
    })
}

impl Consumer for TopTexts {
    type State = (Lists, usize); // lists and how many texts there are
    type Output = TopK;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State {
        (Lists::new(images, self.k.min(texts.len())), texts.len())
    }

    fn hint(&self, (lane, _): &mut Self::State, (total, _): &Self::State) {
        lane.raise_floors(total);
    }

    fn tile(&self, (lists, _): &mut Self::State, tile: &Tile<'_>) {
        widest(
            #[inline(always)]
            || {
                for (image, row) in tile.rows() {
                    let query = image - lists.first;
                    let texts = tile.texts().step_by(STRETCH);
                    for (stretch, text0) in row.chunks(STRETCH).zip(texts) {
                        let floor = lists.floor[query];
                        for i in places(above(stretch, |_| floor)) {
                            lists.offer(query, stretch[i], text0 + i);
                        }
                    }
                }
            },
        );
    }

    fn merge(&self, (total, _): &mut Self::State, (lane, _): Self::State) {
        total.add(&lane);
    }

    fn finish(&self, (total, texts): Self::State) -> TopK {
        total.finish(texts)
    }
}

impl Consumer for TopImages {
    type State = (Lists, usize); // lists and how many images there are
    type Output = TopK;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State {
        (Lists::new(texts, self.k.min(images.len())), images.len())
    }

    fn hint(&self, (lane, _): &mut Self::State, (total, _): &Self::State) {
        lane.raise_floors(total);
    }

    fn tile(&self, (lists, _): &mut Self::State, tile: &Tile<'_>) {
        let first = tile.texts().start - lists.first;
        widest(
            #[inline(always)]
            || {
                for (image, row) in tile.rows() {
                    for (stretch, query0) in row.chunks(STRETCH).zip((first..).step_by(STRETCH)) {
                        let floors = &lists.floor[query0..query0 + stretch.len()];
                        for i in places(above(stretch, |i| floors[i])) {
                            lists.offer(query0 + i, stretch[i], image);
                        }
                    }
                }
            },
        );
    }

    fn merge(&self, (total, _): &mut Self::State, (lane, _): Self::State) {
        total.add(&lane);
    }

    fn finish(&self, (total, images): Self::State) -> TopK {
        total.finish(images)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPES, everywhere, grid, tiles, unit};
    use super::*;
    use crate::ScoreMatrix;

    fn sorted(scores: &ScoreMatrix, k: usize) -> TopK {
        let k = k.min(scores.texts());
        let mut top = TopK { k, items: Vec::new(), scores: Vec::new() };
        for i in 0..scores.images() {
            let row = scores.row(i);
            let mut order: Vec<_> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).unwrap()); // stable: smaller index first
            top.items.extend(order[..k].iter().map(|&j| j as u32));
            top.scores.extend(order[..k].iter().map(|&j| row[j] + 0.0));
        }
        top
    }

    #[test]
    fn as_by_sorting_the_matrix() {
        for (n, m, d) in SHAPES {
            for most in [0, 1, 2, 3] {
                let values = |rows, seed| match most {
                    0 => unit(rows, d, seed),
                    most => grid(rows * d, most - 1, seed), // 0: all scores are equal
                };
                let (v, w) = (values(n, 1), values(m, 2));
                let tiles = tiles(&v, &w, d);
                let scores = tiles.scores();
                let columns = scores.transpose();
                for k in [0, 1, 10, 100, 2000] {
                    let (texts, images) = (sorted(&scores, k), sorted(&columns, k));
                    everywhere(&tiles, |tiles| {
                        let (got_texts, got_images) =
                            tiles.run(&(TopTexts::new(k), TopImages::new(k)));
                        assert_eq!(got_texts, texts, "top {k} texts, {n} × {m} × {d}");
                        assert_eq!(got_images, images, "top {k} images, {n} × {m} × {d}");
                    });
                }
            }
        }
    }

    /// Scores that rise along both axes: every item enters every list, and lists are cut back over and over.
    #[test]
    fn the_best_come_last() {
        let v: Vec<_> = (0..700).map(|i| (i / 2) as f32).collect();
        let tiles = tiles(&v, &v, 1);
        let (texts, images) = tiles.run(&(TopTexts::new(5), TopImages::new(5)));
        assert_eq!(texts.items(3), [698, 699, 696, 697, 694]);
        assert_eq!(images.items(3), [698, 699, 696, 697, 694]);
        assert_eq!(texts.items(0), [0, 1, 2, 3, 4]); // all zero
    }

    #[test]
    fn keys_keep_order_and_score() {
        let scores = [-f32::MAX, -1.0, -1e-40, 0.0, 1e-40, 1.0, f32::MAX];
        for pair in scores.windows(2) {
            assert!(key(pair[0], 0) < key(pair[1], 9), "{pair:?}");
        }
        assert!(scores.iter().all(|&s| score_of(key(s, 7)) == s));
        assert_eq!(key(-0.0, 3), key(0.0, 3));
        assert!(key(0.5, 3) > key(0.5, 4));
    }
}

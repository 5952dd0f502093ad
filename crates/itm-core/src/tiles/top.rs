//! The k best texts of every image, and the k best images of every text.

use std::ops::Range;

use super::kernel::widest;
use super::{Consumer, Tile};

/// The `k` texts with the largest scores for every image, the smaller index first on ties; all texts, if there are fewer.
#[derive(Debug, Clone, Copy)]
pub struct TopTexts {
    k: usize,
}

/// The `k` images with the largest scores for every text, the smaller index first on ties; all images, if there are fewer.
#[derive(Debug, Clone, Copy)]
pub struct TopImages {
    k: usize,
}

/// What [`TopTexts`] and [`TopImages`] give: the best items of every query, best first.
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

    /// The scores of the query's items, best first; a zero is always +0.
    pub fn scores(&self, query: usize) -> &[f32] {
        &self.scores[query * self.k..(query + 1) * self.k]
    }
}

/// The number by which lists rank their items: an f32 score, or an integer that replaces it.
pub trait Level: Copy + PartialOrd + Send {
    /// No number is below.
    const LOWEST: Self;
    /// No number is above.
    const HIGHEST: Self;

    /// Bits in the order of the numbers.
    fn ordered(self) -> u32;

    /// The number with these ordered bits; a zero is always +0.
    fn of_ordered(ordered: u32) -> Self;

    /// The number minus `slack`: two numbers closer than `slack` may be in the wrong order.
    fn lowered(self, slack: i32) -> Self;
}

impl Level for f32 {
    const LOWEST: Self = f32::NEG_INFINITY;
    const HIGHEST: Self = f32::INFINITY;

    fn ordered(self) -> u32 {
        let bits = (self + 0.0).to_bits(); // −0 + 0 = +0: the two are tied
        if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
    }

    fn of_ordered(ordered: u32) -> Self {
        f32::from_bits(if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered })
    }

    /// Scores are exact: lists of scores have no slack.
    fn lowered(self, _slack: i32) -> Self {
        self
    }
}

impl Level for i32 {
    const LOWEST: Self = i32::MIN;
    const HIGHEST: Self = i32::MAX;

    fn ordered(self) -> u32 {
        self.cast_unsigned() ^ 1 << 31
    }

    fn of_ordered(ordered: u32) -> Self {
        (ordered ^ 1 << 31).cast_signed()
    }

    fn lowered(self, slack: i32) -> Self {
        self.saturating_sub(slack)
    }
}

/// Score and index in one number that is larger for the better item: no two items are equal.
fn key<T: Level>(score: T, item: usize) -> u64 {
    u64::from(score.ordered()) << 32 | u64::from(!(item as u32))
}

fn score_of<T: Level>(key: u64) -> T {
    T::of_ordered((key >> 32) as u32)
}

fn item_of(key: u64) -> u32 {
    !(key as u32)
}

/// Lists of candidates for some neighbouring queries.
///
/// A list takes the items above its `floor`: a score that `k` earlier items reached, minus the slack of the query. A full
/// list is cut back to its `k` best items and all others above the floor. Items come in ascending order: an item that
/// equals a floor without slack has a larger index than those `k` items and stays out.
///
/// If a list stays full because of its slack, it is crowded: it is given up and keeps nothing.
#[derive(Debug, Clone)]
pub struct Lists<T = f32> {
    first: usize,
    k: usize,
    room: usize,
    keys: Vec<u64>, // [queries, room]
    filled: Vec<u32>,
    floor: Vec<T>,
    slack: Vec<i32>, // of each query, or empty: none
}

/// Places that must be free after a cut.
const FREE: usize = 8;

impl<T: Level> Lists<T> {
    fn new(queries: Range<usize>, k: usize) -> Self {
        Self::with_room(queries, k, k + k / 4 + 2 * FREE, Vec::new())
    }

    /// Lists that keep the `k` best items, and all others within the slack of the query.
    pub(super) fn with_slack(queries: Range<usize>, k: usize, slack: &[i32]) -> Self {
        let slack = slack[queries.clone()].to_vec();
        Self::with_room(queries, k, 2 * k + 4 * FREE, slack)
    }

    fn with_room(queries: Range<usize>, k: usize, room: usize, slack: Vec<i32>) -> Self {
        let n = queries.len();
        // Nothing can be above the highest floor: no list is kept for k = 0.
        let floor = if k == 0 { T::HIGHEST } else { T::LOWEST };
        let (keys, filled, floor) = (vec![0; n * room], vec![0; n], vec![floor; n]);
        Self { first: queries.start, k, room, keys, filled, floor, slack }
    }

    /// Takes an item; its index must be larger than all before.
    #[inline]
    fn offer(&mut self, query: usize, score: T, item: usize) {
        if score > self.floor[query] {
            self.push(query, key(score, item));
        }
    }

    #[inline]
    fn push(&mut self, query: usize, key: u64) {
        let filled = self.filled[query] as usize;
        self.keys[query * self.room + filled] = key;
        self.filled[query] += 1;
        if filled + 1 == self.room {
            self.cut(query);
        }
    }

    /// Cuts a list back to its `k` best items and all others above its new floor.
    fn cut(&mut self, query: usize) {
        let list = &mut self.keys[query * self.room..][..self.filled[query] as usize];
        list.select_nth_unstable_by(self.k - 1, |a, b| b.cmp(a));
        let slack = self.slack.get(query).copied().unwrap_or(0);
        let floor = score_of::<T>(list[self.k - 1]).lowered(slack);
        let mut kept = self.k;
        for at in self.k..list.len() {
            if score_of::<T>(list[at]) > floor {
                list.swap(kept, at);
                kept += 1;
            }
        }
        if kept + FREE > self.room {
            self.give_up(query);
        } else {
            (self.filled[query], self.floor[query]) = (kept as u32, floor);
        }
    }

    fn give_up(&mut self, query: usize) {
        (self.filled[query], self.floor[query]) = (0, T::HIGHEST);
    }

    /// Merged items have smaller indices, so their floors hold here as well.
    pub(super) fn raise_floors(&mut self, total: &Self) {
        let floors = &total.floor[self.first - total.first..];
        for (floor, &all) in self.floor.iter_mut().zip(floors) {
            *floor = if all > *floor { all } else { *floor };
        }
    }

    pub(super) fn add(&mut self, part: &Self) {
        for query in 0..part.filled.len() {
            let list = &part.keys[query * part.room..][..part.filled[query] as usize];
            let is_crowded = self.k > 0 && part.floor[query] == T::HIGHEST;
            let query = query + part.first - self.first;
            if is_crowded {
                self.give_up(query);
            }
            let floor = self.floor[query]; // of the lanes before; this lane's items come in no order
            for &key in list.iter().filter(|&&key| score_of::<T>(key) > floor) {
                self.push(query, key);
            }
        }
    }

    /// The candidates of each query, in no order; `None` for a crowded list.
    pub(super) fn candidates(&mut self) -> Vec<Option<Vec<u32>>> {
        let queries = self.filled.len();
        let of = |query: usize| {
            let filled = self.filled[query] as usize;
            if filled > self.k && self.k > 0 {
                self.cut(query);
            }
            let list = &self.keys[query * self.room..][..self.filled[query] as usize];
            let is_crowded = self.k > 0 && self.floor[query] == T::HIGHEST;
            (!is_crowded).then(|| list.iter().map(|&key| item_of(key)).collect())
        };
        (0..queries).map(of).collect()
    }

    /// Takes in the rows of a tile: queries are images.
    pub(super) fn take_rows(&mut self, tile: &Tile<'_, T>) {
        widest(
            #[inline(always)]
            || {
                for (image, row) in tile.rows() {
                    let query = image - self.first;
                    let texts = tile.texts().step_by(STRETCH);
                    for (stretch, text0) in row.chunks(STRETCH).zip(texts) {
                        let floor = self.floor[query];
                        for i in places(above(stretch, |_| floor)) {
                            self.offer(query, stretch[i], text0 + i);
                        }
                    }
                }
            },
        );
    }

    /// Takes in the columns of a tile: queries are texts.
    pub(super) fn take_columns(&mut self, tile: &Tile<'_, T>) {
        let first = tile.texts().start - self.first;
        widest(
            #[inline(always)]
            || {
                for (image, row) in tile.rows() {
                    for (stretch, query0) in row.chunks(STRETCH).zip((first..).step_by(STRETCH)) {
                        let floors = &self.floor[query0..query0 + stretch.len()];
                        for i in places(above(stretch, |i| floors[i])) {
                            self.offer(query0 + i, stretch[i], image);
                        }
                    }
                }
            },
        );
    }
}

impl Lists {
    fn finish(mut self, items: usize) -> TopK {
        let mut top = TopK::new(self.k.min(items));
        for (list, &filled) in self.keys.chunks_mut(self.room).zip(&self.filled) {
            top.push(&mut list[..filled as usize]);
        }
        top
    }
}

impl TopK {
    /// No query yet.
    pub(super) fn new(k: usize) -> Self {
        Self { k, items: Vec::new(), scores: Vec::new() }
    }

    /// Appends a query: the best of these items.
    fn push(&mut self, keys: &mut [u64]) {
        keys.sort_unstable_by(|a, b| b.cmp(a));
        self.items.extend(keys[..self.k].iter().map(|&key| item_of(key)));
        self.scores.extend(keys[..self.k].iter().map(|&key| score_of::<f32>(key)));
    }

    /// Appends a query: the best of these items with their scores.
    pub(super) fn push_scored(&mut self, scored: impl Iterator<Item = (u32, f32)>) {
        let mut keys: Vec<_> = scored.map(|(item, score)| key(score, item as usize)).collect();
        self.push(&mut keys);
    }

    /// Appends the queries of `next`.
    pub(super) fn joined(mut self, next: Self) -> Self {
        self.items.extend(next.items);
        self.scores.extend(next.scores);
        self
    }

    /// Appends a query of another result.
    pub(super) fn push_list(&mut self, other: &Self, query: usize) {
        self.items.extend(other.items(query));
        self.scores.extend(other.scores(query));
    }
}

/// The number of scores compared at once: mostly none of them is above its floor.
const STRETCH: usize = 32;

/// Bit `i` is set where `scores[i]` is above `floor(i)`.
#[inline(always)]
fn above<T: Level>(scores: &[T], floor: impl Fn(usize) -> T) -> u32 {
    let bit = |i| u32::from(scores[i] > floor(i)) << i;
    if scores.len() == STRETCH {
        (0..STRETCH).fold(0, |mask, i| mask | bit(i)) // a known length: vector code
    } else {
        (0..scores.len()).fold(0, |mask, i| mask | bit(i))
    }
}

/// The places of a mask's set bits, ascending: for consumers that compare many scores at once.
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
        lists.take_rows(tile);
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
        lists.take_columns(tile);
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
        assert!(scores.iter().all(|&s| score_of::<f32>(key(s, 7)) == s));
        assert_eq!(key(-0.0f32, 3), key(0.0f32, 3));
        let integers = [i32::MIN, -1, 0, 1, i32::MAX];
        assert!(integers.windows(2).all(|pair| key(pair[0], 0) < key(pair[1], 9)));
        assert!(integers.iter().all(|&s| score_of::<i32>(key(s, 7)) == s));
        assert!(key(0.5, 3) > key(0.5, 4));
    }
}

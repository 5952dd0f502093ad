//! Lists of candidates, cut back whenever they are full.

use std::ops::Range;

use super::super::{Side, Tile, widest};
use super::TopK;
use super::level::{Level, item_of, key, score_of};

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
    pub(super) fn new(queries: Range<usize>, k: usize) -> Self {
        Self::with_room(queries, k, k + k / 4 + 2 * FREE, Vec::new())
    }

    /// Lists that keep the `k` best items, and all others within the slack of the query.
    pub(in crate::tiles) fn with_slack(queries: Range<usize>, k: usize, slack: &[i32]) -> Self {
        let slack = slack[queries.clone()].to_vec();
        Self::with_room(queries, k, 2 * k + 4 * FREE, slack)
    }

    fn with_room(queries: Range<usize>, k: usize, room: usize, slack: Vec<i32>) -> Self {
        let n = queries.len();
        let all =
            n.checked_mul(room).filter(|&all| Vec::<u64>::new().try_reserve_exact(all).is_ok());
        let all = all
            .unwrap_or_else(|| panic!("lists of {k} items for {n} queries do not fit into memory"));
        // Nothing can be above the highest floor: no list is kept for k = 0.
        let floor = if k == 0 { T::HIGHEST } else { T::LOWEST };
        let (keys, filled, floor) = (vec![0; all], vec![0; n], vec![floor; n]);
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

    fn is_crowded(&self, query: usize) -> bool {
        self.k > 0 && self.floor[query] == T::HIGHEST
    }

    /// Merged items have smaller indices, so their floors hold here as well.
    pub(in crate::tiles) fn raise_floors(&mut self, total: &Self) {
        let floors = &total.floor[self.first - total.first..];
        for (floor, &all) in self.floor.iter_mut().zip(floors) {
            *floor = if all > *floor { all } else { *floor };
        }
    }

    pub(in crate::tiles) fn add(&mut self, part: &Self) {
        for query in 0..part.filled.len() {
            let list = &part.keys[query * part.room..][..part.filled[query] as usize];
            let is_crowded = part.is_crowded(query);
            let query = query + part.first - self.first;
            if is_crowded {
                self.give_up(query);
            }
            let floor = self.floor[query]; // of the lanes before; this lane's items come in no order
            for &key in list.iter().filter(|&&key| score_of::<T>(key) > floor) {
                if self.is_crowded(query) {
                    break; // an item before gave the list up: the others must not fill it again
                }
                self.push(query, key);
            }
        }
    }

    /// The candidates of each query, in no order; `None` for a crowded list.
    pub(in crate::tiles) fn candidates(&mut self) -> Vec<Option<Vec<u32>>> {
        let queries = self.filled.len();
        let of = |query: usize| {
            let filled = self.filled[query] as usize;
            if filled > self.k && self.k > 0 {
                self.cut(query);
            }
            let list = &self.keys[query * self.room..][..self.filled[query] as usize];
            (!self.is_crowded(query)).then(|| list.iter().map(|&key| item_of(key)).collect())
        };
        (0..queries).map(of).collect()
    }

    /// Takes in a tile.
    pub(in crate::tiles) fn take(&mut self, queries: Side, tile: &Tile<'_, T>) {
        match queries {
            Side::Images => self.take_rows(tile),
            Side::Texts => self.take_columns(tile),
        }
    }

    /// Takes in the rows of a tile: queries are images.
    fn take_rows(&mut self, tile: &Tile<'_, T>) {
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
    fn take_columns(&mut self, tile: &Tile<'_, T>) {
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
    pub(super) fn finish(mut self) -> TopK {
        let mut top = TopK::new(self.k);
        for (list, &filled) in self.keys.chunks_mut(self.room).zip(&self.filled) {
            top.push(&mut list[..filled as usize]);
        }
        top
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(
        expected = "lists of 1000 items for 1152921504606846976 queries do not fit into memory"
    )]
    fn lists_beyond_memory_are_a_panic_and_no_abort() {
        Lists::<f32>::new(0..1 << 60, 1000);
    }

    /// Two lanes of 20 equal scores each fit in the room of 34, but not together. The items that follow must not fill the list again.
    #[test]
    fn a_list_that_is_crowded_by_a_merge_stays_crowded() {
        let lane = |items: Range<usize>| {
            let mut lists = Lists::with_slack(0..1, 1, &[100]);
            items.for_each(|item| lists.offer(0, 7, item));
            lists
        };
        let mut total = lane(0..20);
        total.add(&lane(20..40));
        assert_eq!(total.candidates(), [None]);
        total.add(&lane(40..45));
        assert_eq!(total.candidates(), [None]);
        assert_eq!(lane(0..20).candidates()[0].as_ref().map(Vec::len), Some(20));
    }
}

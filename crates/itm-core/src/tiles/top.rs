//! The k best texts of every image, and the k best images of every text.

mod level;
mod lists;

use std::ops::Range;

use super::{Consumer, Side, Tile};
pub(super) use level::{item_of, key, score_of};
pub(super) use lists::Lists;
pub use lists::places;

/// The `k` items with the largest scores for every query, the smaller index first on ties; all items, if there are fewer. If the queries
/// are images, the items are texts; if they are texts, images.
#[derive(Debug, Clone, Copy)]
pub struct Top {
    queries: Side,
    k: usize,
}

/// What [`Top`] gives: the best items of every query, best first.
#[derive(Debug, Clone, PartialEq)]
pub struct TopK<S = f32> {
    k: usize,
    items: Vec<u32>,
    scores: Vec<S>,
}

impl Top {
    /// Keeps `k` items per query. A pass panics if its lists do not fit into memory.
    pub fn new(queries: Side, k: usize) -> Self {
        Self { queries, k }
    }
}

impl<S> TopK<S> {
    /// From row-major lists of `k` items per query.
    ///
    /// # Panics
    /// If the lengths differ or are not a multiple of `k`.
    pub fn of_lists(k: usize, items: Vec<u32>, scores: Vec<S>) -> Self {
        assert_eq!(items.len(), scores.len(), "one score for each item");
        assert!(items.is_empty() || items.len().is_multiple_of(k), "lists of {k}");
        Self { k, items, scores }
    }

    /// How many items each query has: `k`, or all there are.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Number of queries; 0 for lists of no items.
    pub fn queries(&self) -> usize {
        self.items.len().checked_div(self.k).unwrap_or(0)
    }

    /// The items of a query, best first.
    ///
    /// # Panics
    /// If there is no such query.
    pub fn items(&self, query: usize) -> &[u32] {
        &self.items[self.places(query)]
    }

    /// The scores of the query's items, best first; a zero of a pass is always +0.
    ///
    /// # Panics
    /// If there is no such query.
    pub fn scores(&self, query: usize) -> &[S] {
        &self.scores[self.places(query)]
    }

    fn places(&self, query: usize) -> Range<usize> {
        let queries = self.items.len().checked_div(self.k).unwrap_or(usize::MAX); // of no items
        assert!(query < queries, "query {query} of {queries}");
        query * self.k..(query + 1) * self.k
    }
}

impl TopK {
    /// No query yet.
    pub(super) fn new(k: usize) -> Self {
        Self { k, items: Vec::new(), scores: Vec::new() }
    }

    /// Appends a query: the best of these items.
    pub(super) fn push(&mut self, keys: &mut [u64]) {
        if (1..keys.len()).contains(&self.k) {
            keys.select_nth_unstable_by(self.k - 1, |a, b| b.cmp(a));
        }
        let best = &mut keys[..self.k];
        best.sort_unstable_by(|a, b| b.cmp(a));
        self.items.extend(best.iter().map(|&key| item_of(key)));
        self.scores.extend(best.iter().map(|&key| score_of::<f32>(key)));
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

/// The best `k` items (or all), best first, the smaller index first on ties.
pub(crate) fn best_items(scores: &[f32], k: usize) -> Vec<u32> {
    let mut top = TopK::new(k.min(scores.len()));
    top.push_scored((0..).zip(scores.iter().copied()));
    top.items
}

impl Consumer for Top {
    type State = Lists;
    type Output = TopK;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Lists {
        let k = self.k.min(self.queries.other().of(images.len(), texts.len()));
        Lists::new(self.queries.of(images, texts), k)
    }

    fn hint(&self, lane: &mut Lists, total: &Lists) {
        lane.raise_floors(total);
    }

    fn tile(&self, lists: &mut Lists, tile: &Tile<'_>) {
        lists.take(self.queries, tile);
    }

    fn merge(&self, total: &mut Lists, lane: Lists) {
        total.add(&lane);
    }

    fn finish(&self, total: Lists) -> TopK {
        total.finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::tests::{SHAPES, everywhere, grid, tiles, unit};
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
                            tiles.run(&(Top::new(Side::Images, k), Top::new(Side::Texts, k)));
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
        let (texts, images) = tiles.run(&(Top::new(Side::Images, 5), Top::new(Side::Texts, 5)));
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

    proptest! {
        /// The selected items are the head of a full ranking. Scores include infinities and zeros of both signs.
        #[test]
        fn the_best_items_head_the_ranking(
            row in vec(prop_oneof![
                (-2i8..3).prop_map(f32::from),
                -1.0f32..1.0,
                Just(-0.0),
                Just(f32::INFINITY),
                Just(f32::NEG_INFINITY),
            ], 1..60),
            depth in 0usize..70,
        ) {
            let full = ScoreMatrix::new(1, row.len(), row.clone()).unwrap().ranking(0);
            let best: Vec<usize> = best_items(&row, depth).into_iter().map(|i| i as usize).collect();
            prop_assert_eq!(&best[..], &full[..depth.min(row.len())]);
        }
    }
}

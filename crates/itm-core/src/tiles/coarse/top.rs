//! The k best items behind the coarse product.

use std::ops::Range;

use rayon::prelude::*;

use super::super::top::Lists;
use super::super::{Consumer, Side, Tile, Tiles, Top, TopK, run};
use super::bounds::Bounds;
use super::{Integers, SHARE};

/// One query in this number is tried first.
const SAMPLE: usize = 64;

/// Queries whose candidates one task computes in f32.
const TASK: usize = 64;

/// Candidates of each query: the `k` best items by integer scores, and all items that the slack leaves open.
struct CoarseCandidates {
    k: usize,
    queries: Side,
    slack: Vec<i32>,
}

impl Consumer<i32> for CoarseCandidates {
    type State = Lists<i32>;
    type Output = Vec<Option<Vec<u32>>>;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State {
        let k = self.k.min(self.queries.other().of(images.len(), texts.len()));
        Lists::with_slack(self.queries.of(images, texts), k, &self.slack)
    }

    fn hint(&self, lane: &mut Self::State, total: &Self::State) {
        lane.raise_floors(total);
    }

    fn tile(&self, lists: &mut Self::State, tile: &Tile<'_, i32>) {
        lists.take(self.queries, tile);
    }

    fn merge(&self, total: &mut Self::State, lane: Self::State) {
        total.add(&lane);
    }

    fn finish(&self, mut total: Self::State) -> Self::Output {
        total.candidates()
    }
}

impl Tiles<'_> {
    /// The `k` best items of every query: `run(&Top::new(queries, k))`, in less time for many wide embeddings.
    ///
    /// ```
    /// use itm_core::tiles::{Embeddings, Side, Tiles};
    ///
    /// let images = Embeddings::new("images", 2, 2, &[1.0, 0.0, 0.0, 1.0])?;
    /// let texts = Embeddings::new("texts", 3, 2, &[0.8, 0.6, 1.0, 0.0, 0.6, 0.8])?;
    /// let tiles = Tiles::new(images, texts)?;
    /// assert_eq!(tiles.top(Side::Images, 2).items(0), [1, 0]); // texts of image 0
    /// assert_eq!(tiles.top(Side::Texts, 1).items(2), [1]);
    /// # Ok::<(), itm_core::Error>(())
    /// ```
    pub fn top(&self, queries: Side, k: usize) -> TopK {
        // Each of the k items needs its f32 score, so a long list gains nothing.
        let is_short = SHARE.saturating_mul(k) <= queries.of(self.texts(), self.images());
        match is_short.then(|| self.bounds()).flatten() {
            Some(bounds) if !self.is_crowded(k, queries) => self.top_coarse(&bounds, k, queries),
            _ => self.run(&Top::new(queries, k)),
        }
    }

    /// Whether a sample of the queries has more open items than lists have room, in more than a quarter of its lists.
    pub(super) fn is_crowded(&self, k: usize, queries: Side) -> bool {
        let n = queries.of(self.images(), self.texts());
        let sample: Vec<_> = (0..n).step_by(SAMPLE).collect();
        let lists = self.with_queries(&sample, queries, |tiles| {
            let bounds = Bounds::new(&tiles.images, &tiles.texts)?;
            Some(tiles.candidates(&bounds, k, queries))
        });
        lists
            .is_none_or(|lists| 4 * lists.iter().filter(|list| list.is_none()).count() > n / SAMPLE)
    }

    pub(super) fn candidates(
        &self,
        bounds: &Bounds,
        k: usize,
        queries: Side,
    ) -> Vec<Option<Vec<u32>>> {
        let candidates = CoarseCandidates { k, queries, slack: bounds.slack(queries) };
        run(self.images(), self.texts(), &candidates, |images, texts, lists| {
            let mut integers = Integers::new(self, bounds);
            for columns in super::pieces(texts, self.tile.1) {
                for rows in super::pieces(images.clone(), self.tile.0) {
                    crate::interrupt::check();
                    candidates.tile(lists, &integers.tile(rows, columns.clone()));
                }
            }
        })
    }

    /// Candidates by integers, their scores in f32; crowded queries all in f32.
    pub(super) fn top_coarse(&self, bounds: &Bounds, k: usize, queries: Side) -> TopK {
        let lists = self.candidates(bounds, k, queries);
        let crowded: Vec<_> = (0..lists.len()).filter(|&query| lists[query].is_none()).collect();
        let exact = self.with_queries(&crowded, queries, |tiles| tiles.run(&Top::new(queries, k)));
        let k = k.min(queries.of(self.texts(), self.images()));
        let parts = lists.par_chunks(TASK).enumerate().map(|(task, lists)| {
            let mut top = TopK::new(k);
            for (query, list) in (task * TASK..).zip(lists) {
                match list {
                    Some(items) => self.push_exact(&mut top, query, items, queries),
                    None => {
                        let at = crowded.binary_search(&query).expect("a crowded query");
                        top.push_list(&exact, at);
                    }
                }
            }
            top
        });
        parts.collect::<Vec<_>>().into_iter().fold(TopK::new(k), TopK::joined)
    }

    fn push_exact(&self, top: &mut TopK, query: usize, items: &[u32], queries: Side) {
        let mut scores = vec![0.0; items.len()];
        let pair = |&item: &u32| {
            let item = item as usize;
            queries.of((query, item), (item, query))
        };
        self.singles(items.iter().map(pair), |at, score| scores[at] = score);
        top.push_scored(items.iter().copied().zip(scores));
    }
}

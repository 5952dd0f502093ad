//! The consumer that reads tiles for one correction of one direction.

use std::ops::Range;

use itm_core::eval::Standing;
use itm_core::scored::Scored;
use itm_core::tiles::{Consumer, RankTally, Targets, Tile, places, widest};
use itm_core::{Pairs, Result};

use super::buffers::BestLists;
use super::filter::{STRETCH, TileFilter, above, all, below, edges, largest};
use crate::{AnyCorrection, Direction, TopLists};

/// For each query of one direction, under one correction: the rank of its true item, and its `k` best items.
///
/// ```text
/// greater(q) = #{ j : u(q, j) > u(q, j*) }      equal(q) = #{ j : u(q, j) = u(q, j*) }
/// ```
///
/// Among several true items `j*` is the best one, the smaller index on ties. Either part may be left out.
#[derive(Debug)]
pub(crate) struct RankScan<'a> {
    filter: TileFilter<'a>,
    thresholds: Option<Thresholds>,
    k: usize,
}

/// The best true item of each query: the largest corrected score, the smaller index on ties.
#[derive(Debug)]
struct Thresholds {
    targets: Targets<f64>,
    near: Vec<f32>, // their scores, rounded
}

/// The result of a [`RankScan`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScanResult {
    /// The standing of the true item of each query; empty where no ranks are asked for.
    pub(crate) standings: Vec<Standing>,
    /// The best items of each query.
    pub(crate) top: TopLists,
}

impl<'a> RankScan<'a> {
    /// Keeps the `k` best items of every query (all, if there are fewer) and counts no ranks. The scores it reads must pass
    /// [`AnyCorrection::check`].
    pub(crate) fn new(correction: &'a AnyCorrection, k: usize) -> Self {
        Self {
            filter: TileFilter::new(correction.direction(), correction.map()),
            thresholds: None,
            k,
        }
    }

    /// Counts ranks too; the scores of the true pairs are computed now.
    ///
    /// # Errors
    /// As [`Scored::pairs`].
    ///
    /// # Panics
    /// If the numbers of images and texts differ from `pairs`.
    pub(crate) fn with_ranks(mut self, scores: &dyn Scored, pairs: &Pairs) -> Result<Self> {
        let shape = (scores.images(), scores.texts());
        assert_eq!(shape, (pairs.images(), pairs.texts()), "scores and pairs of one shape");
        let (images, texts) = pairs.list();
        let plain = scores.pairs(images, &texts)?;
        let listed = images.iter().zip(&texts).zip(plain);
        let exact = listed.map(|((&image, &text), score)| self.filter.exact(image, text, score));
        let [of_images, of_texts] = Targets::of_pairs(pairs, &exact.collect::<Vec<_>>());
        let targets = self.filter.direction.queries(of_images, of_texts);
        let near = targets.score.iter().map(|&score| score as f32).collect();
        self.thresholds = Some(Thresholds { targets, near });
        Ok(self)
    }

    /// Decides in f64 what f32 leaves open of a stretch. Bit `i` of two masks says so of its `i`-th score: for the rank, and for the
    /// list.
    #[inline(always)]
    fn decide(&self, state: &mut ScanState, image: usize, text0: usize, row: &[f32], of: [u32; 2]) {
        let [rank, list] = of;
        for i in places(rank | list) {
            let (query, item) = self.filter.direction.sides(image, text0 + i);
            let corrected = self.filter.exact(image, text0 + i, row[i]);
            if let (1, Some(thresholds)) = (rank >> i & 1, &self.thresholds) {
                state.counts.count(&thresholds.targets, query, item, corrected);
            }
            if list >> i & 1 == 1 {
                state.lists.offer(query - state.lists.first, corrected, item);
            }
        }
    }

    /// A row of a tile whose query is the image.
    #[inline(always)]
    fn by_image(
        &self,
        state: &mut ScanState,
        image: usize,
        texts: Range<usize>,
        row: &[f32],
        slack: f32,
    ) {
        let rank = self.thresholds.as_ref().map(|t| edges(t.near[image], slack));
        let (mut greater, at) = (0, image - state.lists.first);
        for (stretch, text0) in row.chunks(STRETCH).zip(texts.step_by(STRETCH)) {
            let (u, n) = (self.filter.stretch(image, text0, stretch), stretch.len());
            let mut open = 0;
            if let Some((high, low)) = rank {
                let above = above(&u, |_| high, n);
                open = all(n) & !(above | below(&u, |_| low, n));
                greater += above.count_ones();
            }
            let floor = edges(state.lists.near[at], slack).1;
            let list = all(n) & !below(&u, |_| floor, n);
            self.decide(state, image, text0, stretch, [open, list]);
        }
        if rank.is_some() {
            state.counts.greater[image - state.counts.first] += greater;
        }
    }

    /// A row of a tile whose queries are its texts.
    #[inline(always)]
    fn by_text(
        &self,
        state: &mut ScanState,
        image: usize,
        texts: Range<usize>,
        row: &[f32],
        slack: f32,
    ) {
        let first = texts.start;
        for (stretch, text0) in row.chunks(STRETCH).zip(texts.step_by(STRETCH)) {
            let (u, n) = (self.filter.stretch(image, text0, stretch), stretch.len());
            let mut open = 0;
            if self.thresholds.is_some() {
                let (high, low) =
                    (&state.high[text0 - first..][..n], &state.low[text0 - first..][..n]);
                let above = above(&u, |i| high[i], n);
                open = all(n) & !(above | below(&u, |i| low[i], n));
                if above != 0 {
                    let greater = &mut state.counts.greater[text0 - state.counts.first..][..n];
                    add_bits(greater, above);
                }
            }
            let near = &state.lists.near[text0 - state.lists.first..][..n];
            let list = all(n) & !below(&u, |i| edges(near[i], slack).1, n);
            self.decide(state, image, text0, stretch, [open, list]);
        }
    }
}

/// What a scan keeps for a lane.
#[derive(Debug, Clone)]
pub(crate) struct ScanState {
    counts: RankTally,
    lists: BestLists,
    high: Vec<f32>, // edges of the thresholds of the tile's texts
    low: Vec<f32>,
}

impl Consumer for RankScan<'_> {
    type State = ScanState;
    type Output = ScanResult;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> ScanState {
        let direction = self.filter.direction;
        let items = direction.items(images.len(), texts.len());
        let queries = direction.queries(images, texts);
        let counted = if self.thresholds.is_some() { queries.clone() } else { 0..0 };
        ScanState {
            counts: RankTally::new(counted),
            lists: BestLists::new(queries, items, self.k),
            high: Vec::new(),
            low: Vec::new(),
        }
    }

    fn hint(&self, lane: &mut ScanState, total: &ScanState) {
        lane.lists.raise_floors(&total.lists);
    }

    fn tile(&self, state: &mut ScanState, tile: &Tile<'_>) {
        widest(
            #[inline(always)]
            || {
                let rows = tile.rows().map(|(_, row)| largest(row));
                let slack = self.filter.slack(rows.fold(0.0, |a, b| if b > a { b } else { a }));
                match self.filter.direction {
                    Direction::I2t => {
                        for (image, row) in tile.rows() {
                            self.by_image(state, image, tile.texts(), row, slack);
                        }
                    }
                    Direction::T2i => {
                        state.high.clear();
                        state.low.clear();
                        if let Some(thresholds) = &self.thresholds {
                            for &near in &thresholds.near[tile.texts()] {
                                let (high, low) = edges(near, slack);
                                state.high.push(high);
                                state.low.push(low);
                            }
                        }
                        for (image, row) in tile.rows() {
                            self.by_text(state, image, tile.texts(), row, slack);
                        }
                    }
                }
            },
        );
    }

    fn merge(&self, total: &mut ScanState, lane: ScanState) {
        total.counts.add(&lane.counts);
        total.lists.add(&lane.lists);
    }

    fn finish(&self, total: ScanState) -> ScanResult {
        let standings = |t: &Thresholds| total.counts.standings("query", &t.targets.own);
        let standings = self.thresholds.as_ref().map(standings);
        let top = total.lists.finish(self.filter.direction);
        ScanResult { standings: standings.unwrap_or_default(), top }
    }
}

/// Adds bit `i` of a mask to the `i`-th count.
#[inline(always)]
fn add_bits(counts: &mut [u32], mask: u32) {
    if let Ok(counts) = <&mut [u32; STRETCH]>::try_from(&mut *counts) {
        for (i, count) in counts.iter_mut().enumerate() {
            *count += mask >> i & 1;
        }
    } else {
        places(mask).for_each(|i| counts[i] += 1);
    }
}

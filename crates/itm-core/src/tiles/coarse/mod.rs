//! Exact results behind a coarse product: 16-bit integers decide almost every score, f32 decides the rest.
//!
//! A consumer that compares scores with thresholds need not know most scores exactly. The engine rounds both embeddings to integers and
//! multiplies the integers ([`itm_kernels::int16`]), which takes little more than half the time of an f32 product. A proved bound
//! ([`Bounds`]) tells which comparisons the integer decides. The consumer gets the f32 value of each other score, with the
//! bits of a tile ([`Again`]). Hence results do not change by a bit.
//!
//! A tile with more than one open score in [`SHARE`] is computed in f32 as a whole, and the next [`PAUSE`] tiles of its lane
//! too. Where scores lie within the bound of each other (collapsed embeddings), the engine thus skips most coarse products.

mod again;
mod bounds;
mod counts;
mod side;
#[cfg(test)]
mod tests;
mod top;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use itm_kernels::int16::{self, PackedColumns, PackedRows};

use bounds::Bounds;
use counts::CoarseCounts;

use super::kernel::{Panel, product};
use super::rank_counts::RankTally;
use super::{BothSides, Consumer, RankCounts, Tile, Tiles, pieces, run};
use crate::eval::Standing;
use crate::interrupt;

/// A tile stays coarse if at most one of this number of its scores is open: an open score costs as much as some ten coarse ones.
const SHARE: usize = 16;

/// Tiles of a lane that follow a tile with too many open scores and are computed in f32 without a try.
const PAUSE: usize = 15;

/// Below this width, the f32 product costs too little to be replaced.
const NARROW: usize = 64;

/// Below this number of scores, a pass takes less than a millisecond either way.
const FEW: usize = 1 << 15;

/// How much of a pass the coarse product decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CoarseWork {
    /// Scores that the bound left open: computed again, one by one, in f32.
    pub again: u64,
    /// Scores of tiles that were computed in f32 as a whole.
    pub whole: u64,
}

impl Tiles<'_> {
    /// Where the true pairs stand: `run(counts)`, behind the coarse product where that is faster.
    pub(super) fn counts(&self, counts: &RankCounts) -> BothSides<Standing> {
        match self.bounds() {
            Some(bounds) => self.run_coarse(&bounds, &CoarseCounts::new(counts, &bounds)).0,
            None => self.run(counts),
        }
    }

    /// `None` where f32 is faster, on this processor or for this shape, or there is no bound.
    fn bounds(&self) -> Option<Bounds> {
        let scores = self.images().saturating_mul(self.texts());
        let is_faster = int16::supported() && self.images.dim() >= NARROW && scores >= FEW;
        is_faster.then(|| Bounds::new(&self.images, &self.texts)).flatten()
    }

    /// [`run`](Self::run) behind the coarse product.
    fn run_coarse(
        &self,
        bounds: &Bounds,
        coarse: &CoarseCounts,
    ) -> (BothSides<Standing>, CoarseWork) {
        let (again, whole) = (AtomicU64::new(0), AtomicU64::new(0));
        let output = run(self.images(), self.texts(), coarse.counts, |images, texts, state| {
            let decided = self.lane(bounds, coarse, images, texts, state);
            again.fetch_add(decided.again, Ordering::Relaxed);
            whole.fetch_add(decided.whole, Ordering::Relaxed);
        });
        (output, CoarseWork { again: again.into_inner(), whole: whole.into_inner() })
    }

    /// The tiles of a lane in the order of [`walk`](Self::walk).
    fn lane(
        &self,
        bounds: &Bounds,
        coarse: &CoarseCounts,
        images: Range<usize>,
        texts: Range<usize>,
        state: &mut (RankTally, RankTally),
    ) -> CoarseWork {
        let (mut panel, mut scores) = (Panel::default(), Vec::new());
        let mut integers = Integers::new(self, bounds);
        let (mut decided, mut pause) = (CoarseWork::default(), 0);
        for columns in pieces(texts, self.tile.1) {
            let mut is_packed = false;
            for rows in pieces(images.clone(), self.tile.0) {
                interrupt::check();
                let size = rows.len() * columns.len();
                if pause == 0 {
                    let tile = integers.tile(rows.clone(), columns.clone());
                    if let Some(open) = coarse.tile(state, &tile, self, size / SHARE) {
                        decided.again += open as u64;
                        continue;
                    }
                    pause = PAUSE + 1;
                }
                pause -= 1;
                if !is_packed {
                    panel.pack(&self.texts, columns.clone());
                    is_packed = true;
                }
                product(self.images.block(rows.clone()), &panel, &mut scores);
                let tile = Tile::new(rows, columns.clone(), &scores, panel.width());
                coarse.counts.tile(state, &tile);
                decided.whole += size as u64;
            }
        }
        decided
    }
}

/// Makes tiles of integer scores.
struct Integers<'a> {
    tiles: &'a Tiles<'a>,
    bounds: &'a Bounds,
    /// The images of a tile, where `bounds.images.rounded` has none.
    rows: PackedRows,
    columns: PackedColumns,
    /// The texts in `columns`.
    texts: Range<usize>,
    sums: Vec<i32>,
}

impl<'a> Integers<'a> {
    fn new(tiles: &'a Tiles<'a>, bounds: &'a Bounds) -> Self {
        let (rows, columns, texts) = (PackedRows::default(), PackedColumns::default(), 0..0);
        Self { tiles, bounds, rows, columns, texts, sums: Vec::new() }
    }

    /// One tile. The texts are rounded only if the tile before had others.
    fn tile(&mut self, images: Range<usize>, texts: Range<usize>) -> Tile<'_, i32> {
        let Tiles { images: v, texts: w, .. } = self.tiles;
        if self.texts != texts {
            let values = w.block(texts.clone());
            self.columns.fill(values, w.dim(), self.bounds.texts.scale);
            self.texts = texts.clone();
        }
        match &self.bounds.images.rounded {
            Some(rows) => int16::product(rows, images.clone(), &self.columns, &mut self.sums),
            None => {
                let values = v.block(images.clone());
                self.rows.fill(values, v.dim(), self.bounds.images.scale);
                int16::product(&self.rows, 0..images.len(), &self.columns, &mut self.sums);
            }
        }
        Tile::new(images, texts, &self.sums, self.columns.width())
    }
}

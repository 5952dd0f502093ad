//! The tile engine: blocked products of two embedding matrices that feed consumers tile by tile.
//!
//! ```text
//! S = V·Wᵀ      rows are images, columns are texts
//!
//!          texts ▸                        V [n, d], W [m, d]   Embeddings
//!        ┌──────┬──────┬──────┐           one tile of S        Tile, still in the second-level cache
//! images │ tile │ tile │      │  ──▶      a Consumer           reads it, keeps O(n + m)
//!   ▾    ├──────┼──────┼──────┤
//!        └──────┴──────┴──────┘           S itself             only from Tiles::scores
//! ```
//!
//! | consumer        | keeps                                            | used by                        |
//! |-----------------|--------------------------------------------------|--------------------------------|
//! | [`RankCounts`]  | greater and equal scores of every query          | recalls, ranks, both directions |
//! | [`Top`]         | the k best texts of every image, or images of every text | N_k, CSLS, NNN, candidates |
//! | [`ExpSums`]     | log Σ exp(β·s) of every row and column, in f64   | inverted softmax, Sinkhorn     |
//! | [`Maxima`]      | the largest score of every row and column        |                                |
//! | [`Moments`]     | mean and deviation of every row and column       | mutual proximity               |
//! | `(A, B)`, `Vec` | several, in one pass                             |                                |
//!
//! [`ranks`] and [`Tiles::top`] give the results of [`RankCounts`] and [`Top`] in less time, if only one consumer is needed: 16-bit
//! integers decide most comparisons, and f32 the rest.
//!
//! [`Panels`] are rows that wait for queries: a search multiplies the same rows again and again.
//!
//! With the feature `parts`, `Tiles::part` gives such results for a rectangle of a larger matrix, and `Part::join` joins the parts of
//! several processes or machines.
//!
//! **Guarantees**, each with its tests. On one machine a score has the same bits in every tile that holds it, in
//! [`Tiles::scores`] and in [`Tiles::pair_scores`]. Every consumer above gives the same bits for every tile size,
//! number of threads and order of work. Other machines may round a score differently (with or without fused
//! multiply-adds). No score is NaN or infinite: [`Embeddings::new`] refuses values that are not finite, and
//! [`Tiles::new`] refuses values so large that a score could overflow.
//!
//! ```
//! use itm_core::tiles::{Embeddings, Side, Tiles, Top, ranks};
//! use itm_core::{Pairs, eval::TiePolicy};
//!
//! let images = Embeddings::new("images", 2, 2, &[1.0, 0.0, 0.0, 1.0])?;
//! let texts = Embeddings::new("texts", 3, 2, &[0.8, 0.6, 1.0, 0.0, 0.6, 0.8])?;
//! let found = Tiles::new(images, texts)?.run(&Top::new(Side::Images, 2));
//! assert_eq!(found.items(0), [1, 0]);
//! assert_eq!(found.scores(1), [0.8, 0.6]);
//!
//! let ranks = ranks(images, texts, &Pairs::new(2, vec![0, 0, 1])?)?;
//! assert!(ranks.i2t().iter().all(|image| image.rank(TiePolicy::Index) == 0.0));
//! # Ok::<(), itm_core::Error>(())
//! ```

mod coarse;
mod consumer;
mod embeddings;
mod exp_sums;
mod kernel;
mod lanes;
mod maxima;
mod moments;
mod panels;
#[cfg(feature = "parts")]
mod part;
mod rank_counts;
mod sides;
mod top;

use std::ops::Range;

use rayon::prelude::*;

pub(crate) use consumer::Boxed;
pub use consumer::{AnyConsumer, AnyState, Consumer, Tile};
pub use embeddings::Embeddings;
pub use exp_sums::ExpSums;
pub use itm_kernels::widest;
pub use maxima::Maxima;
pub use moments::{Moment, Moments};
pub use panels::Panels;
#[cfg(feature = "parts")]
pub use part::{Part, Reduction};
pub use rank_counts::{RankCounts, RankTally, Targets};
pub use sides::{BothSides, Side};
pub(crate) use top::best_items;
pub use top::{Top, TopK, places};

use crate::eval::Ranks;
use crate::{Error, Pairs, Result, ScoreMatrix, interrupt};
use kernel::{ALIGN, Panel, product};

/// All products of images and texts, tile by tile.
#[derive(Debug, Clone, Copy)]
pub struct Tiles<'a> {
    images: Embeddings<'a>,
    texts: Embeddings<'a>,
    pub(crate) tile: (usize, usize),
}

impl<'a> Tiles<'a> {
    /// The scores of all images against all texts.
    ///
    /// # Errors
    /// If the widths differ, or values are so large that a score could overflow.
    pub fn new(images: Embeddings<'a>, texts: Embeddings<'a>) -> Result<Self> {
        bounded([images.dim(), texts.dim()], [images.largest(), texts.largest()])?;
        Ok(Self { images, texts, tile: (192, 256) })
    }

    /// Tiles of another size, rounded up to multiples of 64; the default suits second-level caches of 1 MiB.
    #[must_use]
    pub fn with_tile(mut self, images: usize, texts: usize) -> Self {
        let up = |n: usize| n.clamp(1, 1 << 32).next_multiple_of(ALIGN);
        self.tile = (up(images), up(texts));
        self
    }

    /// Number of images.
    pub fn images(&self) -> usize {
        self.images.rows()
    }

    /// Number of texts.
    pub fn texts(&self) -> usize {
        self.texts.rows()
    }

    /// Shows every score to a consumer, once.
    pub fn run<C: Consumer + ?Sized>(&self, consumer: &C) -> C::Output {
        run(self.images(), self.texts(), consumer, |images, texts, state| {
            self.walk(images, texts, |tile| consumer.tile(state, tile));
        })
    }

    /// The whole matrix, `4·n·m` bytes: the same scores, bit for bit, that consumers see.
    pub fn scores(&self) -> ScoreMatrix {
        let (n, m) = (self.images(), self.texts());
        let mut values = vec![0.0; n * m];
        let rows = self.tile.0;
        values.par_chunks_mut((rows * m).max(1)).enumerate().for_each(|(band, values)| {
            let start = band * rows;
            self.walk(start..(start + rows).min(n), 0..m, |tile| {
                for (image, row) in tile.rows() {
                    let at = (image - start) * m + tile.texts().start;
                    values[at..at + row.len()].copy_from_slice(row);
                }
            });
        });
        ScoreMatrix::new(n, m, values).expect("bounded embeddings give no NaN")
    }

    /// Scores of single pairs, image `images[p]` with text `texts[p]`: the same bits as in a tile.
    ///
    /// # Panics
    /// If `images` and `texts` differ in length, or an index is too large.
    pub fn pair_scores(&self, images: &[usize], texts: &[usize]) -> Vec<f32> {
        const BLOCK: usize = 32; // only the diagonal of 32 × 32 products (padded to 64) is used
        assert_eq!(images.len(), texts.len(), "one image for each text");
        let diagonal = |(images, texts): (&[usize], &[usize])| {
            let (mut panel, mut out) = (Panel::default(), Vec::new());
            panel.pack_rows(&gather(&self.texts, texts), texts.len(), self.texts.dim());
            product(&gather(&self.images, images), &panel, &mut out);
            (0..texts.len()).map(|p| out[p * panel.width() + p]).collect::<Vec<_>>()
        };
        images.par_chunks(BLOCK).zip(texts.par_chunks(BLOCK)).flat_map_iter(diagonal).collect()
    }

    /// The products of some queries with all items.
    pub(crate) fn with_queries<R>(
        &self,
        some: &[usize],
        queries: Side,
        work: impl FnOnce(&Tiles<'_>) -> R,
    ) -> R {
        let (side, mut tiles) = (queries.of(&self.images, &self.texts), Tiles { ..*self });
        let rows = gather(side, some);
        *queries.of(&mut tiles.images, &mut tiles.texts) = side.taken(&rows);
        work(&tiles)
    }

    /// Ranks of both directions, as [`ranks`].
    ///
    /// # Errors
    /// If the numbers of rows differ from `pairs`, or an image has no text.
    pub fn ranks(&self, pairs: &Pairs) -> Result<Ranks> {
        let BothSides { images, texts, .. } = self.counts(&RankCounts::new(self, pairs)?);
        Ranks::from_counts(pairs.clone(), images, texts)
    }

    /// The scores of a range of images against a range of texts: the same bits as in a tile.
    ///
    /// # Panics
    /// If a range goes beyond the images or texts.
    pub fn block(&self, images: Range<usize>, texts: Range<usize>) -> ScoreMatrix {
        self.within(images, texts).scores()
    }

    /// The scores of a range of images against a range of texts.
    fn within(&self, images: Range<usize>, texts: Range<usize>) -> Self {
        let images = self.images.taken(self.images.block(images));
        let texts = self.texts.taken(self.texts.block(texts));
        Tiles { images, texts, ..*self }
    }

    /// Visits the tiles of a rectangle: columns of tiles from left to right, and each column from top to bottom.
    fn walk(&self, images: Range<usize>, texts: Range<usize>, mut see: impl FnMut(&Tile<'_>)) {
        let (mut panel, mut scores) = (Panel::default(), Vec::new());
        for columns in pieces(texts, self.tile.1) {
            panel.pack(&self.texts, columns.clone());
            for rows in pieces(images.clone(), self.tile.0) {
                interrupt::check();
                product(self.images.block(rows.clone()), &panel, &mut scores);
                see(&Tile::new(rows, columns.clone(), &scores, panel.width()));
            }
        }
    }
}

impl ScoreMatrix {
    /// Shows every score to a consumer, once, in tiles as [`Tiles`] does: every consumer of a stream also takes a matrix.
    ///
    /// # Errors
    /// If a score is infinite: products of embeddings are finite, and consumers rely on this.
    pub fn run<C: Consumer + ?Sized>(&self, consumer: &C) -> Result<C::Output> {
        self.check_finite(0)?;
        Ok(self.read(consumer))
    }

    fn read<C: Consumer + ?Sized>(&self, consumer: &C) -> C::Output {
        const TILE: (usize, usize) = (192, 256);
        let (n, m) = (self.images(), self.texts());
        run(n, m, consumer, |images, texts, state| {
            for columns in pieces(texts, TILE.1) {
                for rows in pieces(images.clone(), TILE.0) {
                    interrupt::check();
                    let scores = &self.values()[rows.start * m + columns.start..];
                    consumer.tile(state, &Tile::new(rows, columns.clone(), scores, m));
                }
            }
        })
    }

    /// # Errors
    /// Names the first infinite score; the first row is image `first`.
    pub(crate) fn check_finite(&self, first: usize) -> Result<()> {
        let Some(at) = self.values().par_iter().position_first(|s| s.is_infinite()) else {
            return Ok(());
        };
        let (image, text) = (first + at / self.texts(), at % self.texts());
        let place = format!("scores of image {image} and text {text}");
        Err(Error::invalid(place, "a finite number", self.values()[at]))
    }
}

/// Walks the lanes in parallel, each tile by tile, and merges them in order.
fn run<T, C: Consumer<T> + ?Sized>(
    images: usize,
    texts: usize,
    consumer: &C,
    walk: impl Fn(Range<usize>, Range<usize>, &mut C::State) + Sync,
) -> C::Output {
    let lanes = lanes::cut(images, texts);
    let begin = |lane: usize, total: &C::State| {
        let (images, texts) = lanes[lane].clone();
        let mut state = consumer.start(images, texts);
        consumer.hint(&mut state, total);
        state
    };
    let work = |lane: usize, mut state: C::State| {
        let (images, texts) = lanes[lane].clone();
        walk(images, texts, &mut state);
        state
    };
    let total = consumer.start(0..images, 0..texts);
    let merge = |total: &mut C::State, state| consumer.merge(total, state);
    consumer.finish(lanes::in_order(lanes.len(), total, begin, work, merge))
}

/// Ranks of both directions from embeddings, in one pass and without the matrix.
///
/// The result equals [`Ranks::new`] of [`Tiles::scores`], to the last count.
///
/// # Errors
/// If the widths differ, the numbers of rows differ from `pairs`, or an image has no text.
pub fn ranks(images: Embeddings<'_>, texts: Embeddings<'_>, pairs: &Pairs) -> Result<Ranks> {
    Tiles::new(images, texts)?.ranks(pairs)
}

/// Refuses rows of two widths, and values so large that a score could overflow.
fn bounded([images, texts]: [usize; 2], [v, w]: [f32; 2]) -> Result<()> {
    Error::unless(images == texts, "texts", format_args!("the images' width {images}"), texts)?;
    // |Σ v·w| ≤ d · max |v| · max |w|, with room for rounding.
    let bound = images as f64 * f64::from(v) * f64::from(w);
    let expected = format_args!("d · max|v| · max|w| below {:e}", f32::MAX / 2.0);
    let fits = bound <= f64::from(f32::MAX) / 2.0;
    Error::unless(fits, "images · texts", expected, format_args!("{bound:e}"))
}

fn gather(side: &Embeddings<'_>, rows: &[usize]) -> Vec<f32> {
    let mut out = Vec::with_capacity(rows.len() * side.dim());
    rows.iter().for_each(|&row| out.extend_from_slice(side.block(row..row.saturating_add(1))));
    out
}

pub(crate) fn pieces(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(length).map(move |start| start..(start + length).min(end))
}

#[cfg(test)]
mod tests;

//! Rank counts behind the coarse product.

use std::ops::Range;

use super::super::rank_counts::{RankCounts, RankTally};
use super::super::{Side, Tile, Tiles, places, widest};
use super::bounds::{Bounds, Thresholds};

/// Scores of a row that are looked at as one: mostly none of them is open.
const STRETCH: usize = 32;

/// Takes integer scores for [`RankCounts`].
pub(super) struct CoarseCounts<'a> {
    pub(super) counts: &'a RankCounts,
    texts: Thresholds,
    images: Thresholds,
}

impl<'a> CoarseCounts<'a> {
    pub(super) fn new(counts: &'a RankCounts, bounds: &Bounds) -> Self {
        let texts = bounds.thresholds(Side::Texts, &counts.texts.score);
        let images = bounds.thresholds(Side::Images, &counts.images.score);
        Self { counts, texts, images }
    }
}

/// A score that a comparison needs exactly.
#[derive(Clone, Copy)]
struct OpenScore {
    image: usize,
    text: usize,
    /// Whether the text's threshold is within the bound, and whether the image's is.
    of: [bool; 2],
}

impl CoarseCounts<'_> {
    /// Takes in one tile of integer scores, as [`RankCounts`] takes in the f32 scores behind them.
    ///
    /// Returns the number of scores that it computed again in f32, from `tiles`; `None`, and the state as it was, if more than `most` are open.
    pub(super) fn tile(
        &self,
        (images, texts): &mut (RankTally, RankTally),
        tile: &Tile<'_, i32>,
        tiles: &Tiles<'_>,
        most: usize,
    ) -> Option<usize> {
        let mut above_texts = vec![0; tile.texts().len()];
        let mut above_images = vec![0; tile.images().len()];
        let mut open = Vec::new();
        for ((image, row), above) in tile.rows().zip(&mut above_images) {
            *above = self.row(image, tile.texts(), row, &mut above_texts, &mut open);
            if open.len() > most {
                return None;
            }
        }
        texts.add_greater(tile.texts().start, &above_texts);
        images.add_greater(tile.images().start, &above_images);
        tiles.singles(open.iter().map(|pair| (pair.image, pair.text)), |at, score| {
            let OpenScore { image, text, of: [of_text, of_image] } = open[at];
            if of_text {
                texts.count(&self.counts.texts, text, image, score);
            }
            if of_image {
                images.count(&self.counts.images, image, text, score);
            }
        });
        Some(open.len())
    }

    /// One row: counts the scores above each text's threshold, names what is open, returns how many are above the image's.
    fn row(
        &self,
        image: usize,
        texts: Range<usize>,
        row: &[i32],
        above: &mut [u32],
        open: &mut Vec<OpenScore>,
    ) -> u32 {
        let [low, high] = [&self.texts.low, &self.texts.high].map(|of| &of[texts.clone()]);
        let own = [self.images.low[image], self.images.high[image]];
        let mut count = 0;
        widest(
            #[inline(always)]
            || {
                for first in (0..row.len()).step_by(STRETCH) {
                    let at = first..(first + STRETCH).min(row.len());
                    let thresholds = [&low[at.clone()], &high[at.clone()]];
                    let seen = look(&row[at.clone()], thresholds, own, &mut above[at]);
                    count += seen.above;
                    for i in places(seen.of_texts | seen.of_image) {
                        let is_in = |mask: u32| mask >> i & 1 == 1;
                        let of = [is_in(seen.of_texts), is_in(seen.of_image)];
                        open.push(OpenScore { image, text: texts.start + first + i, of });
                    }
                }
            },
        );
        count
    }
}

/// What a stretch of a row shows.
struct Stretch {
    /// Scores above the image's threshold.
    above: u32,
    /// Bit `i`: score `i` is within the bound of its text's threshold.
    of_texts: u32,
    /// Bit `i`: score `i` is within the bound of the image's threshold.
    of_image: u32,
}

#[inline(always)]
fn look(row: &[i32], thresholds: [&[i32]; 2], own: [i32; 2], above: &mut [u32]) -> Stretch {
    if row.len() == STRETCH {
        look_at(STRETCH, row, thresholds, own, above) // a known length: vector code
    } else {
        look_at(row.len(), row, thresholds, own, above)
    }
}

#[inline(always)]
fn look_at(
    n: usize,
    row: &[i32],
    [low, high]: [&[i32]; 2],
    own: [i32; 2],
    above: &mut [u32],
) -> Stretch {
    let (row, low, high, above) = (&row[..n], &low[..n], &high[..n], &mut above[..n]);
    let (mut count, mut open) = (0, 0);
    for i in 0..n {
        let [is_above, is_not_below] = [u32::from(row[i] > high[i]), u32::from(row[i] >= low[i])];
        above[i] += is_above;
        open |= is_above ^ is_not_below;
        let [is_above, is_not_below] = [u32::from(row[i] > own[1]), u32::from(row[i] >= own[0])];
        count += is_above;
        open |= is_above ^ is_not_below;
    }
    let mut seen = Stretch { above: count, of_texts: 0, of_image: 0 };
    if open != 0 {
        for i in 0..n {
            let is_within = |low, high| u32::from((low..=high).contains(&row[i]));
            seen.of_texts |= is_within(low[i], high[i]) << i;
            seen.of_image |= is_within(own[0], own[1]) << i;
        }
    }
    seen
}

//! Ranks and best items of corrected scores, counted tile by tile: nothing of the size of the matrix is kept.

mod buffers;
mod filter;
mod scan;
mod thresholds;

use itm_core::eval::Ranks;
use itm_core::{Error, Pairs, Result};

pub use scan::{Scan, Scanned, State};

use crate::{Direction, Rescore, Scores, TopLists};

/// Ranks of both directions under a correction of each, in one pass.
///
/// Comparisons are made in f64. Ranks equal, to the last count, the ranks by sorting all corrected scores.
///
/// # Errors
/// If the numbers of images and texts differ from `pairs`, or an image has no text.
pub fn ranks(
    scores: &impl Scores,
    pairs: &Pairs,
    i2t: &dyn Rescore,
    t2i: &dyn Rescore,
) -> Result<Ranks> {
    check(scores, pairs)?;
    let i2t = Scan::new(Direction::I2t, i2t, 0).with_ranks(scores, pairs);
    let t2i = Scan::new(Direction::T2i, t2i, 0).with_ranks(scores, pairs);
    let (i2t, t2i) = scores.run(&(i2t, t2i));
    Ranks::from_counts(pairs.clone(), i2t.standings, t2i.standings)
}

/// Ranks and best items of both directions under one correction of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Rescored {
    /// Ranks of both directions.
    pub ranks: Ranks,
    /// The best texts of every image.
    pub texts: TopLists,
    /// The best images of every text.
    pub images: TopLists,
}

impl Rescored {
    /// The best items of every query of a direction.
    pub fn top(&self, direction: Direction) -> &TopLists {
        direction.queries(&self.texts, &self.images)
    }
}

/// Ranks and the `k` best items under several corrections, all in one pass: `maps` holds i2t and t2i of each.
///
/// # Errors
/// As [`ranks`].
pub fn rescore(
    scores: &impl Scores,
    pairs: &Pairs,
    maps: &[[&dyn Rescore; 2]],
    k: usize,
) -> Result<Vec<Rescored>> {
    check(scores, pairs)?;
    let scan = |(direction, map)| Scan::new(direction, map, k).with_ranks(scores, pairs);
    let scans: Vec<_> =
        maps.iter().flat_map(|maps| Direction::BOTH.into_iter().zip(*maps)).map(scan).collect();
    let mut answers = scores.run(&scans[..]).into_iter();
    let mut all = Vec::with_capacity(maps.len());
    while let (Some(i2t), Some(t2i)) = (answers.next(), answers.next()) {
        let ranks = Ranks::from_counts(pairs.clone(), i2t.standings, t2i.standings)?;
        all.push(Rescored { ranks, texts: i2t.top, images: t2i.top });
    }
    Ok(all)
}

/// The `k` best items of every query under a correction, best first; all, if there are fewer.
pub fn top(scores: &impl Scores, direction: Direction, map: &dyn Rescore, k: usize) -> TopLists {
    scores.run(&Scan::new(direction, map, k)).top
}

/// Whether scores and pairs speak of the same images and texts.
pub(crate) fn check(scores: &impl Scores, pairs: &Pairs) -> Result<()> {
    let (got, want) = ((scores.images(), scores.texts()), (pairs.images(), pairs.texts()));
    if got == want {
        return Ok(());
    }
    let expected = format!("{} images and {} texts, as the pairs", want.0, want.1);
    Err(Error::invalid("scores", expected, format!("{} and {}", got.0, got.1)))
}

#[cfg(test)]
mod tests;

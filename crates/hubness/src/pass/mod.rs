//! Ranks and best items of corrected scores, counted tile by tile: nothing of the size of the matrix is kept.

mod filter;
mod ranks;
mod top;

use itm_core::eval::Ranks;
use itm_core::{Error, Pairs, Result};

pub use ranks::{CorrectedRanks, Counts as RankCounts};
pub use top::{CorrectedTop, Lists};

use crate::{Direction, Rescore, Scores, TopLists};

/// Ranks of both directions under a correction of each, in one pass.
///
/// Comparisons are made in f64 and equal, to the last count, those of sorting all corrected scores.
///
/// # Errors
/// If the numbers of images and texts are not those of `pairs`, or an image has no text.
pub fn ranks(
    scores: &impl Scores,
    pairs: &Pairs,
    i2t: &dyn Rescore,
    t2i: &dyn Rescore,
) -> Result<Ranks> {
    check(scores, pairs)?;
    let i2t = CorrectedRanks::new(scores, pairs, Direction::I2t, i2t);
    let t2i = CorrectedRanks::new(scores, pairs, Direction::T2i, t2i);
    let (i2t, t2i) = scores.run(&(i2t, t2i));
    Ranks::from_counts(pairs.clone(), i2t, t2i)
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
    let asked: Vec<_> =
        maps.iter().flat_map(|maps| Direction::BOTH.into_iter().zip(*maps)).collect();
    let ranks = |&(direction, map)| CorrectedRanks::new(scores, pairs, direction, map);
    let top = |&(direction, map)| CorrectedTop::new(direction, map, k);
    let consumers: Vec<_> = asked.iter().map(|asked| (ranks(asked), top(asked))).collect();
    let mut answers = scores.run(&consumers[..]).into_iter();
    let mut all = Vec::with_capacity(maps.len());
    while let (Some((i2t, texts)), Some((t2i, images))) = (answers.next(), answers.next()) {
        let ranks = Ranks::from_counts(pairs.clone(), i2t, t2i)?;
        all.push(Rescored { ranks, texts, images });
    }
    Ok(all)
}

/// The `k` best items of every query under a correction, best first; all, if there are fewer.
pub fn top(scores: &impl Scores, direction: Direction, map: &dyn Rescore, k: usize) -> TopLists {
    scores.run(&CorrectedTop::new(direction, map, k))
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

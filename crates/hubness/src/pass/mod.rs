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

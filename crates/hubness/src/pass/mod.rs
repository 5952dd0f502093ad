//! Ranks and best items of corrected scores, counted tile by tile: a pass keeps nothing as large as the matrix.

mod buffers;
mod filter;
mod scan;

use itm_core::eval::Ranks;
use itm_core::scored::{Scored, visit};
use itm_core::{Error, Pairs, Result};

pub(crate) use scan::{RankScan, ScanResult};

use crate::{AnyCorrection, Direction, TopLists};

/// Ranks of both directions under one correction per direction, in one pass.
///
/// Comparisons are made in f64. Ranks equal, to the last count, the ranks by sorting all corrected scores.
///
/// # Errors
/// If the numbers of images and texts differ from `pairs`, an image has no text, a score is infinite, or a correction is for
/// the other direction or for other items or queries.
///
/// ```
/// use hubness::{Direction, Pairs, ScoreMatrix, TestQueries, csls, pass};
///
/// let scores = ScoreMatrix::from_rows([[0.9, 0.3], [0.7, 0.6]]);
/// let [i2t, t2i] = [Direction::I2t, Direction::T2i].map(|d| csls(&TestQueries(&scores), d, 1));
/// let (i2t, t2i) = (i2t?, t2i?);
/// let ranks = pass::ranks(&scores, &Pairs::uniform(2, 1), &i2t, &t2i)?;
/// let exchanged = pass::ranks(&scores, &Pairs::uniform(2, 1), &t2i, &i2t).unwrap_err();
/// assert_eq!(exchanged.to_string(), "correction: expected one of direction i2t, got one of t2i");
/// # Ok::<(), hubness::Error>(())
/// ```
pub fn ranks(
    scores: &dyn Scored,
    pairs: &Pairs,
    i2t: &AnyCorrection,
    t2i: &AnyCorrection,
) -> Result<Ranks> {
    let both = rescore(scores, pairs, &[[i2t, t2i]], 0)?;
    Ok(both.into_iter().next().expect("one pair of corrections").ranks)
}

/// Ranks and best items of both directions under one correction per direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Retrieval {
    /// Ranks of both directions.
    pub ranks: Ranks,
    /// The best texts of every image.
    pub texts: TopLists,
    /// The best images of every text.
    pub images: TopLists,
}

/// Ranks and the `k` best items under several corrections, all in one pass. `corrections` holds pairs
/// of one correction for i2t and one for t2i.
///
/// # Errors
/// As [`ranks`].
pub fn rescore(
    scores: &dyn Scored,
    pairs: &Pairs,
    corrections: &[[&AnyCorrection; 2]],
    k: usize,
) -> Result<Vec<Retrieval>> {
    check("scores", (scores.images(), scores.texts()), pairs)?;
    let directed = |both| Direction::BOTH.into_iter().zip(both);
    for (direction, correction) in corrections.iter().flat_map(directed) {
        let got = correction.direction();
        let expected = format_args!("one of direction {direction}");
        Error::unless(got == direction, "correction", expected, format_args!("one of {got}"))?;
        correction.check(scores)?;
    }
    let scan = |&correction| RankScan::new(correction, k).with_ranks(scores, pairs);
    let scans: Vec<_> = corrections.iter().flatten().map(scan).collect::<Result<_>>()?;
    let mut answers = visit(scores, &scans)?.into_iter();
    let mut all = Vec::with_capacity(corrections.len());
    while let (Some(i2t), Some(t2i)) = (answers.next(), answers.next()) {
        let ranks = Ranks::from_counts(pairs.clone(), i2t.standings, t2i.standings)?;
        all.push(Retrieval { ranks, texts: i2t.top, images: t2i.top });
    }
    Ok(all)
}

/// The `k` best items of every query under a correction, best first; all items, if there are fewer.
///
/// # Errors
/// If a score is infinite, or the correction is for other items or queries: [`AnyCorrection::check`].
pub fn top(scores: &dyn Scored, correction: &AnyCorrection, k: usize) -> Result<TopLists> {
    correction.check(scores)?;
    Ok(visit(scores, &RankScan::new(correction, k))?.top)
}

/// Checks that something has as many images and texts as the pairs.
pub(crate) fn check(name: &str, (images, texts): (usize, usize), pairs: &Pairs) -> Result<()> {
    let (n, m) = (pairs.images(), pairs.texts());
    let expected = format_args!("{n} images and {m} texts, as the pairs");
    let got = format_args!("{images} and {texts}");
    Error::unless((images, texts) == (n, m), name, expected, got)
}

#[cfg(test)]
mod tests;

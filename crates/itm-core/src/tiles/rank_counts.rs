//! Where the true items of every query stand, counted in one pass for both directions.

use std::ops::Range;

use super::kernel::widest;
use super::{Consumer, Tile, Tiles};
use crate::eval::Standing;
use crate::{Error, Pairs, Result};

/// Counts for each text the images, and for each image the texts, that score above or equal to the true one.
///
/// The scores of the true pairs must be known before the pass, and be the very bits that a tile holds: a pair that is
/// rounded otherwise would stand above or below itself. [`RankCounts::new`] takes them from the same kernel, through
/// [`Tiles::pair_scores`], and the pass checks that every true pair was met as an equal.
///
/// An image is ranked through its best text: of its texts the one with the largest score, the smaller index on ties.
#[derive(Debug, Clone)]
pub struct RankCounts {
    /// Score and image of each text's true pair.
    text_score: Vec<f32>,
    image_of_text: Vec<u32>,
    /// Score and index of each image's best text, and how many of its texts score the same.
    image_score: Vec<f32>,
    best_text: Vec<usize>,
    own: Vec<u32>,
}

/// What [`RankCounts`] gives; [`ranks`](super::ranks) and [`Ranks::from_counts`](crate::eval::Ranks::from_counts) read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standings {
    /// Of each image's best text among all texts.
    pub i2t: Vec<Standing>,
    /// Of each text's image among all images.
    pub t2i: Vec<Standing>,
}

impl RankCounts {
    /// Computes the scores of the true pairs.
    ///
    /// # Errors
    /// If the numbers of images and texts are not those of `pairs`.
    pub fn new(tiles: &Tiles<'_>, pairs: &Pairs) -> Result<Self> {
        let (got, want) = ((tiles.images(), tiles.texts()), (pairs.images(), pairs.texts()));
        if got != want {
            let expected = format!("{} images and {} texts, as the pairs", want.0, want.1);
            let got = format!("{} and {}", got.0, got.1);
            return Err(Error::invalid("embeddings", expected, got));
        }
        let texts: Vec<_> = (0..pairs.texts()).collect();
        Ok(Self::with_scores(pairs, tiles.pair_scores(pairs.image_of_text(), &texts)))
    }

    /// Takes the scores of the true pairs, one for each text: for scores that are changed tile by tile.
    ///
    /// # Panics
    /// If there is not one score for each text.
    pub fn with_scores(pairs: &Pairs, text_score: Vec<f32>) -> Self {
        assert_eq!(text_score.len(), pairs.texts(), "one score for each text");
        let best = |image: usize| {
            let mut own = pairs.texts_of(image).iter().map(|&t| (text_score[t], t, 1));
            // An image without a text is above everything: nothing is counted.
            let first = own.next().unwrap_or((f32::INFINITY, usize::MAX, 0));
            own.fold(first, |best, other| {
                if other.0 > best.0 { other } else { (best.0, best.1, best.2 + u32::from(other.0 == best.0)) }
            })
        };
        let images = (0..pairs.images()).map(best);
        let mut new = Self {
            image_of_text: pairs.image_of_text().iter().map(|&i| i as u32).collect(),
            text_score: text_score.clone(),
            image_score: Vec::new(),
            best_text: Vec::new(),
            own: Vec::new(),
        };
        for (score, text, own) in images {
            new.image_score.push(score);
            new.best_text.push(text);
            new.own.push(own);
        }
        new
    }
}

/// Counts of some neighbouring queries. `equal` includes the true items themselves.
#[derive(Debug, Clone)]
pub struct Counts {
    first: usize,
    greater: Vec<u32>,
    before: Vec<u32>,
    equal: Vec<u32>,
}

impl Counts {
    fn new(queries: Range<usize>) -> Self {
        let zeros = || vec![0; queries.len()];
        Self { first: queries.start, greater: zeros(), before: zeros(), equal: zeros() }
    }

    fn add(&mut self, part: &Self) {
        let add = |total: &mut [u32], part: &[u32]| {
            total[part_start(self.first, 0)..].iter_mut().zip(part).for_each(|(a, b)| *a += b);
        };
        let _ = add;
        for (total, part_counts) in [
            (&mut self.greater, &part.greater),
            (&mut self.before, &part.before),
            (&mut self.equal, &part.equal),
        ] {
            total[part.first - self.first..].iter_mut().zip(part_counts).for_each(|(a, b)| *a += b);
        }
    }
}

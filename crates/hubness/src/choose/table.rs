//! Hits of every setting and image.

use std::fmt::Display;

use itm_core::significance::{Hits, ImageHits};
use itm_core::{Error, Result};

/// The quantity to maximise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// R@1 + R@5 + R@10 of the direction.
    Sum,
    /// Only R@1. Matchings with one run per K choose a setting per K.
    At1,
    /// Only R@5.
    At5,
    /// Only R@10.
    At10,
}

impl Goal {
    /// The goals of a single K, in the order of [`CUTS`](itm_core::eval::CUTS).
    pub(crate) const EACH: [Self; 3] = [Self::At1, Self::At5, Self::At10];

    /// The value of the goal, from the values at 1, 5 and 10.
    pub(super) fn of(self, at: [u16; 3]) -> u64 {
        let at = at.map(u64::from);
        match self {
            Self::Sum => at.into_iter().sum(),
            Self::At1 => at[0],
            Self::At5 => at[1],
            Self::At10 => at[2],
        }
    }
}

/// One setting of one method, and its hits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    /// How much it corrects; 0 is off. In cross-fitting, the smallest correction wins among equal recalls.
    pub correction: f64,
    /// The hits of each image's queries at 1, 5, 10.
    pub hits: Vec<[u16; 3]>,
}

/// Hits of all candidates of a choice, in a fixed order, for one direction.
///
/// An image brings its queries: itself for i2t, its texts for t2i. The candidates may come from several methods.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HitTable {
    pub(crate) candidates: Vec<Candidate>,
}

impl HitTable {
    /// Adds a setting after the others; `label` names it in an error. Fewer hits at a larger K are allowed, because matchings run
    /// separately for each K.
    ///
    /// # Errors
    /// If the settings before have another number of images, or the correction is negative or not finite.
    pub fn push(
        &mut self,
        label: impl Display,
        correction: f64,
        hits: Vec<[u16; 3]>,
    ) -> Result<()> {
        let images = self.candidates.first().map_or(hits.len(), |first| first.hits.len());
        let place = format_args!("hits of {label}");
        let fits = correction >= 0.0 && correction.is_finite();
        Error::unless(fits, place, "a size of the correction of 0 or more", correction)?;
        Error::unless(hits.len() == images, place, format_args!("{images} images"), hits.len())?;
        self.candidates.push(Candidate { correction, hits });
        Ok(())
    }

    /// An error if there is nothing to choose from.
    pub(super) fn not_empty(&self) -> Result<()> {
        Error::unless(!self.candidates.is_empty(), "hit table", "at least 1 setting", 0)
    }
}

/// The chosen hits of i2t and of t2i as one system, for intervals and tests.
///
/// # Errors
/// If the numbers of images differ, or an image has more hits than queries.
pub fn joined_hits(i2t: &[[u16; 3]], t2i: &[[u16; 3]], captions: &[u16]) -> Result<Hits> {
    for (what, got) in [("i2t", i2t.len()), ("t2i", t2i.len())] {
        let expected = format_args!("{} images", captions.len());
        Error::unless(got == captions.len(), format_args!("hits of {what}"), expected, got)?;
    }
    let block = |((&i2t, &t2i), &captions)| ImageHits { i2t, t2i, captions };
    Hits::from_folds(vec![i2t.iter().zip(t2i).zip(captions).map(block).collect()])
}

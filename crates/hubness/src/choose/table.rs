//! Hits of every setting and image.

use itm_core::significance::{Hits, ImageHits};
use itm_core::{Error, Result};

use crate::Direction;

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
    /// Its name in reports.
    pub label: String,
    /// How much it corrects; 0 is off. In cross-fitting, the smallest correction wins among equal recalls.
    pub correction: f64,
    /// The hits of each image's queries at 1, 5, 10.
    pub hits: Vec<[u16; 3]>,
}

/// Hits of all candidates of a choice, in a fixed order, for one direction.
///
/// An image brings its queries: itself for i2t, its texts for t2i. The candidates may come from several methods.
#[derive(Debug, Clone, PartialEq)]
pub struct HitTable {
    pub(super) queries: Vec<u16>,
    pub(crate) candidates: Vec<Candidate>,
}

impl HitTable {
    /// A table without settings; `queries` says how many queries each image brings.
    ///
    /// # Errors
    /// If there is no image, or an image brings no query, or more than itself for i2t.
    pub fn new(direction: Direction, queries: Vec<u16>) -> Result<Self> {
        Error::unless(!queries.is_empty(), "hit table", "at least 1 image", 0)?;
        let most = direction.queries(1, u16::MAX);
        if let Some(image) = queries.iter().position(|count| !(1..=most).contains(count)) {
            let expected = direction.queries("1 query (itself)", "at least 1 query (its texts)");
            return Err(Error::invalid(format!("image {image}"), expected, queries[image]));
        }
        Ok(Self { queries, candidates: Vec::new() })
    }

    /// Adds a setting after the others.
    ///
    /// # Errors
    /// If there is not one entry per image, an image has more hits than queries, or the correction is negative or not
    /// finite. Fewer hits at a larger K are allowed, because matchings run separately for each K.
    pub fn push(
        &mut self,
        label: impl Into<String>,
        correction: f64,
        hits: Vec<[u16; 3]>,
    ) -> Result<()> {
        let label = label.into();
        let (place, images) = (format_args!("hits of {label}"), self.queries.len());
        let fits = correction >= 0.0 && correction.is_finite();
        Error::unless(fits, place, "a size of the correction of 0 or more", correction)?;
        Error::unless(hits.len() == images, place, format_args!("{images} images"), hits.len())?;
        let wrong = |(&at, &queries): (&[u16; 3], &u16)| at.iter().any(|&hit| hit > queries);
        if let Some(image) = hits.iter().zip(&self.queries).position(wrong) {
            let expected = format!("at most {} hits", self.queries[image]);
            let place = format!("hits of {label}, image {image}");
            return Err(Error::invalid(place, expected, format!("{:?}", hits[image])));
        }
        self.candidates.push(Candidate { label, correction, hits });
        Ok(())
    }

    /// Recalls of hits of the images, in percent.
    pub(super) fn percent(&self, hits: &[[u16; 3]]) -> [f64; 3] {
        let queries: u64 = self.queries.iter().map(|&q| u64::from(q)).sum();
        [0, 1, 2].map(|k| {
            let sum: u64 = hits.iter().map(|at| u64::from(at[k])).sum();
            100.0 * sum as f64 / queries as f64
        })
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

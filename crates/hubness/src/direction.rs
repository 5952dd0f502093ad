//! The direction of retrieval.

use std::fmt;

use itm_core::scored::Scored;
use itm_core::tiles::{Side, TopK};
use itm_core::{Error, Pairs, Result};
use serde::{Deserialize, Serialize};

/// A direction of retrieval. A score matrix has images as rows and texts as columns in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Direction {
    /// Images are the queries, texts the items.
    #[cfg_attr(feature = "cli", value(name = "i2t", help = "Images are the queries"))]
    I2t,
    /// Texts are the queries, images the items.
    #[cfg_attr(feature = "cli", value(name = "t2i", help = "Texts are the queries"))]
    T2i,
}

impl Direction {
    /// Both directions, images as queries first.
    pub const BOTH: [Self; 2] = [Self::I2t, Self::T2i];

    /// The number of queries, from the numbers of images and texts.
    pub fn queries<T>(self, images: T, texts: T) -> T {
        match self {
            Self::I2t => images,
            Self::T2i => texts,
        }
    }

    /// The number of items, from the numbers of images and texts.
    pub fn items<T>(self, images: T, texts: T) -> T {
        self.queries(texts, images)
    }

    /// A value of images and a value of texts in the order queries, items. It also puts values of queries and items into the order images,
    /// texts.
    pub(crate) fn sides<T>(self, images: T, texts: T) -> (T, T) {
        match self {
            Self::I2t => (images, texts),
            Self::T2i => (texts, images),
        }
    }

    /// The other direction.
    #[must_use]
    pub(crate) fn reversed(self) -> Self {
        self.queries(Self::T2i, Self::I2t)
    }

    /// The true items of a query, ascending.
    pub(crate) fn truths(self, pairs: &Pairs, query: usize) -> &[usize] {
        match self {
            Self::I2t => pairs.texts_of(query),
            Self::T2i => pairs.images_of(query),
        }
    }

    /// The image that a query is counted with where images are resampled or split; `None` for a text that is true of no image.
    pub(crate) fn unit(self, pairs: &Pairs, query: usize) -> Option<usize> {
        match self {
            Self::I2t => Some(query),
            Self::T2i => pairs.unit_of(query),
        }
    }

    /// The `k` best items of every query, the smaller index first on ties.
    pub(crate) fn nearest(self, scores: &dyn Scored, k: usize) -> Result<TopK> {
        scores.top(self.queries(Side::Images, Side::Texts), k)
    }

    /// All scores of some queries, `[queries, items]`, in the order of `queries`: shown in batches of at most 16 MiB, or of
    /// 64 queries if these have more.
    ///
    /// # Errors
    /// As [`Scored::block`], and if a score is infinite.
    pub(crate) fn batches(
        self,
        scores: &dyn Scored,
        queries: &[usize],
        mut show: impl FnMut(&[usize], &[f32]),
    ) -> Result<()> {
        let items = self.items(scores.images(), scores.texts());
        for some in queries.chunks(((1 << 22) / items.max(1)).max(64)) {
            let rows = match self {
                Self::I2t => scores.scores_of(Side::Images, some)?,
                Self::T2i => scores.scores_of(Side::Texts, some)?.transpose(),
            };
            let place = |at| {
                let (image, text) = self.sides(some[at / items], at % items);
                format!("scores of image {image} and text {text}")
            };
            Error::unless_finite(rows.values(), place, "a finite number")?;
            show(some, rows.values());
        }
        Ok(())
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.queries("i2t", "t2i"))
    }
}

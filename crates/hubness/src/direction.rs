//! The direction of retrieval.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A direction of retrieval. A score matrix has images as rows and texts as columns in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Images are the queries, texts the items.
    I2t,
    /// Texts are the queries, images the items.
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
        self.reversed().queries(images, texts)
    }

    /// The other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::I2t => Self::T2i,
            Self::T2i => Self::I2t,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.queries("i2t", "t2i"))
    }
}

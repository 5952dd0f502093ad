//! The two sides of the scores, and a value for each member of both.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Tile;

/// The images or the texts: the side of the queries, or the side whose members each have a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The images; a sum of an image is over texts.
    Images,
    /// The texts; a sum of a text is over images.
    Texts,
}

impl Side {
    pub(super) fn of<T>(self, images: T, texts: T) -> T {
        match self {
            Self::Images => images,
            Self::Texts => texts,
        }
    }

    pub(super) fn other(self) -> Self {
        self.of(Self::Texts, Self::Images)
    }
}

/// A value for each image and for each text; in a part of a pass, for each of some neighbouring ones.
#[derive(Debug, Clone, PartialEq)]
pub struct BothSides<T> {
    pub(super) first: [usize; 2],
    /// The value of each image, over all texts.
    pub images: Vec<T>,
    /// The value of each text, over all images.
    pub texts: Vec<T>,
}

impl<T: Copy> BothSides<T> {
    pub(super) fn new(images: Range<usize>, texts: Range<usize>, nothing: T) -> Self {
        Self {
            first: [images.start, texts.start],
            images: vec![nothing; images.len()],
            texts: vec![nothing; texts.len()],
        }
    }

    /// The values of the images and texts of a tile.
    pub(super) fn of_tile(&mut self, tile: &Tile<'_>) -> (&mut [T], &mut [T]) {
        let [image0, text0] = self.first;
        let (images, texts) = (tile.images(), tile.texts());
        (
            &mut self.images[images.start - image0..][..images.len()],
            &mut self.texts[texts.start - text0..][..texts.len()],
        )
    }

    /// Takes in the values of a lane.
    pub(super) fn merge(&mut self, lane: Self, join: impl Fn(&mut T, T)) {
        let [image0, text0] = lane.first;
        let images = self.images[image0..].iter_mut().zip(lane.images);
        images.chain(self.texts[text0..].iter_mut().zip(lane.texts)).for_each(|(a, b)| join(a, b));
    }
}

//! Single scores in f32, with the bits that a tile holds.

use super::super::kernel::chains;
use super::super::{Embeddings, Tiles};

/// Pairs that are computed side by side: one sum must wait for its last addition, eight sums fill the time.
const BESIDE: usize = 8;

/// Computes single scores, in the order of its pairs.
pub(super) struct Again<'a> {
    images: Embeddings<'a>,
    texts: Embeddings<'a>,
    widened: [[Vec<f32>; 2]; BESIDE],
}

impl<'a> Again<'a> {
    pub(super) fn new(tiles: &Tiles<'a>) -> Self {
        Self { images: tiles.images, texts: tiles.texts, widened: Default::default() }
    }

    /// Calls `see(place in pairs, score)` for each pair of an image and a text.
    pub(super) fn scores(
        &mut self,
        pairs: impl ExactSizeIterator<Item = (usize, usize)>,
        mut see: impl FnMut(usize, f32),
    ) {
        let mut pairs = pairs.enumerate().peekable();
        while let Some(&(first, pair)) = pairs.peek() {
            let mut eight = [pair; BESIDE]; // the last group is filled up with its first pair
            let mut filled = 0;
            for ((_, pair), place) in pairs.by_ref().take(BESIDE).zip(&mut eight) {
                *place = pair;
                filled += 1;
            }
            let mut rows: [[&[f32]; 2]; BESIDE] = [[&[]; 2]; BESIDE];
            for (((image, text), [v, w]), row) in
                eight.into_iter().zip(&mut self.widened).zip(&mut rows)
            {
                *row =
                    [self.images.block(image..image + 1, v), self.texts.block(text..text + 1, w)];
            }
            let scores = chains(rows);
            (0..filled).for_each(|k| see(first + k, scores[k]));
        }
    }
}

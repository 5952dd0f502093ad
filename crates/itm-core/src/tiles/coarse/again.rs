//! Single scores in f32, with the bits that a tile holds.

use super::super::Tiles;
use super::super::kernel::chains;

/// Pairs that are computed side by side: one sum must wait for its last addition, eight sums fill the time.
const BESIDE: usize = 8;

impl Tiles<'_> {
    /// Calls `see(place in pairs, score)` for each pair of an image and a text.
    pub(super) fn singles(
        &self,
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
            let rows = eight.map(|(image, text)| {
                [self.images.block(image..image + 1), self.texts.block(text..text + 1)]
            });
            let scores = chains(rows);
            (0..filled).for_each(|k| see(first + k, scores[k]));
        }
    }
}

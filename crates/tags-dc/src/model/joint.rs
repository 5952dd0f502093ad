//! Text and regions side by side.

use burn::tensor::Tensor;
use itm_core::encoders::TokenBatch;
use itm_kernels::embedding;

use super::EmbeddedRegions;

/// Where each row of a joint input comes from: texts first, then the regions of the row's image, nothing in between.
///
/// ```text
/// position j of a row of t tokens and r regions:   token j         for j < t
///                                                  region j − t    for t ≤ j < t + r
///                                                  anything        from there on
/// ```
///
/// A short text's regions begin before the longest text of the batch ends, so a row's tokens are its first t positions
/// and no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// `[b · width]`: rows of the texts `[b · l]`, then of the regions `[Σ counts]`.
    ids: Vec<u32>,
    /// Tokens and regions of each row.
    pub(super) keys: Vec<usize>,
    /// Tokens of each row.
    pub(super) tokens: Vec<usize>,
    width: usize,
}

impl Layout {
    /// The layout of these texts: row k is text k beside image `images[k]`. The layout has `width` positions, or as many as its longest row.
    ///
    /// # Panics
    /// If there is not one image for each text, an image does not exist, or a row is longer than `width`.
    pub(super) fn new(
        texts: &TokenBatch,
        counts: &[usize],
        images: &[usize],
        width: Option<usize>,
    ) -> Self {
        assert_eq!(images.len(), texts.len(), "one image for each text");
        if let Some(image) = images.iter().find(|&&image| image >= counts.len()) {
            panic!("image {image} of {}", counts.len());
        }
        let mut end = texts.ids.len();
        let next = |count: &usize| {
            end += count;
            end - count
        };
        let starts: Vec<usize> = counts.iter().map(next).collect();
        let rows = texts.lengths.iter().zip(images);
        let positions = |(tokens, &image): (&usize, &usize)| tokens + counts[image];
        let keys: Vec<usize> = rows.clone().map(positions).collect();
        let longest = keys.iter().copied().max().unwrap_or(0);
        let width = width.unwrap_or(longest);
        assert!(longest <= width, "a row of {longest} positions in a batch of width {width}");
        let mut ids: Vec<u32> = Vec::with_capacity(keys.len() * width);
        for (row, (&tokens, &image)) in rows.enumerate() {
            let regions = (starts[image]..).take(counts[image]);
            ids.extend((row * texts.width..).take(tokens).chain(regions).map(|id| id as u32));
            ids.resize((row + 1) * width, 0);
        }
        Self { ids, keys, tokens: texts.lengths.clone(), width }
    }

    /// Fills a row with the second token of its text. The texts are padded to `l` positions.
    pub(super) fn repeat_second_token(&mut self, row: usize, l: usize) {
        self.ids[row * self.width..(row + 1) * self.width].fill((row * l + 1) as u32);
    }

    /// Joins texts `[b, l, d]` and regions into `[b, width, d]`.
    pub(super) fn gather(&self, texts: Tensor<3>, regions: &EmbeddedRegions) -> Tensor<3> {
        let [b, l, d] = texts.dims();
        let table = Tensor::cat(vec![texts.reshape([b * l, d]), regions.rows.clone()], 0);
        embedding(table, &self.ids, None).reshape([b, self.width, d])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: texts of 3 and 1 tokens, padded to 3. The images have 1 and 2 regions, in rows 6, 7 and 8.
    #[test]
    fn golden_two_rows_and_their_padding() {
        let texts = TokenBatch::new(&[&[5, 6, 7][..], &[8]]);
        let layout = Layout::new(&texts, &[1, 2], &[0, 1], None);
        assert_eq!(layout.ids, [0, 1, 2, 6, 3, 7, 8, 0]);
        assert_eq!((layout.keys, layout.tokens), (vec![4, 3], vec![3, 1]));
        // Both texts beside the second image, in a layout that is wider than needed.
        let layout = Layout::new(&texts, &[1, 2], &[1, 1], Some(6));
        assert_eq!(layout.ids, [0, 1, 2, 7, 8, 0, 3, 7, 8, 0, 0, 0]);
    }

    #[test]
    #[should_panic(expected = "a row of 4 positions in a batch of width 3")]
    fn a_row_is_not_cut() {
        Layout::new(&TokenBatch::new(&[&[5, 6, 7]]), &[1], &[0], Some(3));
    }
}

//! Captions as padded numbers.

use crate::{Error, Result};

/// Captions of a batch as word numbers, padded with 0 to the longest. No tensor: any thread can make it.
///
/// ```
/// use itm_core::encoders::TokenBatch;
///
/// let batch = TokenBatch::new(&[&[7, 8, 9][..], &[5]]);
/// assert_eq!(batch.ids, [7, 8, 9, 5, 0, 0]);
/// assert_eq!((batch.lengths, batch.width), (vec![3, 1], 3));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenBatch {
    /// `[b · width]`, row by row.
    pub ids: Vec<u32>,
    /// `[b]`, at least 1 each.
    pub lengths: Vec<usize>,
    /// Words of the longest caption, or more: padding.
    pub width: usize,
}

impl TokenBatch {
    /// Pads the captions.
    ///
    /// # Panics
    /// If there is no caption, or one has no word: text without a known word needs a number for unknown words.
    pub fn new<C: AsRef<[u32]>>(captions: &[C]) -> Self {
        let lengths: Vec<usize> = captions.iter().map(|c| c.as_ref().len()).collect();
        if let Some(row) = lengths.iter().position(|&n| n == 0) {
            panic!("caption {row} of the batch has no word");
        }
        let width = *lengths.iter().max().expect("a batch of captions is not empty");
        Self::filled(captions, lengths, width)
    }

    /// Pads the captions to a width of its own: FNE's evaluation pads to 30 always.
    ///
    /// # Panics
    /// As [`TokenBatch::new`], and if a caption is longer.
    pub fn padded_to<C: AsRef<[u32]>>(captions: &[C], width: usize) -> Self {
        let batch = Self::new(captions);
        assert!(batch.width <= width, "a caption of {} words padded to {width}", batch.width);
        Self::filled(captions, batch.lengths, width)
    }

    /// Captions that are padded already, `[b · width]`, and what is real of each, 1 or 0.
    ///
    /// # Errors
    /// A number of values that is no multiple of the width or differs from the mask's, a caption that is all padding, or
    /// one whose padding does not stand at its end.
    pub fn from_mask(ids: Vec<u32>, mask: &[u8], width: usize) -> Result<Self> {
        if width == 0
            || ids.is_empty()
            || !ids.len().is_multiple_of(width)
            || ids.len() != mask.len()
        {
            let got = format!("{} and {} values", ids.len(), mask.len());
            return Err(Error::invalid(
                "captions",
                format!("ids and mask in rows of {width}"),
                got,
            ));
        }
        let length = |(row, mask): (usize, &[u8])| {
            let real = mask.iter().take_while(|&&m| m == 1).count();
            let refused =
                |expected, got| Err(Error::invalid(format!("caption {row}"), expected, got));
            match mask[real..].iter().find(|&&m| m != 0) {
                Some(_) => refused("a mask of ones, then zeros", format!("{mask:?}")),
                None if real == 0 => refused("a word", "padding alone".to_string()),
                None => Ok(real),
            }
        };
        let lengths = mask.chunks_exact(width).enumerate().map(length).collect::<Result<_>>()?;
        Ok(Self { ids, lengths, width })
    }

    fn filled<C: AsRef<[u32]>>(captions: &[C], lengths: Vec<usize>, width: usize) -> Self {
        let mut ids = vec![0; captions.len() * width];
        for (row, caption) in ids.chunks_exact_mut(width).zip(captions) {
            row[..caption.as_ref().len()].copy_from_slice(caption.as_ref());
        }
        Self { ids, lengths, width }
    }

    /// Number of captions.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there is no caption; never, by construction.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// # Panics
    /// If a word's number is not in a vocabulary of that many words.
    pub(super) fn check(&self, vocabulary: usize) {
        for (k, &id) in self.ids.iter().enumerate() {
            let (row, word) = (k / self.width, k % self.width);
            assert!(
                (id as usize) < vocabulary,
                "caption {row}, word {word}: {id} of {vocabulary} words"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "caption 1 of the batch has no word")]
    fn an_empty_caption_is_named() {
        TokenBatch::new(&[vec![1], vec![]]);
    }

    #[test]
    fn padding_may_be_wider_than_the_longest() {
        let batch = TokenBatch::padded_to(&[&[7, 8][..], &[5]], 3);
        assert_eq!(batch.ids, [7, 8, 0, 5, 0, 0]);
        assert_eq!((batch.lengths, batch.width), (vec![2, 1], 3));
    }

    #[test]
    #[should_panic(expected = "a caption of 2 words padded to 1")]
    fn padding_does_not_cut() {
        TokenBatch::padded_to(&[&[7, 8]], 1);
    }

    #[test]
    fn a_mask_gives_the_lengths() {
        let of = |ids: &[u32], mask: &[u8], width| TokenBatch::from_mask(ids.to_vec(), mask, width);
        let batch = of(&[7, 8, 5, 0], &[1, 1, 1, 0], 2).unwrap();
        assert_eq!(batch, TokenBatch::new(&[&[7, 8][..], &[5]]));
        for (mask, width, want) in [
            (&[1, 1, 0, 0][..], 2, "caption 1: expected a word, got padding alone"),
            (&[0, 1, 1, 0], 2, "caption 0: expected a mask of ones, then zeros, got [0, 1]"),
            (&[2, 1, 1, 0], 2, "caption 0: expected a mask of ones, then zeros, got [2, 1]"),
            (&[1, 1, 1], 2, "captions: expected ids and mask in rows of 2, got 4 and 3 values"),
            (&[1; 4], 3, "captions: expected ids and mask in rows of 3, got 4 and 4 values"),
            (&[1; 4], 0, "captions: expected ids and mask in rows of 0, got 4 and 4 values"),
        ] {
            assert_eq!(of(&[7, 8, 5, 0], mask, width).unwrap_err().to_string(), want);
        }
    }
}

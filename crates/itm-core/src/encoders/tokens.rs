//! Captions as padded word numbers.

/// The captions of a batch as word numbers, padded with 0 to the longest caption. It is no tensor, so any thread can
/// make it.
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
    /// Number of words of each caption, `[b]`, each at least 1.
    pub lengths: Vec<usize>,
    /// Padded width: the number of words of the longest caption, or more.
    pub width: usize,
}

impl TokenBatch {
    /// Pads the captions.
    ///
    /// # Panics
    /// If there is no caption, or a caption has no word. A text without a known word needs a number for unknown words.
    pub fn new<C: AsRef<[u32]>>(captions: &[C]) -> Self {
        let lengths: Vec<usize> = captions.iter().map(|c| c.as_ref().len()).collect();
        if let Some(row) = lengths.iter().position(|&n| n == 0) {
            panic!("caption {row} of the batch has no word");
        }
        let width = *lengths.iter().max().expect("a batch of captions is not empty");
        Self::filled(captions, lengths, width)
    }

    /// Pads the captions to a given width. FNE's evaluation always pads to 30.
    ///
    /// # Panics
    /// As [`TokenBatch::new`], and if a caption is longer than the width, or memory cannot hold captions of this width.
    pub fn padded_to<C: AsRef<[u32]>>(captions: &[C], width: usize) -> Self {
        let batch = Self::new(captions);
        assert!(batch.width <= width, "a caption of {} words padded to {width}", batch.width);
        Self::filled(captions, batch.lengths, width)
    }

    fn filled<C: AsRef<[u32]>>(captions: &[C], lengths: Vec<usize>, width: usize) -> Self {
        let n = captions.len().checked_mul(width).filter(|&n| n <= isize::MAX as usize / 4);
        let mut ids = Vec::new();
        let room = n.is_some_and(|n| ids.try_reserve_exact(n).is_ok());
        assert!(room, "no memory for {} captions of {width} words", captions.len());
        ids.resize(captions.len() * width, 0);
        for (row, caption) in ids.chunks_exact_mut(width).zip(captions) {
            row[..caption.as_ref().len()].copy_from_slice(caption.as_ref());
        }
        Self { ids, lengths, width }
    }

    /// Number of captions.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there is no caption; always false, because the constructors refuse an empty batch.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    pub(super) fn check_sizes(&self) {
        let (b, l, n) = (self.lengths.len(), self.width, self.ids.len());
        assert!(b > 0 && b.checked_mul(l) == Some(n), "{n} words of {b} captions padded to {l}");
        if let Some(row) = self.lengths.iter().position(|length| !(1..=l).contains(length)) {
            panic!("caption {row}: {} words, not 1 to {l}", self.lengths[row]);
        }
    }

    /// Checks the word numbers.
    ///
    /// # Panics
    /// If the fields, which are public, do not fit, or a word number is not in a vocabulary of `vocabulary` words.
    pub(super) fn check(&self, vocabulary: usize) {
        self.check_sizes();
        for (k, &id) in self.ids.iter().enumerate() {
            let (row, word) = (k / self.width, k % self.width);
            let known = (id as usize) < vocabulary;
            assert!(known, "caption {row}, word {word}: {id} of {vocabulary} words");
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
}

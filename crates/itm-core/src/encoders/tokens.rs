//! Captions as padded numbers.

use burn::tensor::{Device, Int, Tensor, TensorData};

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
    /// Words of the longest caption.
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

    /// The numbers as a tensor, `[b · width]`.
    pub fn to_tensor(&self, device: &Device) -> Tensor<1, Int> {
        let ids: Vec<i64> = self.ids.iter().map(|&id| i64::from(id)).collect();
        let n = ids.len();
        Tensor::from_data(TensorData::new(ids, [n]), device)
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
}

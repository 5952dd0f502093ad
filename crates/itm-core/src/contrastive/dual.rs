//! The losses of published dual encoders.

use burn::tensor::Tensor;

use super::{Contrast, Temperature};
use crate::Siblings;
use crate::encoders::DualEncoder;

impl DualEncoder {
    /// The loss that the family was trained with, for scores of images with their texts, `[b, b]`: the mean of
    /// [`info_nce`](super::info_nce) over both directions, or [`sigmoid_pairs`](super::sigmoid_pairs) summed over the texts and averaged
    /// over the images.
    ///
    /// # Panics
    /// If the scores are not square, or the siblings differ from them in number.
    pub fn loss(&self, scores: Tensor<2>, siblings: Siblings) -> Tensor<1> {
        let (temperature, bias) = (Temperature::Learned(self.scale.clone()), self.bias.clone());
        let contrast = Contrast { temperature, bias, constant: Some(0.0) };
        match contrast.bias {
            None => contrast.info_nce(scores, siblings),
            Some(_) => contrast.sigmoid(scores, siblings),
        }
    }
}

//! The losses of published dual encoders.

use burn::tensor::Tensor;

use super::{Temperature, info_nce, sigmoid_pairs};
use crate::Siblings;
use crate::encoders::DualEncoder;

impl DualEncoder {
    /// The loss that the family was trained with, for scores of images with their texts, `[b, b]`: the mean of
    /// [`info_nce`] over both directions, or [`sigmoid_pairs`] summed over the texts and averaged over the images.
    ///
    /// # Panics
    /// If the scores are not square, or the siblings differ from them in number.
    pub fn loss(&self, scores: Tensor<2>, siblings: Siblings) -> Tensor<1> {
        let rows = scores.dims()[0] as f64;
        let temperature = Temperature::Learned(self.scale.clone());
        match &self.bias {
            None => {
                let [i2t, t2i] = info_nce(scores, &temperature, siblings);
                (i2t.mean() + t2i.mean()) / 2.0
            }
            Some(bias) => sigmoid_pairs(scores, &temperature, bias.val(), siblings).sum() / rows,
        }
    }
}

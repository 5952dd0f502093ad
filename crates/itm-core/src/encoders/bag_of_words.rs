//! Encodes captions as bags of words.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use itm_kernels::bag::Bags;
use itm_kernels::{Linear, bag, normalize_rows};

use super::InputDropout;
use super::given::linear_map;
use crate::start::{BagPooling, LinearMap};
use crate::{Error, Result};

/// Maps captions into the joint space: a linear map of the terms that occur.
///
/// ```text
/// y_t = idf_t / ‖idf of the caption's terms‖   or   1 / n
/// w̄   = Σ_t drop(y_t) · W[t] + b,   then w̄ / ‖w̄‖
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | n | number of terms of the caption | |
/// | idf | [`with_idf`](Self::with_idf) | `[terms]` |
/// | W, b | `weight`, `bias` | `[terms, d]`, `[d]` |
/// | w̄ / ‖w̄‖ | result | `[b, d]` |
///
/// A caption is given as the numbers of its distinct known terms; a number that is given twice counts twice. A caption
/// without a known term becomes `b / ‖b‖`. After dropout the values are not scaled to unit length again. The cost of
/// the product, forward and backward, depends only on the terms that occur. Except for the dropout mask, an embedding
/// does not depend on its batch.
///
/// ```
/// use burn::tensor::Device;
/// use itm_core::encoders::{BagOfWords, InputDropout};
/// use itm_core::host;
///
/// let weight = [1.0, 0.0, /* term 1 */ 0.0, 1.0];
/// let bag = BagOfWords::from_map(&weight, &[0.0, 2.0], &[3.0, 4.0], &Device::flex())?;
/// // Both terms: 3/5 · [1, 0] + 4/5 · [0, 1] + [0, 2] = [0.6, 2.8]; none: [0, 2].
/// let rows = host(bag.encode(&[&[0, 1][..], &[]], InputDropout::Off));
/// let length = (0.6f32 * 0.6 + 2.8 * 2.8).sqrt();
/// assert!((rows[0] - 0.6 / length).abs() < 1e-6 && (rows[1] - 2.8 / length).abs() < 1e-6);
/// assert_eq!(rows[2..], [0.0, 1.0]);
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Module, Debug)]
pub struct BagOfWords {
    /// `[terms, d]`
    pub weight: Param<Tensor<2>>,
    /// `[d]`
    pub bias: Param<Tensor<1>>,
    /// `[terms]`, above 0: data, not learnt.
    #[module(skip)]
    idf: Vec<f32>,
    /// The weights of the terms of a caption.
    #[module(skip)]
    pub pooling: BagPooling,
}

impl BagOfWords {
    /// Draws weight and bias uniformly from ±1/√terms, as for any linear map from the terms. Every idf is 1. The seed
    /// decides all values.
    pub fn new(terms: usize, d: usize, seed: u64, device: &Device) -> Self {
        let Linear { weight, bias, .. } = Linear::seeded(terms, d, seed, device);
        Self { weight, bias, idf: vec![1.0; terms], pooling: BagPooling::default() }
    }

    /// Sets the idf of the terms.
    ///
    /// # Errors
    /// If the number of idf values is not the number of terms, or a value is not a finite number above 0.
    pub fn with_idf(self, idf: &[f32]) -> Result<Self> {
        let (place, [terms, _]) = ("idf of a bag of words", self.weight.dims());
        if idf.len() != terms {
            return Err(Error::invalid(place, format!("idf of {terms} terms"), idf.len()));
        }
        if let Some(value) = idf.iter().find(|x| !(x.is_finite() && **x > 0.0)) {
            return Err(Error::invalid(place, "numbers above 0", value));
        }
        Ok(Self { idf: idf.to_vec(), ..self })
    }

    /// Builds the encoder from a map, `[terms, d]` row-major, its bias and the idf of the terms.
    ///
    /// # Errors
    /// If the sizes do not fit, a weight is not finite, or an idf is not above 0.
    pub fn from_map(weight: &[f32], bias: &[f32], idf: &[f32], device: &Device) -> Result<Self> {
        let (weight, bias) = linear_map("map of a bag of words", weight, bias, device)?;
        let pooling = BagPooling::default();
        Self { weight, bias, idf: vec![], pooling }.with_idf(idf)
    }

    /// Replaces the map by a map of the same shape.
    ///
    /// # Errors
    /// If the map has another shape, or a value is not finite.
    pub fn with_map(self, map: &LinearMap) -> Result<Self> {
        let weight = self.weight.val();
        let place = "map of a bag of words";
        let (weight, bias) = map.parameters(place, weight.dims(), &weight.device())?;
        Ok(Self { weight, bias, ..self })
    }

    /// w̄ of captions, rows of unit length.
    ///
    /// # Panics
    /// If there is no caption, or a term's number is not in the vocabulary.
    pub fn encode<C: AsRef<[u32]>>(&self, captions: &[C], dropout: InputDropout) -> Tensor<2> {
        assert!(!captions.is_empty(), "a batch of captions is not empty");
        let mut bags = Bags::default();
        for (row, caption) in captions.iter().enumerate() {
            bags.push(self.values(row, caption.as_ref()));
        }
        dropout.apply(bags.weights_mut());
        normalize_rows(bag(self.weight.val(), bags) + self.bias.val().unsqueeze())
    }

    /// The terms of a caption and their values.
    fn values(&self, row: usize, caption: &[u32]) -> impl Iterator<Item = (u32, f32)> {
        let idf = |(k, &term): (usize, &u32)| match self.idf.get(term as usize) {
            Some(&idf) => f64::from(idf),
            None => panic!("caption {row}, term {k}: {term} of {} terms", self.idf.len()),
        };
        let idf: Vec<f64> = caption.iter().enumerate().map(idf).collect();
        let (count, length) = (idf.len() as f64, idf.iter().map(|x| x * x).sum::<f64>().sqrt());
        let pooling = self.pooling;
        caption.iter().copied().zip(idf).map(move |(term, idf)| match pooling {
            BagPooling::TfIdf => (term, (idf / length) as f32),
            BagPooling::Mean => (term, (1.0 / count) as f32),
        })
    }
}

#[cfg(test)]
mod tests;

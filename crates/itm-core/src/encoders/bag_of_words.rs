//! Encodes captions as bags of words.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use itm_kernels::bag::Bags;
use itm_kernels::{Linear, bag, normalize_rows};

use super::InputDropout;
use crate::data::Features;
use crate::start::{BagPooling, LinearMap};
use crate::{Error, Result};

/// Maps captions into the joint space: a linear map of the terms that occur and, where there are some, of given rows.
///
/// ```text
/// y_t = idf_t / ‖idf of the caption's terms‖   or   1 / n       t < terms
/// y_t = r[t − terms]                                             t ≥ terms, with the given row r of the caption
/// w̄   = Σ_t drop(y_t) · W[t] + b,   then w̄ / ‖w̄‖
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | n | number of terms of the caption | |
/// | idf | `with_idf` | `[terms]` |
/// | r | `with_rows` | `[width]` |
/// | W, b | `weight`, `bias` | `[terms + width, d]`, `[d]` |
/// | w̄ / ‖w̄‖ | result | `[b, d]` |
///
/// A caption is given as the numbers of its distinct known terms; a number that is given twice counts twice. The number
/// `terms + width + k` stands for row k of the given rows. A caption without a known term and row becomes `b / ‖b‖`. After dropout the values are not scaled to unit length again. The cost of
/// the product, forward and backward, depends only on the terms that occur. Except for the dropout mask, an embedding
/// does not depend on its batch.
///
/// ```
/// use burn::tensor::Device;
/// use itm_core::encoders::{BagOfWords, InputDropout};
/// use itm_core::host;
/// use itm_core::start::LinearMap;
///
/// let map = LinearMap { weight: vec![1.0, 0.0, /* term 1 */ 0.0, 1.0], bias: vec![0.0, 2.0] };
/// let bag = BagOfWords::new(2, 2, 1, &Device::flex()).with_map(&map)?.with_idf(&[3.0, 4.0])?;
/// // Both terms: 3/5 · [1, 0] + 4/5 · [0, 1] + [0, 2] = [0.6, 2.8]; none: [0, 2].
/// let rows = host(bag.encode(&[&[0, 1][..], &[]], InputDropout::OFF));
/// let length = (0.6f32 * 0.6 + 2.8 * 2.8).sqrt();
/// assert!((rows[0] - 0.6 / length).abs() < 1e-6 && (rows[1] - 2.8 / length).abs() < 1e-6);
/// assert_eq!(rows[2..], [0.0, 1.0]);
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Module, Debug)]
pub struct BagOfWords {
    /// `[terms + width, d]`
    pub weight: Param<Tensor<2>>,
    /// `[d]`
    pub bias: Param<Tensor<1>>,
    /// `[terms]`, above 0: data, not learnt.
    #[module(skip)]
    idf: Vec<f32>,
    /// `[rows, width]`: data, not learnt.
    #[module(skip)]
    rows: Option<Arc<Features>>,
    /// The weights of the terms of a caption.
    #[module(skip)]
    pub pooling: BagPooling,
}

impl BagOfWords {
    /// Draws weight and bias uniformly from ±1/√inputs, as for any linear map. `inputs` counts the terms and the width of a given
    /// row. Until rows are given all inputs are terms. Every idf is 1. The seed decides all values.
    pub fn new(inputs: usize, d: usize, seed: u64, device: &Device) -> Self {
        let Linear { weight, bias, .. } = Linear::seeded(inputs, d, seed, device);
        let pooling = BagPooling::default();
        Self { weight, bias, idf: vec![1.0; inputs], rows: None, pooling }
    }

    /// Gives the rows of captions. They take the place of the last terms: as many as a row is wide.
    ///
    /// # Errors
    /// If a row is wider than there are inputs, or a value is not finite.
    pub(crate) fn with_rows(mut self, rows: Arc<Features>) -> Result<Self> {
        let (place, [inputs, _]) = ("given rows of a bag of words", self.weight.dims());
        let Some(terms) = inputs.checked_sub(rows.dim) else {
            return Err(Error::invalid(place, format!("a width of at most {inputs}"), rows.dim));
        };
        Error::unless_finite(&rows.values, |_| place.into(), "finite numbers")?;
        self.idf.truncate(terms);
        Ok(Self { rows: Some(rows), ..self })
    }

    /// Whether this is the number of a term or of a given row.
    pub fn has(&self, number: u32) -> bool {
        let (number, inputs) = (number as usize, self.weight.dims()[0]);
        let rows = self.rows.as_ref().map_or(0, |rows| rows.rows());
        number < self.idf.len() || (inputs..inputs + rows).contains(&number)
    }

    /// Sets the idf of the terms. With given rows, call it after `with_rows`.
    ///
    /// # Errors
    /// If the number of idf values is not the number of terms, or a value is not a finite number above 0.
    pub fn with_idf(self, idf: &[f32]) -> Result<Self> {
        let place = "idf of a bag of words";
        let terms = self.weight.dims()[0] - self.rows.as_ref().map_or(0, |rows| rows.dim);
        Error::unless(idf.len() == terms, place, format_args!("idf of {terms} terms"), idf.len())?;
        if let Some(value) = idf.iter().find(|x| !(x.is_finite() && **x > 0.0)) {
            return Err(Error::invalid(place, "numbers above 0", value));
        }
        Ok(Self { idf: idf.to_vec(), ..self })
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
    /// If there is no caption, [`has`](Self::has) not a number, or a share of dropout is not in `[0, 1)`.
    pub fn encode<C: AsRef<[u32]>>(&self, captions: &[C], dropout: InputDropout) -> Tensor<2> {
        assert!(!captions.is_empty(), "a batch of captions is not empty");
        let mut bags = Bags::default();
        for (row, caption) in captions.iter().enumerate() {
            bags.push(self.values(row, caption.as_ref()));
        }
        dropout.apply(bags.weights_mut());
        normalize_rows(bag(self.weight.val(), bags) + self.bias.val().unsqueeze())
    }

    /// The inputs of a caption and their values.
    fn values(&self, row: usize, caption: &[u32]) -> Vec<(u32, f32)> {
        let (terms, inputs) = (self.idf.len(), self.weight.dims()[0]);
        if let Some(k) = caption.iter().position(|&number| !self.has(number)) {
            panic!("caption {row}, term {k}: {} of {terms} terms", caption[k]);
        }
        let pooled: &[u32] = if self.pooling == BagPooling::Off { &[] } else { caption };
        let idf = |&term: &u32| Some((term, f64::from(*self.idf.get(term as usize)?)));
        let idf: Vec<(u32, f64)> = pooled.iter().filter_map(idf).collect();
        let length = idf.iter().map(|(_, x)| x * x).sum::<f64>().sqrt();
        let count = idf.len() as f64;
        let weighted = |(term, idf)| match self.pooling {
            BagPooling::TfIdf => (term, (idf / length) as f32),
            BagPooling::Mean | BagPooling::Off => (term, (1.0 / count) as f32),
        };
        let mut values: Vec<(u32, f32)> = idf.into_iter().map(weighted).collect();
        let Some(rows) = &self.rows else { return values };
        let given = caption.iter().filter_map(|&number| (number as usize).checked_sub(inputs));
        for k in given {
            values.extend((terms as u32..).zip(rows.row(k).iter().copied()));
        }
        values
    }
}

#[cfg(test)]
mod tests;

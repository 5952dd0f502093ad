//! A linear map of precomputed features, with or without a perceptron beside it.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use itm_kernels::{Noise, normalize_rows, random, uniform};

use super::given::linear_map;
use super::{InputDropout, Residual, ResidualShape};
use crate::Result;
use crate::start::LinearMap;

/// Seeds of the perceptron's own masks: parts of the seed of the features' mask.
const RESIDUAL_INPUTS: u64 = 1;
const RESIDUAL_HIDDEN: u64 = 2;

/// Features to the joint space: `v̄ = drop(x) W + b + r(x)`, then unit length.
///
/// | symbol | here | shape |
/// |---|---|---|
/// | x | the features | `[b, dim]` |
/// | W, b | `linear` | `[dim, d]`, `[d]` |
/// | r | `residual`, or 0 | `[b, d]` |
/// | v̄ / ‖v̄‖ | result | `[b, d]` |
#[derive(Module, Debug)]
pub struct Projection {
    /// `[dim, d]` with bias.
    pub linear: Linear,
    /// A perceptron that starts at zero.
    pub residual: Option<Residual>,
}

impl Projection {
    /// Weights and bias uniform in ±1/√dim, as PyTorch: a function of the seed alone. No residual.
    pub fn new(dim: usize, d: usize, seed: u64, device: &Device) -> Self {
        let bound = 1.0 / (dim as f32).sqrt();
        let weight = uniform([dim, d], bound, random::derive(seed, 0), device);
        let bias = uniform([d], bound, random::derive(seed, 1), device);
        Self::of(Param::from_tensor(weight), Param::from_tensor(bias))
    }

    /// A given map `[dim, d]`, row by row, and its bias `[d]`. No residual.
    ///
    /// # Errors
    /// If the weight is not rows as wide as the bias, or a value is not finite.
    pub fn from_map(weight: &[f32], bias: &[f32], device: &Device) -> Result<Self> {
        let (weight, bias) = linear_map("map of image features", weight, bias, device)?;
        Ok(Self::of(weight, bias))
    }

    /// The same with another map of the same features to the same width; the residual stays.
    ///
    /// # Errors
    /// If the map is of another shape, or a value is not finite.
    pub fn with_map(self, map: &LinearMap) -> Result<Self> {
        let weight = self.linear.weight.val();
        let place = "map of image features";
        let (weight, bias) = map.parameters(place, weight.dims(), &weight.device())?;
        Ok(Self { linear: Linear { weight, bias: Some(bias) }, ..self })
    }

    /// The same for training features of this standard deviation: their residual is scaled by it.
    ///
    /// # Errors
    /// If there is a residual, and the deviation is not above 0.
    pub fn scaled_to(self, std: f64) -> Result<Self> {
        let residual = self.residual.map(|residual| residual.of_deviation(std)).transpose()?;
        Ok(Self { residual, ..self })
    }

    fn of(weight: Param<Tensor<2>>, bias: Param<Tensor<1>>) -> Self {
        Self { linear: Linear { weight, bias: Some(bias) }, residual: None }
    }

    /// The map with a perceptron that starts at zero; `std` is the standard deviation of all training features.
    ///
    /// # Errors
    /// If `std` is not above 0, or a value of the shape is out of its range.
    pub fn with_residual(self, shape: &ResidualShape, std: f64, seed: u64) -> Result<Self> {
        let weight = self.linear.weight.val();
        let residual = Residual::new(shape, weight.dims(), std, seed, &weight.device())?;
        Ok(Self { residual: Some(residual), ..self })
    }

    /// v̄ of features that lie row by row, rows of unit length.
    ///
    /// # Panics
    /// If the features are not whole rows.
    pub fn embed(&self, features: &[f32], dropout: InputDropout) -> Tensor<2> {
        normalize_rows(self.unscaled(features, dropout))
    }

    /// [`Projection::embed`] before it is scaled to unit length.
    ///
    /// # Panics
    /// If the features are not whole rows.
    pub fn unscaled(&self, features: &[f32], dropout: InputDropout) -> Tensor<2> {
        let mut dropped = features.to_vec();
        dropout.apply(&mut dropped);
        let linear = self.linear.forward(self.rows(dropped));
        let Some(residual) = &self.residual else { return linear };
        let mut scaled: Vec<f32> = features.iter().map(|x| x * residual.scale()).collect();
        dropout.inside(RESIDUAL_INPUTS, residual.input_dropout).apply(&mut scaled);
        linear + residual.forward(self.rows(scaled), dropout.noise(RESIDUAL_HIDDEN))
    }

    /// v̄ of rows on the device, rows of unit length; nothing is dropped.
    ///
    /// # Panics
    /// If the features have another width.
    pub fn encode(&self, input: Tensor<2>) -> Tensor<2> {
        let (got, [dim, _]) = (input.dims(), self.linear.weight.dims());
        assert_eq!(got[1], dim, "features of shape {got:?} for a projection from {dim}");
        let linear = self.linear.forward(input.clone());
        normalize_rows(match &self.residual {
            Some(residual) => linear + residual.forward(input * residual.scale(), Noise::Off),
            None => linear,
        })
    }

    fn rows(&self, values: Vec<f32>) -> Tensor<2> {
        let weight = self.linear.weight.val();
        let [dim, _] = weight.dims();
        assert!(values.len().is_multiple_of(dim), "features are rows of {dim}");
        let shape = [values.len() / dim, dim];
        Tensor::from_data(TensorData::new(values, shape), &weight.device())
    }
}

#[cfg(test)]
mod tests;

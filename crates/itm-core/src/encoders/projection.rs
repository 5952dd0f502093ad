//! A linear map of precomputed features, with or without a parallel perceptron.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use itm_kernels::{Linear, matmul, normalize_rows};

use super::{InputDropout, Residual, ResidualShape};
use crate::Result;
use crate::start::LinearMap;

/// Parts that derive the seeds of the perceptron's masks from the seed of the features' mask.
const RESIDUAL_INPUTS: u64 = 1;
const RESIDUAL_HIDDEN: u64 = 2;

/// Maps features into the joint space: `v̄ = drop(x) W + b + r(x)`, then scales to unit length.
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
    /// Draws weights and bias uniformly from ±1/√dim, as PyTorch does. The seed decides all values. There is no
    /// residual.
    ///
    /// # Panics
    /// If a width is 0, or memory cannot hold the weight.
    pub fn new(dim: usize, d: usize, seed: u64, device: &Device) -> Self {
        assert!(dim > 0 && d > 0, "a projection from {dim} to {d} values");
        Self { linear: Linear::seeded(dim, d, seed, device), residual: None }
    }

    /// Replaces the map by a map of the same shape and keeps the residual.
    ///
    /// # Errors
    /// If the map has another shape, or a value is not finite.
    pub fn with_map(self, map: &LinearMap) -> Result<Self> {
        let weight = self.linear.weight.val();
        let place = "map of image features";
        let (weight, bias) = map.parameters(place, weight.dims(), &weight.device())?;
        Ok(Self { linear: Linear::new(weight, bias), ..self })
    }

    /// Sets the standard deviation of the training features, which scales the inputs of the residual.
    ///
    /// # Errors
    /// If there is a residual and the deviation is not above 0.
    pub(crate) fn scaled_to(self, std: f64) -> Result<Self> {
        let residual = self.residual.map(|residual| residual.of_deviation(std)).transpose()?;
        Ok(Self { residual, ..self })
    }

    /// Adds a perceptron that starts at zero. `std` is the standard deviation of all training features.
    ///
    /// # Errors
    /// If `std` is not above 0, a value of the shape is out of range, or the scale of the inputs is no f32.
    pub fn with_residual(self, shape: &ResidualShape, std: f64, seed: u64) -> Result<Self> {
        let weight = self.linear.weight.val();
        let residual = Residual::new(shape, weight.dims(), std, seed, &weight.device())?;
        Ok(Self { residual: Some(residual), ..self })
    }

    /// v̄ of row-major features, rows of unit length.
    ///
    /// # Panics
    /// If the features are not whole rows, or a share of dropout is not in `[0, 1)`.
    pub fn embed(&self, features: &[f32], dropout: InputDropout) -> Tensor<2> {
        normalize_rows(self.unscaled(features, dropout))
    }

    /// As [`Projection::embed`], but before the rows are scaled to unit length.
    ///
    /// # Panics
    /// If the features are not whole rows.
    pub fn unscaled(&self, features: &[f32], dropout: InputDropout) -> Tensor<2> {
        let mut dropped = features.to_vec();
        dropout.apply(&mut dropped);
        let linear = self.mapped(self.rows(dropped));
        let Some(residual) = &self.residual else { return linear };
        let mut scaled: Vec<f32> = features.iter().map(|x| x * residual.scale()).collect();
        let share = residual.shape.input_dropout;
        let of_residual = InputDropout { share, noise: dropout.noise.part(RESIDUAL_INPUTS) };
        of_residual.apply(&mut scaled);
        linear + residual.forward(self.rows(scaled), dropout.noise.part(RESIDUAL_HIDDEN))
    }

    /// `x W + b`: the bias is added to the sums, not first as in [`Linear::forward`], whose last bits differ.
    fn mapped(&self, x: Tensor<2>) -> Tensor<2> {
        matmul(x, self.linear.weight.val()) + self.linear.bias.val().unsqueeze()
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

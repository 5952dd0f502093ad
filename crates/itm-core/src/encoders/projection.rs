//! A linear map of precomputed features.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use itm_kernels::{normalize_rows, random, uniform};

/// Features to the joint space: `v̄ = x W + b`, then unit length.
///
/// | symbol | here | shape |
/// |---|---|---|
/// | x | `input` | `[b, dim]` |
/// | W, b | `linear` | `[dim, d]`, `[d]` |
/// | v̄ / ‖v̄‖ | result | `[b, d]` |
#[derive(Module, Debug)]
pub struct Projection {
    /// `[dim, d]` with bias.
    pub linear: Linear,
}

impl Projection {
    /// Weights and bias uniform in ±1/√dim, as PyTorch: a function of the seed alone.
    pub fn new(dim: usize, d: usize, seed: u64, device: &Device) -> Self {
        let bound = 1.0 / (dim as f32).sqrt();
        let weight = uniform([dim, d], bound, random::derive(seed, 0), device);
        let bias = uniform([d], bound, random::derive(seed, 1), device);
        let (weight, bias) = (Param::from_tensor(weight), Some(Param::from_tensor(bias)));
        Self { linear: Linear { weight, bias } }
    }

    /// v̄, rows of unit length.
    ///
    /// # Panics
    /// If the features have another width.
    pub fn encode(&self, input: Tensor<2>) -> Tensor<2> {
        let (got, [dim, _]) = (input.dims(), self.linear.weight.dims());
        assert_eq!(got[1], dim, "features of shape {got:?} for a projection from {dim}");
        normalize_rows(self.linear.forward(input))
    }
}

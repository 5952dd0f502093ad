//! A linear map of rows.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::uniform;
use crate::random;

/// `y = x W + b` over the last axis.
///
/// | symbol | here | shape |
/// |---|---|---|
/// | x | `x` | `[…, i]` |
/// | W, b | `weight`, `bias` | `[i, o]`, `[o]` |
/// | y | result | `[…, o]` |
///
/// The axes before the last are one: a batch of sequences is one product, not one a sequence.
#[derive(Module, Debug)]
pub struct Linear {
    /// `[i, o]`
    pub weight: Param<Tensor<2>>,
    /// `[o]`
    pub bias: Param<Tensor<1>>,
}

impl Linear {
    /// Weight and bias uniform in ±1/√i, as PyTorch: a function of the seed alone.
    pub fn seeded(i: usize, o: usize, seed: u64, device: &Device) -> Self {
        let bound = 1.0 / (i as f32).sqrt();
        Self {
            weight: Param::from_tensor(uniform([i, o], bound, random::derive(seed, 0), device)),
            bias: Param::from_tensor(uniform([o], bound, random::derive(seed, 1), device)),
        }
    }

    /// # Panics
    /// If the last axis is not as wide as the weight expects.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let (mut dims, [i, o]) = (x.dims(), self.weight.dims());
        assert_eq!(dims[D - 1], i, "input of shape {dims:?} for a linear map from {i}");
        let rows = dims[..D - 1].iter().product::<usize>();
        let y = x.reshape([rows, i]).matmul(self.weight.val()) + self.bias.val().unsqueeze();
        dims[D - 1] = o;
        y.reshape(dims)
    }
}

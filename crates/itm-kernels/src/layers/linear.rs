//! A linear map of rows.

use burn::backend::Dispatch;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::{LowRank, uniform};
use crate::Precision;
use crate::ops::LinearOps;
use crate::random;

/// `y = x W + b` over the last axis.
///
/// | symbol | here | shape |
/// |---|---|---|
/// | x | `x` | `[…, i]` |
/// | W, b | `weight` with its `changes`, `bias` | `[i, o]`, `[o]` |
/// | y | result | `[…, o]` |
///
/// All axes before the last are one axis: a batch of sequences is one product, not one product per sequence.
#[derive(Module, Debug)]
pub struct Linear {
    /// `[i, o]`
    pub weight: Param<Tensor<2>>,
    /// `[o]`
    pub bias: Param<Tensor<1>>,
    /// Low-rank changes of the weight; none by default.
    pub changes: Vec<LowRank>,
    /// Precision of the product and of the products for its gradients; [`Precision::F32`] by default.
    #[module(skip)]
    pub precision: Precision,
}

impl Linear {
    /// Weight and bias uniform in ±1/√i, as in PyTorch; they depend only on the seed.
    ///
    /// # Panics
    /// If a width is 0, or memory cannot hold the weight.
    pub fn seeded(i: usize, o: usize, seed: u64, device: &Device) -> Self {
        assert!(i > 0 && o > 0, "a linear map from {i} to {o} values");
        let bound = 1.0 / (i as f32).sqrt();
        let weight = uniform([i, o], bound, random::derive(seed, 0), device);
        let bias = uniform([o], bound, random::derive(seed, 1), device);
        Self::new(Param::from_tensor(weight), Param::from_tensor(bias))
    }

    /// A linear map with these parameters, in f32.
    ///
    /// # Panics
    /// If the weight has not as many columns as the bias has values.
    pub fn new(weight: Param<Tensor<2>>, bias: Param<Tensor<1>>) -> Self {
        let (w, b) = (weight.dims(), bias.dims());
        assert!(w[1] == b[0], "a weight of shape {w:?} with a bias of shape {b:?}");
        Self { weight, bias, changes: vec![], precision: Precision::F32 }
    }

    /// W, with its changes.
    pub fn matrix(&self) -> Tensor<2> {
        self.changes.iter().fold(self.weight.val(), |weight, change| change.added(weight))
    }

    /// # Panics
    /// If the last axis is not as wide as the weight expects, a low-rank change has columns that the weight lacks, or the precision is
    /// bf16 on a backend other than the CPU.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let (mut dims, [i, o]) = (x.dims(), self.weight.dims());
        assert_eq!(dims[D - 1], i, "input of shape {dims:?} for a linear map from {i}");
        let rows = dims[..D - 1].iter().product::<usize>();
        let y = Tensor::<2>::from_dispatch(<Dispatch as LinearOps>::linear_rows(
            x.reshape([rows, i]).into_dispatch(),
            self.matrix().into_dispatch(),
            self.bias.val().into_dispatch(),
            self.precision,
        ));
        dims[D - 1] = o;
        y.reshape(dims)
    }
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use super::*;
    use crate::tests::close;

    #[test]
    fn agrees_with_burns_own_operations() {
        let device = Device::flex().autodiff();
        let layer = Linear::seeded(5, 18, 1, &device);
        let x = uniform([2, 3, 5], 1.0, 2, &device).require_grad();
        let weights = uniform([2, 3, 18], 1.0, 3, &device);
        let fused = layer.forward(x.clone());
        let own = x.clone().matmul(layer.weight.val().unsqueeze()) + layer.bias.val().unsqueeze();
        close("y", fused.clone(), own.clone());
        let got = (fused * weights.clone()).sum().backward();
        let want = (own * weights).sum().backward();
        close("x", x.grad(&got).unwrap(), x.grad(&want).unwrap());
        let (weight, bias) = (layer.weight.val(), layer.bias.val());
        close("weight", weight.grad(&got).unwrap(), weight.grad(&want).unwrap());
        close("bias", bias.grad(&got).unwrap(), bias.grad(&want).unwrap());
    }

    /// The slice of an input without rows does not tell its width.
    #[test]
    fn no_rows_have_a_gradient_of_zeros() {
        let device = Device::flex().autodiff();
        let layer = Linear::seeded(2, 3, 1, &device);
        let grads = layer.forward(Tensor::<2>::zeros([0, 2], &device)).sum().backward();
        let weight = layer.weight.val().grad(&grads).unwrap();
        assert_eq!((weight.dims(), crate::host(weight)), ([2, 3], vec![0.0; 6]));
    }

    /// A transposed input gives the same result as its copy.
    #[test]
    fn a_view_is_its_copy() {
        let device = Device::flex();
        let layer = Linear::seeded(5, 4, 1, &device);
        let view = uniform([5, 7], 1.0, 2, &device).transpose();
        let copy = Tensor::<2>::from_data(view.to_data(), &device);
        close("y", layer.forward(view), layer.forward(copy));
    }

    #[test]
    #[should_panic(expected = "input of shape [2, 4] for a linear map from 5")]
    fn another_width_is_refused() {
        let device = Device::flex();
        Linear::seeded(5, 4, 1, &device).forward(Tensor::<2>::zeros([2, 4], &device));
    }
}

//! Dropout whose mask is a function of a seed.

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

use crate::random::{self, Noise};

/// Zeroes a share of the values and scales the others by 1 / (1 − rate).
#[derive(Module, Debug)]
pub struct Dropout {
    /// Share that is dropped, in `[0, 1)`.
    pub rate: f64,
}

impl Dropout {
    /// # Panics
    /// If the rate is not in `[0, 1)`.
    pub fn new(rate: f64) -> Self {
        assert!((0.0..1.0).contains(&rate), "dropout {rate}, not in 0 to 1");
        Self { rate }
    }

    /// A value at position k stays when `unit(seed, k) ≥ rate`.
    pub fn forward<const D: usize>(&self, x: Tensor<D>, noise: Noise) -> Tensor<D> {
        let Noise::Seeded(seed) = noise else { return x };
        if self.rate == 0.0 {
            return x;
        }
        let (dims, rate) = (x.dims(), self.rate as f32);
        let keep = |k| if random::unit(seed, k) < rate { 0.0 } else { 1.0 / (1.0 - rate) };
        let mask: Vec<f32> = (0..dims.iter().product::<usize>() as u64).map(keep).collect();
        let mask = Tensor::from_data(TensorData::new(mask, dims), &x.device());
        x * mask
    }
}

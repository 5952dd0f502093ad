//! Dropout whose mask is a function of a seed.

use burn::backend::Dispatch;
use burn::module::Module;
use burn::tensor::Tensor;

use crate::dropout::Mask;
use crate::ops::ElementwiseOps;
use crate::random::Noise;

/// Zeroes a share of the values and scales the others by 1 / (1 − rate). Equations: [`crate::dropout`].
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

    /// The seed and the position decide which values stay, so the same values stay on every backend.
    ///
    /// # Panics
    /// If noise has a seed and the rate is not in `[0, 1)`.
    pub fn forward<const D: usize>(&self, x: Tensor<D>, noise: Noise) -> Tensor<D> {
        let Some(mask) = self.mask(noise) else { return x };
        Tensor::from_dispatch(<Dispatch as ElementwiseOps>::fused_dropout(x.into_dispatch(), mask))
    }

    pub(crate) fn mask(&self, noise: Noise) -> Option<Mask> {
        match noise {
            // A rate that is no share is refused by the mask.
            Noise::Seeded(seed) if self.rate != 0.0 => Some(Mask::new(self.rate, seed)),
            _ => None,
        }
    }
}

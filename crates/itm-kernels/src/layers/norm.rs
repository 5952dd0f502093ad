//! Layer normalisation and the exact GELU.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

/// `y = γ (x − μ) / √(σ² + ε) + β` over the last axis, σ² being the mean squared deviation.
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// γ, `[d]`
    pub gamma: Param<Tensor<1>>,
    /// β, `[d]`
    pub beta: Param<Tensor<1>>,
    /// ε, 1e-12 in ViT and BERT.
    pub epsilon: f64,
}

impl LayerNorm {
    /// γ = 1, β = 0.
    pub fn new(d: usize, epsilon: f64, device: &Device) -> Self {
        Self {
            gamma: Param::from_tensor(Tensor::ones([d], device)),
            beta: Param::from_tensor(Tensor::zeros([d], device)),
            epsilon,
        }
    }

    /// # Panics
    /// If the last axis is not as wide as γ.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let centred = x.clone() - x.mean_dim(D - 1);
        let variance = (centred.clone() * centred.clone()).mean_dim(D - 1);
        let y = centred / (variance + self.epsilon).sqrt();
        y * self.gamma.val().unsqueeze() + self.beta.val().unsqueeze()
    }
}

/// `x Φ(x)` with the normal distribution function Φ: the exact form, by erf.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.clone() * ((x / std::f64::consts::SQRT_2).erf() + 1.0) * 0.5
}

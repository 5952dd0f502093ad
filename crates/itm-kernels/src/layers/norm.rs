//! Layer normalisation.

use burn::backend::Dispatch;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use crate::ops::LayerNormOps;

/// `y = γ (x − μ) / √(σ² + ε) + β` over the last axis; σ² is the mean squared deviation. Equations: [`crate::layer_norm`].
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
    ///
    /// # Panics
    /// If `d` is 0, or `epsilon` is negative or not finite in f32.
    pub fn new(d: usize, epsilon: f64, device: &Device) -> Self {
        let fits = d > 0 && epsilon >= 0.0 && (epsilon as f32).is_finite();
        assert!(fits, "a norm of width {d} with ε {epsilon}");
        Self {
            gamma: Param::from_tensor(Tensor::ones([d], device)),
            beta: Param::from_tensor(Tensor::zeros([d], device)),
            epsilon,
        }
    }

    /// # Panics
    /// If the last axis is not as wide as γ.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let (dims, [d]) = (x.dims(), self.gamma.dims());
        assert_eq!(dims[D - 1], d, "input of shape {dims:?} for a norm of width {d}");
        let rows = [dims[..D - 1].iter().product(), d];
        let (y, _) = <Dispatch as LayerNormOps>::fused_layer_norm(
            x.reshape(rows).into_dispatch(),
            self.gamma.val().into_dispatch(),
            self.beta.val().into_dispatch(),
            self.epsilon,
        );
        Tensor::<2>::from_dispatch(y).reshape(dims)
    }
}

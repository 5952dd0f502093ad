//! Activations of tensors.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use crate::Activation;
use crate::ops::ActivationOps;

impl Activation {
    /// y of x, element by element. Equations: [`crate::activation`].
    pub fn of<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        Tensor::from_dispatch(<Dispatch as ActivationOps>::fused_activation(
            x.into_dispatch(),
            self,
        ))
    }
}

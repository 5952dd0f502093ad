//! Activations of tensors.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use crate::Activation;
use crate::ops::ElementwiseOps;

impl Activation {
    /// y of x, element by element. Equations: [`crate::activation`].
    pub fn of<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        Tensor::from_dispatch(<Dispatch as ElementwiseOps>::fused_activation(
            x.into_dispatch(),
            self,
        ))
    }
}

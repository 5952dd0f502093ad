//! GELU of tensors.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use crate::ops::GeluOps;

/// `x Φ(x)` with the normal distribution function Φ: the exact form, by erf. Equations: [`crate::gelu`](mod@crate::gelu).
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    Tensor::from_dispatch(<Dispatch as GeluOps>::fused_gelu(x.into_dispatch()))
}

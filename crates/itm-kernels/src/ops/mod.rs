//! The operations as burn backend extensions: kernels on the CPU, composed elsewhere, with gradients.

pub(crate) mod dropout;
#[cfg(feature = "flex")]
pub(crate) mod flex;
pub(crate) mod gelu;
pub(crate) mod layer_norm;
mod sequences;
pub(crate) mod softmax;

pub(crate) use dropout::DropoutOps;
pub(crate) use gelu::GeluOps;
pub(crate) use layer_norm::LayerNormOps;
pub use sequences::FusedOps;
pub(crate) use sequences::{GruGrads, Params};
pub(crate) use softmax::SoftmaxOps;

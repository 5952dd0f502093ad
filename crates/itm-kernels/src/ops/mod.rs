//! The operations as burn backend extensions: kernels on the CPU, composed elsewhere, with gradients.

#[cfg(feature = "flex")]
pub(crate) mod flex;
mod sequences;

pub use sequences::FusedOps;
pub(crate) use sequences::{GruGrads, Params};

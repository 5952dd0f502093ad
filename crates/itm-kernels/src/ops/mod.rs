//! The operations as burn backend extensions: kernels on the CPU, composed elsewhere, with gradients.

mod attention;
#[cfg(feature = "flex")]
pub(crate) mod flex;
mod linear;
mod sequences;
mod update;

pub(crate) use attention::AttentionOps;
pub(crate) use linear::LinearOps;
pub use sequences::FusedOps;
pub(crate) use sequences::{GruGrads, Params};
pub(crate) use update::UpdateOps;
#[cfg(test)]
#[cfg(feature = "flex")]
pub(crate) use update::composed_adam;

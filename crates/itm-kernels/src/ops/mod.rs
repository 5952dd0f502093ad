//! The operations as burn backend extensions: kernels on the CPU, composed elsewhere, with gradients.

#[cfg(feature = "flex")]
pub(crate) mod flex;
mod recurrent;
mod sequences;
mod update;

pub(crate) use recurrent::{GruGrads, GruOps, Params};
#[cfg(test)]
#[cfg(feature = "flex")]
pub(crate) use recurrent::{composed_backward, composed_saving};
pub use sequences::FusedOps;
pub(crate) use update::UpdateOps;
#[cfg(test)]
#[cfg(feature = "flex")]
pub(crate) use update::composed_adam;

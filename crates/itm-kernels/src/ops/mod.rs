//! The operations as burn backend extensions with gradients: kernels on the CPU, burn's operations on other backends.

/// A trait as operations of every backend; on backends without kernels the bodies of the trait are the operation.
macro_rules! operations {
    ($(#[$meta:meta])* pub(crate) trait $ops:ident: $($rest:tt)*) => {
        #[burn::backend::backend_extension(
            Flex: cfg(feature = "flex"),
            LibTorch: cfg(feature = "tch"),
            Cube: cfg(feature = "cube"),
            Autodiff
        )]
        $(#[$meta])*
        pub(crate) trait $ops: $($rest)*

        #[cfg(feature = "tch")]
        impl $ops for burn::backend::LibTorch {}

        #[cfg(feature = "cube")]
        impl $ops for burn::backend::Cube {}
    };
}
use operations;

mod attention;
mod block;
mod cross_attention;
pub(crate) mod elementwise;
#[cfg(feature = "flex")]
pub(crate) mod flex;
pub(crate) mod layer_norm;
mod linear;
mod node;
mod recurrent;
mod sequences;
mod table;
mod tensors;
mod update;

pub(crate) use attention::AttentionOps;
pub(crate) use block::{BlockOps, BlockSpec};
pub use block::{Memory, NormOrder};
pub(crate) use cross_attention::{CrossAttentionOps, CrossTensors};
pub(crate) use elementwise::ElementwiseOps;
pub(crate) use layer_norm::LayerNormOps;
pub(crate) use linear::LinearOps;
pub(crate) use recurrent::GruOps;
pub(crate) use sequences::FusedOps;
pub(crate) use table::{RowIds, TableOps};
pub(crate) use tensors::Tensors;
pub(crate) use update::UpdateOps;
#[cfg(test)]
#[cfg(feature = "flex")]
pub(crate) use {table::composed_bag, update::composed_adam};

//! The operations as burn backend extensions with gradients: kernels on the CPU, burn's operations on other backends.

/// On backends without kernels the bodies of the trait are the operation.
macro_rules! composed_elsewhere {
    ($ops:ident) => {
        #[cfg(feature = "tch")]
        impl $ops for burn::backend::LibTorch {}

        #[cfg(feature = "cube")]
        impl $ops for burn::backend::Cube {}
    };
}
use composed_elsewhere;

pub(crate) mod activation;
mod attention;
mod bag;
mod block;
mod cross_attention;
pub(crate) mod dropout;
mod embedding;
#[cfg(feature = "flex")]
pub(crate) mod flex;
pub(crate) mod layer_norm;
mod linear;
mod matmul;
mod node;
pub(crate) mod order;
mod recurrent;
mod sequences;
pub(crate) mod softmax;
mod update;

pub(crate) use activation::ActivationOps;
pub(crate) use attention::AttentionOps;
pub(crate) use bag::BagOps;
pub(crate) use block::{BlockOps, BlockSpec};
pub use block::{Memory, NormOrder};
pub(crate) use cross_attention::CrossAttentionOps;
pub(crate) use dropout::DropoutOps;
pub(crate) use embedding::{EmbeddingOps, RowIds};
pub(crate) use layer_norm::LayerNormOps;
pub(crate) use linear::LinearOps;
pub(crate) use matmul::MatmulOps;
pub(crate) use order::OrderOps;
pub(crate) use recurrent::GruOps;
pub(crate) use sequences::FusedOps;
pub(crate) use softmax::SoftmaxOps;
pub(crate) use update::UpdateOps;
#[cfg(test)]
#[cfg(feature = "flex")]
pub(crate) use {bag::composed as composed_bag, update::composed_adam};

#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "flex"), allow(dead_code, unused_imports))] // without the CPU backend, some private functions have no caller

pub mod activation;
pub mod attention;
pub mod bag;
pub mod bf16;
mod blocks;
pub mod cross_attention;
mod dispatch;
pub mod dropout;
pub mod embedding;
pub mod gru;
pub mod int16;
mod lanes;
pub mod layer_norm;
pub mod linear;
mod math;
mod matrix;
pub mod memory;
pub mod order;
mod panels;
mod precision;
mod product;
pub mod random;
pub mod rows;
mod softmax;
#[cfg(test)]
mod tests;
mod transpose;
pub mod update;

#[cfg(feature = "burn")]
mod composed;
#[cfg(feature = "burn")]
mod layers;
#[cfg(feature = "burn")]
// Without a backend the generated dispatch has no arm that would use the arguments.
#[cfg_attr(not(any(feature = "flex", feature = "cube", feature = "tch")), allow(unused_variables))]
#[cfg_attr(feature = "tch", allow(deprecated))] // burn will drop burn-tch: docs/decisions/0028
mod ops;
#[cfg(feature = "burn")]
mod optim;

pub use activation::Activation;
pub use dispatch::widest;
#[cfg(feature = "burn")]
pub use layers::{
    BiGru, BlockShape, CrossProducts, Dropout, Gru, HostProducts, LayerNorm, Linear, LowRank,
    SelfAttention, TransformerBlock, bag, embedding, host, masked_mean, matmul, normalize_rows,
    order_similarity, uniform,
};
pub use matrix::Matrix;
#[cfg(feature = "burn")]
pub use ops::{Memory, NormOrder};
#[cfg(feature = "burn")]
pub use optim::{AdamForm, AdamMoments, AdamOptions, AdamW, DecayRule, ema, named};
pub use precision::Precision;
pub use random::Noise;

#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "burn"), allow(dead_code, unused_imports))] // without burn, some private functions have no caller
//! Feature `burn`: the shared parts of methods under training (`learn`), encoders, negatives, the triplet loss,
//! contrastive losses, momentum encoders, checkpoints of modules and optimisers. Features `weights`, `pytorch`, `hub`,
//! `pieces`: checkpoints and word pieces of Hugging Face folders.

mod preset;
mod scores;

pub mod audit;
pub mod eval;
pub mod interrupt;
pub mod scored;
pub mod significance;
pub mod start;
pub mod tiles;
#[cfg(feature = "weights")]
pub mod weights;

#[cfg(feature = "cca")]
pub mod cca;

#[cfg(feature = "burn")]
pub mod checkpoint;
#[cfg(feature = "burn")]
pub mod contrastive;
#[cfg(feature = "burn")]
pub mod encoders;
#[cfg(feature = "burn")]
pub mod learn;
#[cfg(feature = "burn")]
mod negatives;
#[cfg(feature = "burn")]
mod parameters;
#[cfg(feature = "burn")]
mod ranges;
#[cfg(all(feature = "burn", feature = "images"))]
pub mod towers;
#[cfg(feature = "burn")]
mod triplet;

#[cfg(feature = "arrays")]
pub use itm_data::arrays;
#[cfg(feature = "images")]
pub use itm_data::vision;
pub use itm_data::{Error, Pairs, Relevance, Result, data, files, output, text, threads};
pub use itm_kernels::random::mix;
#[cfg(feature = "burn")]
pub use itm_kernels::{ema, host};
#[cfg(feature = "burn")]
pub use negatives::{AllNegatives, Block, Hardest, NegativeSampler, Siblings, WarmupLoss};
pub use preset::Preset;
pub use scores::ScoreMatrix;
#[cfg(feature = "burn")]
pub use triplet::{triplet, triplet_in_batch};

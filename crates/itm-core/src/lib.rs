#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "burn"), allow(dead_code, unused_imports))] // without burn, some private functions have no caller
//! Feature `burn`: the shared parts of methods under training (`learn`), encoders, negatives, the triplet loss,
//! contrastive losses, momentum encoders, checkpoints of modules and optimisers. Features `weights`, `pytorch`, `hub`,
//! `pieces`: checkpoints and word pieces of Hugging Face folders.

mod error;
#[cfg(any(feature = "burn", feature = "images"))]
mod fields;
mod pairs;
mod preset;
mod relevance;
mod scores;

pub mod audit;
pub mod data;
pub mod eval;
pub mod files;
pub mod interrupt;
pub mod output;
pub mod scored;
pub mod significance;
pub mod start;
pub mod text;
pub mod threads;
pub mod tiles;
#[cfg(feature = "weights")]
pub mod weights;

#[cfg(feature = "cca")]
pub mod cca;
#[cfg(feature = "images")]
pub mod vision;

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

pub use error::{Error, Result};
#[cfg(feature = "burn")]
pub use itm_kernels::{ema, host};
#[cfg(feature = "burn")]
pub use negatives::{AllNegatives, Block, Hardest, NegativeSampler, Siblings};
pub use pairs::Pairs;
pub use preset::Preset;
pub use relevance::Relevance;
pub use scores::ScoreMatrix;
#[cfg(feature = "burn")]
pub use triplet::{triplet, triplet_in_batch};

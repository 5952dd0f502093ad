#![doc = include_str!("../README.md")]

mod all_pairs;
mod attention;
mod boundary;
mod config;
mod effects;
mod mining;

pub use itm_core::{Error, Result};
pub use itm_kernels::{CrossProducts, HostProducts};

pub use all_pairs::{CrossScores, evaluation_bytes};
pub use attention::{Asks, Attention, Intra, NegativeAware, Phase, Pooling, RawNorm, Scan};
pub use boundary::{Boundary, DEVIATION_FLOOR, Form, Moments, ln_alpha_star, lower_bound, optimal};
pub use config::{NaafConfig, Preset};
pub use effects::{Effects, WordEffect, effects};
pub use mining::{
    AboveOne, AlphaStar, Captions, InferenceBoundary, MiningConfig, NegativeImage, Schedule,
    WordPool, mine, word_scores,
};

#[cfg(test)]
mod golden;

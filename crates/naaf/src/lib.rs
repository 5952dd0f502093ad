#![doc = include_str!("../README.md")]

mod all_pairs;
mod attention;
mod boundary;
mod config;
mod effects;
mod method;
mod mining;
mod model;
mod objective;
mod preset;
mod rows;
mod step;
mod words;

pub use burn::tensor::Device;
pub use itm_core::learn::{Batch, Images, Method, Observe};
pub use itm_core::start::StartFrom;
pub use itm_core::{Error, Preset, Result, WarmupLoss};
pub use itm_kernels::{CrossProducts, HostProducts};

pub use all_pairs::CrossScores;
pub use attention::{Asks, Attention, Intra, NegativeAware, Phase, Pooling, RawNorm, Scan};
pub use boundary::{Boundary, Form, ScoreDistribution, ln_alpha_star, lower_bound, optimal};
pub use config::{
    NaafConfig, NaafLossConfig, NaafModelConfig, NaafTowers, NaafTrainConfig, Reduction,
    RegionMapKind, Score, TextKind, VectorsFrom,
};
pub use effects::{Effects, WordEffect, effects};
pub use mining::{
    AboveOne, AlphaStar, InferenceBoundary, MiningBatch, MiningConfig, NegativeImage, Sampling,
    Schedule, WordPool, mine, word_scores,
};
pub use model::{
    BiGru, NaafEncoders, PaddedRows, RegionEncoder, RegionMap, WordEncoder, WordTable,
};
pub use step::Naaf;

#[cfg(test)]
mod golden;

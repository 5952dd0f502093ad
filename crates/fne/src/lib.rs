#![doc = include_str!("../README.md")]

mod exp;
#[cfg(test)]
mod golden;

pub mod audit;
mod bank;
mod config;
mod draw;
mod embed;
mod host;
mod loss;
mod model;
mod posterior;
mod sampler;
mod state;
mod statistics;
mod step;
mod weights;

pub use burn::tensor::Device;
pub use itm_core::data::Features;
pub use itm_core::encoders::TextPool;
pub use itm_core::{Error, Result};

pub use bank::{Bank, Entries, NEVER};
pub use config::{
    Enqueue, FeatureTransform, FneConfig, ModelConfig, Negatives, Positive, Preset, SamplerConfig,
    TrainConfig, WarmupLoss,
};
pub use draw::draw;
pub use loss::{drawn_hinges, in_batch_loss, row_dots};
pub use model::{Dropout, Encoders, UNKNOWN};
pub use posterior::{Gaussian, Posterior, SIGMA_FLOOR};
pub use sampler::FneSampler;
pub use statistics::{Moments, Reset, Snapshot, Statistics, Variance};
pub use step::{Batch, Fne, Observe, StepReport};
pub use weights::{Excluded, Pool, Rule, Tie, weights};

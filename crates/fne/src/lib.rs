//! FNE.

mod exp;
#[cfg(test)]
mod golden;

mod bank;
mod config;
mod draw;
mod posterior;
mod statistics;
mod weights;

pub use bank::{Bank, Entries, NEVER};
pub use config::{
    Enqueue, FeatureTransform, FneConfig, ModelConfig, Negatives, Positive, Preset, SamplerConfig,
    TextPooling, TrainConfig, WarmupLoss,
};
pub use draw::draw;
pub use posterior::{Gaussian, Posterior, SIGMA_FLOOR};
pub use statistics::{Moments, Reset, Snapshot, Statistics, Variance};
pub use weights::{Pool, Rule, Tie, weights};

//! FNE.

mod exp;
#[cfg(test)]
mod golden;

pub mod audit;
mod bank;
mod config;
mod draw;
mod loss;
mod posterior;
mod sampler;
mod statistics;
mod weights;

pub use bank::{Bank, Entries, NEVER};
pub use config::{
    Enqueue, FeatureTransform, FneConfig, ModelConfig, Negatives, Positive, Preset, SamplerConfig,
    TrainConfig, WarmupLoss,
};
pub use draw::draw;
pub use loss::{drawn_hinges, in_batch_loss, row_dots};
pub use posterior::{Gaussian, Posterior, SIGMA_FLOOR};
pub use sampler::FneSampler;
pub use statistics::{Moments, Reset, Snapshot, Statistics, Variance};
pub use weights::{Excluded, Pool, Rule, Tie, weights};

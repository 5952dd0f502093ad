#![doc = include_str!("../README.md")]

mod exp;
#[cfg(test)]
mod golden;

mod audit;
mod bank;
mod checks;
mod config;
mod draw;
mod embed;
mod loss;
mod memory_loss;
mod method;
mod model;
mod posterior;
mod states;
mod statistics;
mod step;
mod weights;
mod words;

pub use burn::tensor::Device;
pub use itm_core::encoders::{BertShape, ImagePool, PiecePool, TextPool, VitShape};
pub use itm_core::learn::{Batch, Images, Method, Observe};
pub use itm_core::start::StartFrom;
pub use itm_core::{Error, Result};
pub use itm_kernels::Memory;

pub use bank::{Bank, BankRows, BankState};
pub use checks::NEVER;
pub use config::{
    Augmentation, BagConfig, BertConfig, DropoutAfterValidation, Enqueue, Exclude,
    FeatureTransform, FeaturesConfig, FneConfig, GruConfig, ImageConfig, JointLayer, Loss,
    ModelConfig, NegativeChoice, Pixels, Positive, Preset, SamplerConfig, TextConfig, TrainConfig,
    TrainTruncate, VitConfig, WarmupLoss, Weights,
};
pub use draw::draw;
pub use loss::{drawn_hinges, in_batch_hinges, row_dots};
pub use memory_loss::{Draws, Online, memory_loss};
pub use model::{BertEncoder, Dropout, Encoders, ImageEncoder, TextEncoder, UNKNOWN, VitEncoder};
pub use posterior::{Gaussian, Posterior, SIGMA_FLOOR};
pub use statistics::{Moments, Reset, Snapshot, Statistics, Variance};
pub use step::Fne;
pub use weights::{CandidatePool, Density, Exclusions, Rule, Tie, weights};

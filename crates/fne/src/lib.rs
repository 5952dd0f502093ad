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
pub use itm_core::towers::{
    Augmentation, BagConfig, BertConfig, BertEncoder, ClipEncoder, ClipImageConfig, ClipTextConfig,
    Encoders, FeatureTransform, FeaturesConfig, GruConfig, ImageConfig, ImageEncoder, JointLayer,
    LearningParts, ModelConfig, Pixels, TextConfig, TextEncoder, TowerDropout, TrainTruncate,
    UNKNOWN, VitConfig, VitEncoder, Weights,
};
pub use itm_core::{Error, Preset, Result, WarmupLoss};
pub use itm_kernels::{Memory, Noise};

pub use bank::{Bank, BankRows, BankState};
pub use checks::NEVER;
pub use config::{
    Density, DropoutAfterValidation, Enqueue, Exclude, FneConfig, Loss, NegativeChoice, Positive,
    SamplerConfig, Tie, TrainConfig,
};
pub use draw::draw;
pub use loss::{drawn_hinges, in_batch_hinges, row_dots};
pub use memory_loss::{Draws, Online, memory_loss};
pub use posterior::{Gaussian, Posterior};
pub use statistics::{Moments, Reset, Snapshot, Statistics, Variance};
pub use step::Fne;
pub use weights::{CandidatePool, same_image, weights};

//! HAL and its rivals in training: a linear map of global image features and a GRU over words, trained by one of the
//! [losses](crate::losses). Feature `burn`.
//!
//! [`Hal`] holds a model in training: [`step`](Hal::step), embeddings, scores, state. Who calls it writes the loop.

mod bank;
mod config;
mod embed;
mod model;
mod objective;
mod state;
mod step;

pub use burn::tensor::Device;
pub use itm_core::data::Features;
pub use itm_core::encoders::TextPool;

pub use bank::MemoryBank;
pub use config::{
    HalConfig, ImageNorm, Initialisation, LossConfig, ModelConfig, Objective, Similarity,
    TrainConfig,
};
pub use embed::score_matrix;
pub use model::Encoders;
pub use objective::Negatives;
pub use step::{Batch, Hal, Observe, StepReport};

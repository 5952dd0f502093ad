//! Training of HAL and its baselines: a map of global image features, and a GRU over words or a bag of words, trained with
//! one of the [losses](crate::losses). Needs the feature `burn`.
//!
//! [`Hal`] is a model in training: as a [`Method`] it has a step, scores and a state. The caller
//! writes the loop.

mod bank;
mod config;
mod method;
mod model;
mod objective;
mod step;

pub use burn::tensor::Device;
pub use itm_core::encoders::TextPool;
pub use itm_core::learn::{Batch, Images, Method, Observe};
pub use itm_core::start::StartFrom;

pub use bank::MemoryBank;
pub use config::{
    HalConfig, HalLossConfig, HalModelConfig, HalTrainConfig, ImageNorm, Initialisation, Objective,
    TextKind,
};
pub use model::{Encoders, TextEncoder};
pub use step::Hal;

//! Training of HAL and its baselines: any [pair of towers](itm_core::towers), trained with one of the [losses](crate::losses). Needs the feature `burn`.
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
pub use itm_core::towers::{
    BagConfig, Encoders, FeaturesConfig, GruConfig, ImageConfig, ImageEncoder, LearningParts,
    TextConfig, TextEncoder,
};

pub use config::{
    HalConfig, HalLossConfig, HalModelConfig, HalTrainConfig, ImageNorm, Initialisation, Objective,
};
pub use step::Hal;

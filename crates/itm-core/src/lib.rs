//! What image-text matching methods share.
//!
//! Without features: score matrices, pairs, ranks and recalls, significance, tiles, data; no deep-learning framework.

mod error;
mod pairs;
mod relevance;
mod scores;

pub mod data;
pub mod eval;
pub mod significance;
pub mod text;
pub mod tiles;

#[cfg(feature = "cca")]
pub mod cca;
#[cfg(feature = "scenes")]
pub mod scenes;

#[cfg(feature = "burn")]
mod ema;
#[cfg(feature = "burn")]
mod encoder;
#[cfg(feature = "burn")]
pub mod encoders;
#[cfg(feature = "burn")]
mod negatives;
#[cfg(feature = "burn")]
mod scorer;
#[cfg(feature = "burn")]
mod triplet;

pub use error::{Error, Result};
pub use pairs::Pairs;
pub use relevance::Relevance;
pub use scores::ScoreMatrix;

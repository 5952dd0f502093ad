#![doc = include_str!("../README.md")]

mod filter;
mod masking;
mod pool;
mod random;
mod refill;
mod siblings;
mod tailor;

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "burn")]
pub mod config;
#[cfg(feature = "lmdb")]
pub mod databases;
pub mod edits;
pub mod fluency;
pub mod inflect;
#[cfg(feature = "burn")]
pub mod model;
pub mod phrases;
pub mod record;
#[cfg(feature = "burn")]
pub mod train;

pub use filter::{Filter, Protected, Repeat, Verdict};
pub use masking::{MaskBy, Masked, Masker, label_probabilities, phrase_probabilities};
pub use pool::{Pick, Scores, draw_images, draw_texts, pool, top};
pub use random::{Purpose, Streams};
pub use refill::{Generator, Refill};
pub use siblings::SiblingStatistics;
pub use tailor::{Negative, Tailor};

#![doc = include_str!("../README.md")]

mod aligned;
mod evidence;
mod filter;
mod lines;
mod masking;
mod pool;
mod random;
mod refill;
mod siblings;
mod tailor;
mod words;

pub mod benchmark;
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
pub mod losses;
#[cfg(feature = "burn")]
pub mod model;
pub mod phrases;
#[cfg(feature = "burn")]
mod preset;
pub mod record;
#[cfg(feature = "burn")]
pub mod train;

pub use itm_core::{Error, Pairs, Result};

pub use aligned::Aligned;
pub use evidence::EvidenceBounds;
pub use filter::{CaptionWords, Filter, Repeat, Verdict};
#[cfg(feature = "burn")]
pub use itm_core::Preset;
pub use masking::{MaskBy, Masker, Masking, label_probabilities};
pub use pool::{Choice, Pick, Scores, draw_images, draw_texts, hardest, pool};
pub use random::Purpose;
pub use refill::{Generator, Refill};
pub use siblings::SiblingStatistics;
pub use tailor::{Negative, Tailor};
pub use words::{CorrectionTargets, accuracy, stayed};

//! The parts that every method under training shares: inputs, steps and their reports, scores, state.
//!
//! A training loop calls [`Method`]. The crate of a method implements it with a [`Trainer`] (the update, the files),
//! with [`embed_features`] and [`embed_texts`], and with its own encoders, losses and memories.

mod finite;
mod input;
mod learner;
mod method;
mod numbers;
mod schedule;

pub use crate::encoders::{embed_features, embed_texts};
pub use crate::ranges::{
    above_zero, at_least_one, at_least_zero, precision_of, size_within, within,
};
pub use crate::text::Word;
pub use finite::first_non_finite;
#[cfg(feature = "images")]
pub use input::PictureItems;
pub use input::{Batch, ImageItems, Images, Items, Rows, check_texts};
pub use learner::{SavedState, Trainer};
pub use method::{Effect, MatchProbability, Method, Observe, Step, WordMap, WordMaps, WordPairs};
pub use numbers::Numbers;
pub use schedule::Schedule;

//! Hubs of cross-modal retrieval: measured, explained and corrected.

mod bank;
#[cfg(feature = "cli")]
pub mod cli;
mod correction;
mod direction;
mod lists;
mod scores;

pub use bank::{Bank, HeldOut, HeldOutBank, Knowledge, Plain, Setting, TestQueries, Transductive};
pub use correction::{Affine, AnyCorrection, Correction, Rescore};
pub use direction::Direction;
pub use itm_core::{Error, Pairs, Result, ScoreMatrix};
pub use lists::TopLists;
pub use scores::Scores;

//! Hubs of cross-modal retrieval: measured, explained and corrected.

mod bank;
#[cfg(feature = "cli")]
pub mod cli;
mod correction;
mod csls;
mod direction;
pub mod export;
mod greedy;
mod inverted_softmax;
mod lists;
pub mod pass;
mod scores;
mod survey;

pub mod choose;
pub mod hubs;

pub use bank::{Bank, HeldOut, HeldOutBank, Knowledge, Plain, Setting, TestQueries, Transductive};
pub use correction::{Affine, AnyCorrection, Correction, Rescore};
pub use csls::{CslsForm, csls, csls_form};
pub use direction::Direction;
pub use greedy::{
    Candidates, CapacityScale, GreedyOptions, GreedyRuns, GreedySweep, Matching, Stop, capacity,
    greedy_matching, image_hits,
};
pub use inverted_softmax::{InvertedSoftmaxForm, inverted_softmax, inverted_softmax_form};
pub use itm_core::{Error, Pairs, Result, ScoreMatrix};
pub use lists::TopLists;
pub use scores::Scores;
pub use survey::Survey;

//! Hubs of cross-modal retrieval: measured, explained and corrected.

mod bank;
mod correction;
mod direction;
mod greedy;
mod lists;
mod scores;

pub use bank::{Bank, HeldOut, HeldOutBank, Knowledge, Plain, Setting, TestQueries, Transductive};
pub use correction::{Affine, AnyCorrection, Correction, Rescore};
pub use direction::Direction;
pub use greedy::{
    Candidates, CapacityScale, GreedyOptions, GreedyRuns, GreedySweep, Matching, Stop, capacity,
    greedy_matching, image_hits,
};
pub use itm_core::{Error, Pairs, Result, ScoreMatrix};
pub use lists::TopLists;
pub use scores::Scores;

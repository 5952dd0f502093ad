#![doc = include_str!("../README.md")]

mod bank;
pub mod choose;
#[cfg(feature = "cli")]
pub mod cli;
mod correction;
mod csls;
mod directed;
mod direction;
mod dual_bank;
mod edge;
pub mod export;
mod greedy;
pub mod hubs;
mod inverted_softmax;
mod lists;
mod local_scaling;
#[cfg(feature = "burn")]
pub mod losses;
mod mutual_proximity;
mod nnn;
#[cfg(feature = "page")]
pub mod page;
pub mod pass;
mod preset;
mod querybank;
pub mod report;
mod rescore;
pub mod rows;
mod saved;
pub mod scan;
mod sinkhorn;
pub mod study;
mod survey;
#[cfg(feature = "burn")]
pub mod training;
mod words;

pub use bank::{Bank, HeldOut, HeldOutBank, Knowledge, Plain, Setting, TestQueries, Transductive};
pub use correction::{AnyCorrection, BankFit, Correction};
pub use csls::{CslsForm, csls, csls_form};
pub use direction::Direction;
pub use dual_bank::DualBank;
pub use greedy::{
    Candidates, CapacityScale, GreedyOptions, GreedySweep, Matching, Stop, capacity,
    greedy_matching,
};
pub use inverted_softmax::{InvertedSoftmaxForm, inverted_softmax, inverted_softmax_form};
pub use itm_core::Preset;
pub use itm_core::scored::{EmbeddingRows, Scored};
pub use itm_core::tiles::{Embeddings, Tiles};
pub use itm_core::{Error, Pairs, Result, ScoreMatrix};
pub use lists::TopLists;
pub use local_scaling::{LocalForm, LocalScaling};
pub use mutual_proximity::{EmpiricalProximity, GaussianProximity};
pub use nnn::Nnn;
pub use querybank::QueryBank;
pub use rescore::{Affine, Rescore};
pub use sinkhorn::{Sinkhorn, SinkhornFit};
pub use survey::Survey;

//! Hubs of cross-modal retrieval: measured, explained and corrected.

mod bank;
mod correction;
mod direction;
mod dual_bank;
mod lists;
mod local_scaling;
mod mutual_proximity;
mod nnn;
mod querybank;
mod scores;
mod side;
mod sinkhorn;

pub use bank::{Bank, HeldOut, HeldOutBank, Knowledge, Plain, Setting, TestQueries, Transductive};
pub use correction::{Affine, AnyCorrection, Correction, Rescore};
pub use direction::Direction;
pub use dual_bank::{DualBank, Inactive, ItemBank};
pub use itm_core::{Error, Pairs, Result, ScoreMatrix};
pub use lists::TopLists;
pub use local_scaling::{LocalForm, LocalScaling, LocalValues};
pub use mutual_proximity::{EmpiricalProximity, GaussianProximity, JointProximity, OwnPairs};
pub use nnn::{NearestMeans, Nnn};
pub use querybank::{QueryBank, RowScale};
pub use scores::Scores;
pub use sinkhorn::{Balanced, BothBalanced, Sinkhorn, SinkhornOrder};

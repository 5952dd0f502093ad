//! Mutual proximity: how many others are farther away, seen from both ends.
//!
//! Schnitzer et al., JMLR 2012, define it for one set and a symmetric distance; here queries and items are
//! two sets. Larger scores are closer.
//!
//! | form                      | what counts                                            | memory         |
//! |---------------------------|--------------------------------------------------------|----------------|
//! | [`GaussianProximity`]     | normal distributions fitted to rows and columns        | O(n + m)       |
//! | [`EmpiricalProximity`]    | smaller scores in the row, times the same in the column | (n + b)·m scores |
//!
//! The factor of the row varies with the score. It is not a constant per query, so it can change the query's
//! ranking.

mod empirical;
mod gaussian;
mod log_phi;

pub use empirical::EmpiricalProximity;
pub(crate) use empirical::SortedScores;
#[cfg(feature = "cli")]
pub(crate) use gaussian::FLOOR;
pub use gaussian::GaussianProximity;
pub(crate) use gaussian::Normals;

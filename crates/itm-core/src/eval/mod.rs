//! Ranks, recalls and protocols.
//!
//! ```text
//! ScoreMatrix + Pairs ──Protocol──▶ [Ranks], one a fold ──TiePolicy──▶ Evaluation
//!                 tile engine ──▶ Ranks::from_counts ──┘           └──▶ significance::Hits
//! ```
//!
//! [`Ranks`] hold counts, so that every tie policy is a view of one pass over the scores.
//!
//! ```
//! use itm_core::eval::{Protocol, TiePolicy, evaluate};
//! use itm_core::{Pairs, ScoreMatrix};
//!
//! let scores = ScoreMatrix::from_rows([
//!     [0.9, 0.3, 0.2], // image 0
//!     [0.7, 0.6, 0.1], // image 1 finds text 0 first
//!     [0.8, 0.2, 0.7], // image 2: the same
//! ]);
//! let pairs = Pairs::uniform(3, 1);
//! let evaluation = evaluate(&scores, &pairs, Protocol::Full, TiePolicy::Index)?;
//! assert!((evaluation.i2t.r1 - 100.0 / 3.0).abs() < 1e-12);
//! assert_eq!(evaluation.i2t.median, 2.0);
//! assert_eq!(evaluation.t2i.r1, 100.0);
//! assert_eq!(evaluation.decided.i2t.rank, 0); // no tie decides anything
//! # Ok::<(), itm_core::Error>(())
//! ```

mod metrics;
mod multi;
mod protocol;
mod ranks;

pub use metrics::{Decided, DecidedQueries, DirectionMetrics, Evaluation};
pub use multi::{MultiEvaluation, MultiMetrics, evaluate_multi, ranking_depth};
pub use protocol::{Fold, Protocol, evaluate, folds};
pub use ranks::{Ranks, Standing};

/// The `K` of R@K.
pub const CUTS: [u32; 3] = [1, 5, 10];

/// Where a true item stands among items of the same score.
///
/// The position of a true item = number of strictly greater scores + what the policy adds for equal scores of *other* items.
/// [`Standing`] defines each policy for queries with several true items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TiePolicy {
    /// Equal scores count when their index is smaller (default).
    #[default]
    Index,
    /// No equal score counts: the best case.
    Optimistic,
    /// Every equal score counts: the worst case.
    Pessimistic,
    /// The mean over all orders of the equal scores.
    Expected,
}

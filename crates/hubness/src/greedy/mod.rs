//! Greedy matching, plain and relaxed (Algorithm 1): no item may be the answer to more than its share of queries.
//!
//! ```text
//! push (q, j) by descending score  while  |list(q)| < k  and  |held(j)| < cap
//! ```
//!
//! The paper sorts all scores. Here only the result is sorted, because greedy matching is the one stable b-matching of
//! queries and items that rank their edges by one strict order. So the same pairs result when each query proposes down its
//! list of [`Candidates`] and every item keeps its best queries.
//!
//! Proof that the matching is unique: suppose that another matching keeps the quotas and has no blocking edge, that is, no
//! edge that both ends prefer. Let `e` be the best edge in which the two matchings differ. They share all better edges. If
//! greedy has `e`, these edges leave room at both ends, so `e` blocks the other matching. If the other matching has `e`,
//! greedy refused it because better edges filled one end. The other matching has these edges too, so it breaks a quota.

mod candidates;
mod capacity;
mod matching;
mod sweep;

use serde::{Deserialize, Serialize};

pub use candidates::Candidates;
pub use capacity::{CapacityScale, capacity};
pub use matching::Matching;
pub use sweep::GreedySweep;

use crate::Result;

/// When pushing ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Stop {
    /// When every query is full, or no pair is left that both sides have room for.
    #[default]
    #[cfg_attr(feature = "cli", value(help = "Until nothing more fits"))]
    Exhaustive,
    /// After `min(queries, items)·k` pushes at the latest, as the listing does: a prefix of the exhaustive stack.
    #[cfg_attr(feature = "cli", value(help = "After min(queries, items) · k edges"))]
    Literal,
}

/// Options of a greedy matching. The defaults are the paper's GM, except that images have the capacity of their copies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GreedyOptions {
    /// Items per query.
    pub k: usize,
    /// How many times its fair share of queries an item may serve; ∞ is nearest neighbours.
    pub lambda: f64,
    /// The definition of the fair share.
    pub scale: CapacityScale,
    /// When pushing ends.
    pub stop: Stop,
}

impl GreedyOptions {
    /// `k` items per query and λ, with defaults for the rest.
    pub fn new(k: usize, lambda: f64) -> Self {
        Self { k, lambda, scale: CapacityScale::default(), stop: Stop::default() }
    }
}

/// Relaxed greedy matching of queries and items.
///
/// | symbol | here                             |
/// |--------|----------------------------------|
/// | X      | `candidates`                     |
/// | k, λ   | `options.k`, `options.lambda`    |
/// | R, C   | the state of [`GreedySweep`]     |
///
/// # Errors
/// If λ is NaN or negative, `k` is above 10⁹, or scores cannot be read again.
///
/// # Departures
/// The listing counts rows and columns the other way round than it numbers them; here `R` has a count for each query. The
/// loop of the listing has no bound and runs off the end when capacity is short; here the loop ends. [`CapacityScale`] and
/// [`Stop`] have both readings of the rest.
///
/// ```
/// use hubness::{Candidates, Correction, Direction::I2t, GreedyOptions, Plain, ScoreMatrix, greedy_matching};
///
/// let scores = ScoreMatrix::from_rows([
///     [0.9, 0.3, 0.2], // image 0
///     [0.7, 0.6, 0.1], // image 1: text 0, a hub, outbids its own text 1
///     [0.8, 0.2, 0.7], // image 2: the same
/// ]);
/// let none = Correction::<Plain>::none(&scores, I2t);
/// let candidates = Candidates::new(&scores, &none, 1)?;
/// let matching = greedy_matching(&candidates, &GreedyOptions::new(1, 1.0))?;
/// assert_eq!(matching.stack(), [(0, 0), (2, 2), (1, 1)]);
/// # Ok::<(), hubness::Error>(())
/// ```
pub fn greedy_matching(candidates: &Candidates<'_>, options: &GreedyOptions) -> Result<Matching> {
    let &GreedyOptions { k, lambda, scale, stop } = options;
    let capacity = candidates.capacity(lambda, k, scale)?;
    let mut sweep = GreedySweep::new(candidates, k)?;
    sweep.lower(capacity)?;
    Ok(sweep.matching(stop))
}

#[cfg(test)]
mod tests;

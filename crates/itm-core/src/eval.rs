//! Ranks and recalls.

/// Where a true item stands among items of the same score.
///
/// The position of a true item = number of strictly greater scores + what the policy adds for equal scores of *other* items.
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

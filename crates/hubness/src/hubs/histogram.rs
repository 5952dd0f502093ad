//! How many items have each count: the paper's Figures 2 and 3.

use serde::{Deserialize, Serialize};

use super::Counts;

/// How many items have each count that occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Number of items `m`.
    pub items: usize,
    /// Items that no query has. A logarithm has no place for them.
    pub never: usize,
    /// The others, by ascending count; counts that no item has are left out.
    pub bars: Vec<Bar>,
}

/// The items of one count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bar {
    /// `N_k`, at least 1.
    pub count: u32,
    /// How many items have it, at least 1.
    pub items: usize,
}

impl Histogram {
    /// Of all items.
    pub fn new(counts: &Counts) -> Self {
        Self::of_all([counts])
    }

    /// Of the items of several models or folds together: with as many items each, its shares are the mean of theirs.
    pub fn of_all<'a>(counts: impl IntoIterator<Item = &'a Counts>) -> Self {
        let mut sorted: Vec<u32> =
            counts.into_iter().flat_map(|counts| counts.values()).copied().collect();
        sorted.sort_unstable();
        let never = sorted.partition_point(|&count| count == 0);
        let bar = |same: &[u32]| Bar { count: same[0], items: same.len() };
        let bars = sorted[never..].chunk_by(|a, b| a == b).map(bar).collect();
        Self { items: sorted.len(), never, bars }
    }

    /// What the figures draw: `(log₁₀ N_k, log₁₀ p(N_k))`, where `p` is the share of all items, those without a query included.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let share = |bar: &Bar| bar.items as f64 / self.items as f64;
        self.bars.iter().map(|bar| (f64::from(bar.count).log10(), share(bar).log10())).collect()
    }
}

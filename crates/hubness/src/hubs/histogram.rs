//! How many items have each count: the paper's Figures 2 and 3.

use serde::{Deserialize, Serialize};

use super::Counts;

/// How many items have each count that occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Number of items `m`.
    pub items: usize,
    /// Items that no query has. They have no bar, because log 0 is undefined.
    pub never: usize,
    /// The other items, by ascending count; counts that no item has are left out.
    pub bars: Vec<Bar>,
}

/// The items of one count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bar {
    /// `N_k`, at least 1.
    pub count: u32,
    /// How many items have this count, at least 1.
    pub items: usize,
}

impl Histogram {
    /// The histogram of the items of several models or folds together. If all have the same number of items, its shares are
    /// the mean of their shares.
    pub fn of_all<'a>(counts: impl IntoIterator<Item = &'a Counts>) -> Self {
        let mut sorted: Vec<u32> =
            counts.into_iter().flat_map(|counts| &counts.values).copied().collect();
        sorted.sort_unstable();
        let never = sorted.partition_point(|&count| count == 0);
        let bar = |same: &[u32]| Bar { count: same[0], items: same.len() };
        let bars = sorted[never..].chunk_by(|a, b| a == b).map(bar).collect();
        Self { items: sorted.len(), never, bars }
    }

    /// The points of the figures: `(log₁₀ N_k, log₁₀ p(N_k))`. `p` is a share of all items, including items without a query.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let share = |bar: &Bar| bar.items as f64 / self.items as f64;
        self.bars.iter().map(|bar| (f64::from(bar.count).log10(), share(bar).log10())).collect()
    }
}

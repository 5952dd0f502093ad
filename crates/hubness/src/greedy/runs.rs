//! The matchings behind R@1, R@5 and R@10.

use itm_core::eval::CUTS;

use super::candidates::Candidates;
use super::capacity::CapacityScale;
use super::matching::Matching;
use super::{GreedyOptions, Stop, greedy_matching};
use crate::{Pairs, Result};

/// The matchings of one direction behind the recalls at 1, 5 and 10.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GreedyRuns {
    /// One run with `k = K` for each R@K, as the listing describes `k`; greedy matching is the run with `k = 1`.
    PerK([Matching; 3]),
    /// One run with `k = 10`; R@K uses the first K items of each list.
    Single(Matching),
}

impl GreedyRuns {
    /// Three runs, each with its own λ.
    ///
    /// # Errors
    /// If a `lambda` is NaN or negative.
    pub fn per_k(
        candidates: &Candidates<'_>,
        lambda: [f64; 3],
        scale: CapacityScale,
        stop: Stop,
    ) -> Result<Self> {
        let run = |cut: usize| {
            let k = CUTS[cut] as usize;
            greedy_matching(candidates, &GreedyOptions { k, lambda: lambda[cut], scale, stop })
        };
        Ok(Self::PerK([run(0)?, run(1)?, run(2)?]))
    }

    /// One run for all three.
    ///
    /// # Errors
    /// If `lambda` is NaN or negative.
    pub fn single(
        candidates: &Candidates<'_>,
        lambda: f64,
        scale: CapacityScale,
        stop: Stop,
    ) -> Result<Self> {
        let options = GreedyOptions { k: CUTS[2] as usize, lambda, scale, stop };
        greedy_matching(candidates, &options).map(Self::Single)
    }

    /// The matching behind the recall at 1, 5 or 10 (`cut` 0, 1, 2).
    pub fn at(&self, cut: usize) -> &Matching {
        match self {
            Self::PerK(matchings) => &matchings[cut],
            Self::Single(matching) => matching,
        }
    }

    /// Whether each query hits at 1, 5, 10.
    ///
    /// # Panics
    /// If `pairs` have other numbers of images and texts.
    pub fn hits(&self, pairs: &Pairs) -> [Vec<bool>; 3] {
        [0, 1, 2].map(|cut| {
            let hit = |place: Option<usize>| place.is_some_and(|place| place < CUTS[cut] as usize);
            self.at(cut).places(pairs).into_iter().map(hit).collect()
        })
    }
}

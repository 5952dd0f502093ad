//! Ranks, recalls and protocols.
//!
//! ```text
//! ScoreMatrix + Pairs ──Protocol──▶ [Ranks], one per fold ──TiePolicy──▶ Evaluation
//!                 tile engine ──▶ Ranks::from_counts ────┘           └──▶ significance::Hits
//! ```
//!
//! [`Ranks`] hold counts, so that every tie policy is a view of one pass over the scores.
//!
//! ```
//! use itm_core::eval::{Protocol, TiePolicy};
//! use itm_core::scored::Scored;
//! use itm_core::{Pairs, ScoreMatrix};
//!
//! let scores = ScoreMatrix::from_rows([
//!     [0.9, 0.3, 0.2], // image 0
//!     [0.7, 0.6, 0.1], // image 1 finds text 0 first
//!     [0.8, 0.2, 0.7], // image 2: the same
//! ]);
//! let pairs = Pairs::uniform(3, 1);
//! let evaluation = <dyn Scored>::evaluate(&scores, Protocol::Full, &pairs, TiePolicy::Index)?;
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

pub use metrics::{DecidedQueries, DirectionMetrics, Evaluation, TieCounts};
pub(crate) use multi::{Contribution, measure, summarise};
pub use multi::{MultiEvaluation, MultiMetrics, precisions};
pub use protocol::{Fold, Protocol, folds};
pub(crate) use ranks::check_pairs;
pub use ranks::{Ranks, Standing};

/// The `K` of R@K.
pub const CUTS: [u32; 3] = [1, 5, 10];

/// How a true item is ranked among items of the same score.
///
/// The position of a true item = number of strictly greater scores + what the policy adds for equal scores of *untrue*
/// items.
/// [`Standing`] defines each policy for queries with several true items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TiePolicy {
    /// Equal scores count if their index is smaller (default).
    #[default]
    Index,
    /// No equal score counts: the best case.
    Optimistic,
    /// Every equal score counts: the worst case.
    Pessimistic,
    /// The mean over all orders of the equal scores.
    Expected,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::scored::Scored;
    use crate::{Pairs, Relevance, ScoreMatrix};

    #[derive(Deserialize)]
    struct Golden {
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        name: String,
        images: usize,
        image_of_text: Vec<usize>,
        scores: Vec<f32>,
        folds: (usize, usize),
        policies: BTreeMap<String, Want>,
        decided: TieCounts,
        relevance: Vec<Vec<u32>>,
        multi: MultiEvaluation,
    }

    #[derive(Deserialize)]
    struct Want {
        i2t: DirectionMetrics,
        t2i: DirectionMetrics,
        i2t_ranks: Vec<f64>,
        t2i_ranks: Vec<f64>,
        rsum: f64,
    }

    impl Case {
        fn scores(&self) -> ScoreMatrix {
            ScoreMatrix::new(self.images, self.image_of_text.len(), self.scores.clone()).unwrap()
        }

        fn ranks(&self) -> Vec<Ranks> {
            let pairs = Pairs::new(self.images, self.image_of_text.clone()).unwrap();
            let folds = folds(&pairs, self.folds.0, self.folds.1).unwrap();
            let ranks = |f: &Fold| {
                let own = <dyn Scored>::fold(&self.scores(), f).unwrap();
                Ranks::new(&own, &f.pairs).unwrap()
            };
            folds.iter().map(ranks).collect()
        }
    }

    /// From `tests/reference/evaluation.py`, which sorts lists and enumerates orders, in exact fractions.
    fn golden() -> Vec<Case> {
        let text = include_str!("../../tests/golden/evaluation.json");
        serde_json::from_str::<Golden>(text).unwrap().cases
    }

    fn close(name: &str, got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len(), "{name}");
        for (k, (got, want)) in got.iter().zip(want).enumerate() {
            assert!((got - want).abs() < 1e-9, "{name}, value {k}: got {got}, want {want}");
        }
    }

    fn numbers(m: &DirectionMetrics) -> [f64; 5] {
        [m.r1, m.r5, m.r10, m.median, m.mean]
    }

    #[test]
    fn golden_metrics_of_every_policy() {
        for case in golden() {
            let folds = case.ranks();
            assert_eq!(case.policies.len(), 4);
            for (policy, want) in &case.policies {
                let name = format!("{}, {policy}", case.name);
                let policy = serde_json::from_value(policy.as_str().into()).unwrap();
                let got = Evaluation::new(&folds, policy);
                close(&name, &numbers(&got.i2t), &numbers(&want.i2t));
                close(&name, &numbers(&got.t2i), &numbers(&want.t2i));
                close(&name, &[got.rsum], &[want.rsum]);
                assert_eq!(got.decided, case.decided, "{name}");
                let ranks = |way: fn(&Ranks) -> &[Standing]| -> Vec<f64> {
                    folds.iter().flat_map(way).map(|q| q.rank(policy)).collect()
                };
                close(&name, &ranks(Ranks::i2t), &want.i2t_ranks);
                close(&name, &ranks(Ranks::t2i), &want.t2i_ranks);
            }
        }
    }

    #[test]
    fn golden_metrics_with_several_true_items() {
        let numbers = |m: &MultiMetrics| [m.map_at_r, m.r_precision, m.r1, m.r5, m.r10];
        for case in golden() {
            let relevance = Relevance::new(case.image_of_text.len(), case.relevance.clone());
            let got = <dyn Scored>::evaluate_multi(&case.scores(), &relevance).unwrap();
            for (got, want) in [(got.i2t, case.multi.i2t), (got.t2i, case.multi.t2i)] {
                close(&case.name, &numbers(&got), &numbers(&want));
                assert_eq!(
                    (got.queries, got.skipped),
                    (want.queries, want.skipped),
                    "{}",
                    case.name
                );
            }
        }
    }
}

//! Metrics that count every true pair, not only the annotated ones.

use serde::{Deserialize, Serialize};

use super::CUTS;
use crate::{Error, Result};

/// Metrics of one direction with all true items relevant, as ECCV Caption defines them: means over queries, in percent.
///
/// ```text
/// mAP@R       = (1/R) Σ_{k ≤ R} prec(k) · rel(k)     rel(k) = 1 if the item at position k is true, else 0
/// R-precision = prec(R)                              prec(k) = (1/k) Σ_{j ≤ k} rel(j)
/// R@K         = 1 if rel(k) = 1 for any k ≤ K        R = number of true items of the query
/// ```
///
/// On ties the smaller index comes first. Queries without a true item (R = 0) are skipped and counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MultiMetrics {
    /// mAP@R in percent.
    pub map_at_r: f64,
    /// R-precision in percent.
    pub r_precision: f64,
    /// R@1 with every true item relevant, in percent.
    pub r1: f64,
    /// R@5 with every true item relevant, in percent.
    pub r5: f64,
    /// R@10 with every true item relevant, in percent.
    pub r10: f64,
    /// Queries that were measured.
    pub queries: usize,
    /// Queries without a true item.
    pub skipped: usize,
}

/// Both directions with all true items relevant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MultiEvaluation {
    /// Images as queries.
    pub i2t: MultiMetrics,
    /// Texts as queries.
    pub t2i: MultiMetrics,
}

/// The contribution of one query that has a true item.
pub(crate) struct Contribution {
    average_precision: f64,
    r_precision: f64,
    hits: [f64; 3],
}

/// AP@R and R-precision of one query with `r` true items, as shares, from its best items in order: see [`MultiMetrics`].
///
/// Places behind the end of `top` count as untrue.
///
/// ```
/// use itm_core::eval::precisions;
///
/// assert_eq!(precisions(&[7, 3, 5, 1], 2, |&item| item == 7 || item == 5), [0.5, 0.5]);
/// ```
///
/// # Panics
/// If `r` is 0.
pub fn precisions(top: &[u32], r: usize, is_true: impl Fn(&u32) -> bool) -> [f64; 2] {
    assert!(r > 0, "precision of a query without a true item");
    let (mut so_far, mut precisions) = (0usize, 0.0);
    for (k, _) in top.iter().take(r).enumerate().filter(|(_, item)| is_true(item)) {
        so_far += 1;
        precisions += so_far as f64 / (k + 1) as f64;
    }
    [precisions / r as f64, so_far as f64 / r as f64]
}

pub(crate) fn measure(top: &[u32], relevant: &[u32]) -> Contribution {
    let r = relevant.len();
    assert!(top.len() >= r, "a ranking of {} items for {r} true ones", top.len());
    let is_true = |item: &u32| relevant.binary_search(item).is_ok();
    let [average_precision, r_precision] = precisions(top, r, is_true);
    let first = top.iter().position(is_true).unwrap_or(usize::MAX);
    let hits = CUTS.map(|k| f64::from(u8::from(first < k as usize)));
    Contribution { average_precision, r_precision, hits }
}

pub(crate) fn summarise(found: &[Option<Contribution>]) -> Result<MultiMetrics> {
    let queries = found.iter().flatten().count();
    let got = format!("none in {} queries", found.len());
    Error::unless(queries > 0, "relevance", "a query with a true item", got)?;
    let percent = |of: &dyn Fn(&Contribution) -> f64| {
        100.0 * found.iter().flatten().map(of).sum::<f64>() / queries as f64
    };
    Ok(MultiMetrics {
        map_at_r: percent(&|f| f.average_precision),
        r_precision: percent(&|f| f.r_precision),
        r1: percent(&|f| f.hits[0]),
        r5: percent(&|f| f.hits[1]),
        r10: percent(&|f| f.hits[2]),
        queries,
        skipped: found.len() - queries,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::eval::{Ranks, TiePolicy};
    use crate::scored::Scored;
    use crate::{Pairs, Relevance, ScoreMatrix};

    /// R = 3, true at positions 1, 3, 5: AP@R = (1/1 + 2/3) / 3, R-precision 2/3; position 5 is beyond R.
    #[test]
    fn golden_by_hand() {
        let m = summarise(&[Some(measure(&[4, 0, 7, 1, 2, 3], &[2, 4, 7]))]).unwrap();
        assert!((m.map_at_r - 500.0 / 9.0).abs() < 1e-12);
        assert!((m.r_precision - 200.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn queries_without_a_true_item_are_counted() {
        let scores = ScoreMatrix::from_rows([[0.1, 0.9], [0.3, 0.2]]);
        let one = Relevance::new(2, vec![vec![], vec![0]]);
        let m = <dyn Scored>::evaluate_multi(&scores, &one).unwrap();
        assert_eq!((m.i2t.queries, m.i2t.skipped, m.i2t.map_at_r), (1, 1, 100.0));
        assert_eq!((m.t2i.queries, m.t2i.skipped, m.t2i.r1), (1, 1, 100.0));
        let none =
            <dyn Scored>::evaluate_multi(&scores, &Relevance::new(2, vec![vec![]; 2])).unwrap_err();
        assert_eq!(
            none.to_string(),
            "relevance: expected a query with a true item, got none in 2 queries"
        );
        let shape =
            <dyn Scored>::evaluate_multi(&scores, &Relevance::new(3, vec![vec![]; 2])).unwrap_err();
        assert_eq!(shape.to_string(), "relevance: expected 2 × 3 scores, got 2 × 2");
    }

    proptest! {
        /// With only the annotated pairs, recalls equal the recalls of the ranks. With one text per image, R-precision is
        /// R@1.
        #[test]
        fn annotated_pairs_give_the_recalls(n in 1usize..90, seed in 1usize..1000) {
            let values = (0..n * n).map(|at| ((at * seed * 7919) % 31) as f32).collect();
            let (scores, pairs) = (ScoreMatrix::new(n, n, values).unwrap(), Pairs::uniform(n, 1));
            let relevance = Relevance::new(n, (0..n as u32).map(|i| vec![i]).collect());
            let multi = <dyn Scored>::evaluate_multi(&scores, &relevance).unwrap();
            let ranks = Ranks::new(&scores, &pairs).unwrap();
            let plain = crate::eval::Evaluation::new(&[ranks], TiePolicy::Index);
            for (m, d) in [(multi.i2t, plain.i2t), (multi.t2i, plain.t2i)] {
                prop_assert_eq!([m.r1, m.r5, m.r10], d.recalls());
                prop_assert_eq!((m.r_precision, m.map_at_r), (m.r1, m.r1));
            }
        }
    }
}

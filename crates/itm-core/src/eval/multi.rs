//! Metrics that count every true pair, not only the annotated ones.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::CUTS;
use crate::{Error, Relevance, Result, ScoreMatrix};

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

/// mAP@R, R-precision and recalls of both directions.
///
/// ```
/// use itm_core::eval::evaluate_multi;
/// use itm_core::{Relevance, ScoreMatrix};
///
/// let scores = ScoreMatrix::from_rows([[0.9, 0.5, 0.7, 0.1]]);
/// let relevance = Relevance::new(4, vec![vec![0, 1]]); // found at positions 1 and 3 of R = 2
/// let i2t = evaluate_multi(&scores, &relevance)?.i2t;
/// assert_eq!((i2t.map_at_r, i2t.r_precision, i2t.r1), (50.0, 50.0, 100.0));
/// # Ok::<(), itm_core::Error>(())
/// ```
///
/// # Errors
/// If `scores` and `relevance` differ in shape, or no pair is true.
pub fn evaluate_multi(scores: &ScoreMatrix, relevance: &Relevance) -> Result<MultiEvaluation> {
    check_shape((scores.images(), scores.texts()), relevance)?;
    MultiEvaluation::new(&image_queries(scores, 0, relevance), &text_queries(scores, 0, relevance))
}

/// # Errors
/// If scores of this shape do not fit `relevance`.
pub(crate) fn check_shape((n, m): (usize, usize), relevance: &Relevance) -> Result<()> {
    let (images, texts) = (relevance.images(), relevance.texts());
    let expected = format!("{images} × {texts} scores");
    Error::unless((n, m) == (images, texts), "relevance", expected, format_args!("{n} × {m}"))
}

impl MultiEvaluation {
    /// Means over the queries of each direction.
    ///
    /// # Errors
    /// If no query of a direction has a true item.
    pub(crate) fn new(i2t: &[Option<Contribution>], t2i: &[Option<Contribution>]) -> Result<Self> {
        Ok(Self { i2t: summarise(i2t)?, t2i: summarise(t2i)? })
    }
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

fn measure(top: &[u32], relevant: &[u32]) -> Contribution {
    let r = relevant.len();
    assert!(top.len() >= r, "a ranking of {} items for {r} true ones", top.len());
    let is_true = |item: &u32| relevant.binary_search(item).is_ok();
    let [average_precision, r_precision] = precisions(top, r, is_true);
    let first = top.iter().position(is_true).unwrap_or(usize::MAX);
    let hits = CUTS.map(|k| f64::from(u8::from(first < k as usize)));
    Contribution { average_precision, r_precision, hits }
}

fn summarise(found: &[Option<Contribution>]) -> Result<MultiMetrics> {
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

/// Best items are needed to depth `max(R, 10)`.
fn one_query(scores: &[f32], relevant: &[u32]) -> Option<Contribution> {
    let depth = relevant.len().max(CUTS[CUTS.len() - 1] as usize);
    (!relevant.is_empty()).then(|| measure(&best_items(scores, depth), relevant))
}

/// The images of some rows as queries; the first row is image `first`.
pub(crate) fn image_queries(
    rows: &ScoreMatrix,
    first: usize,
    relevance: &Relevance,
) -> Vec<Option<Contribution>> {
    let query = |row: usize| one_query(rows.row(row), relevance.texts_of(first + row));
    (0..rows.images()).into_par_iter().map(query).collect()
}

/// The texts of some columns as queries; the first column is text `first`. Gathers a few columns at a time: rows are read in
/// pieces, and the whole matrix is never transposed.
pub(crate) fn text_queries(
    columns: &ScoreMatrix,
    first: usize,
    relevance: &Relevance,
) -> Vec<Option<Contribution>> {
    const BLOCK: usize = 32;
    let texts: Vec<usize> = (0..columns.texts()).collect();
    let block_queries = |block: &[usize]| {
        let mut gathered = vec![Vec::with_capacity(columns.images()); block.len()];
        for i in 0..columns.images() {
            let row = &columns.row(i)[block[0]..block[0] + block.len()];
            gathered.iter_mut().zip(row).for_each(|(column, &s)| column.push(s));
        }
        let query =
            |(column, &t): (&Vec<f32>, &usize)| one_query(column, relevance.images_of(first + t));
        gathered.iter().zip(block).map(query).collect::<Vec<_>>()
    };
    texts.par_chunks(BLOCK).flat_map_iter(block_queries).collect()
}

/// The best `depth` items (or all), best first, the smaller index first on ties.
fn best_items(scores: &[f32], depth: usize) -> Vec<u32> {
    let mut keys: Vec<u64> =
        scores.iter().enumerate().map(|(i, &s)| descending_key(s, i)).collect();
    if depth < keys.len() {
        keys.select_nth_unstable(depth);
        keys.truncate(depth);
    }
    keys.sort_unstable();
    keys.into_iter().map(|key| key as u32).collect() // the low half is the index
}

/// A key that ascends as the score descends, then as the index ascends; −0 and +0 are equal.
fn descending_key(score: f32, index: usize) -> u64 {
    let bits = (score + 0.0).to_bits(); // −0 + 0 = +0
    let ascending = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    (u64::from(!ascending) << 32) | index as u64
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::Pairs;
    use crate::eval::{Ranks, TiePolicy};

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
        let m = evaluate_multi(&scores, &one).unwrap();
        assert_eq!((m.i2t.queries, m.i2t.skipped, m.i2t.map_at_r), (1, 1, 100.0));
        assert_eq!((m.t2i.queries, m.t2i.skipped, m.t2i.r1), (1, 1, 100.0));
        let none = evaluate_multi(&scores, &Relevance::new(2, vec![vec![]; 2])).unwrap_err();
        assert_eq!(
            none.to_string(),
            "relevance: expected a query with a true item, got none in 2 queries"
        );
        let shape = evaluate_multi(&scores, &Relevance::new(3, vec![vec![]; 2])).unwrap_err();
        assert_eq!(shape.to_string(), "relevance: expected 2 × 3 scores, got 2 × 2");
    }

    proptest! {
        /// The selected items are the head of a full ranking. Scores include infinities and zeros of both signs.
        #[test]
        fn the_best_items_head_the_ranking(
            row in vec(prop_oneof![
                (-2i8..3).prop_map(f32::from),
                -1.0f32..1.0,
                Just(-0.0),
                Just(f32::INFINITY),
                Just(f32::NEG_INFINITY),
            ], 1..60),
            depth in 0usize..70,
        ) {
            let full = ScoreMatrix::new(1, row.len(), row.clone()).unwrap().ranking(0);
            let best: Vec<usize> = best_items(&row, depth).into_iter().map(|i| i as usize).collect();
            prop_assert_eq!(&best[..], &full[..depth.min(row.len())]);
        }

        /// With only the annotated pairs, recalls equal the recalls of the ranks. With one text per image, R-precision is
        /// R@1.
        #[test]
        fn annotated_pairs_give_the_recalls(n in 1usize..90, seed in 1usize..1000) {
            let values = (0..n * n).map(|at| ((at * seed * 7919) % 31) as f32).collect();
            let (scores, pairs) = (ScoreMatrix::new(n, n, values).unwrap(), Pairs::uniform(n, 1));
            let relevance = Relevance::new(n, (0..n as u32).map(|i| vec![i]).collect());
            let multi = evaluate_multi(&scores, &relevance).unwrap();
            let ranks = Ranks::new(&scores, &pairs).unwrap();
            let plain = crate::eval::Evaluation::new(&[ranks], TiePolicy::Index);
            for (m, d) in [(multi.i2t, plain.i2t), (multi.t2i, plain.t2i)] {
                prop_assert_eq!([m.r1, m.r5, m.r10], d.recalls());
                prop_assert_eq!((m.r_precision, m.map_at_r), (m.r1, m.r1));
            }
        }
    }
}

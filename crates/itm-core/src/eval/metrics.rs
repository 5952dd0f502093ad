//! Recalls and ranks of one direction and of both.

use serde::{Deserialize, Serialize};

use super::{CUTS, Ranks, Standing, TiePolicy};

/// Recalls and ranks of one direction.
///
/// ```text
/// R@K = 100 · mean over queries of (rank < K)     median = ⌊ median of ranks ⌋ + 1     mean = mean of ranks + 1
/// ```
///
/// Ranks are 0-based; the median of an even number of ranks is the mean of the middle two. Under
/// [`TiePolicy::Expected`] a hit is a probability and a rank is a mean: see [`Standing`]. Queries without a true item are
/// left out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct DirectionMetrics {
    /// R@1 in percent.
    pub r1: f64,
    /// R@5 in percent.
    pub r5: f64,
    /// R@10 in percent.
    pub r10: f64,
    /// Median rank; 1 is best. Over folds, the mean of the folds' medians.
    pub median: f64,
    /// Mean rank; 1 is best.
    pub mean: f64,
}

impl DirectionMetrics {
    /// Metrics of all queries of a direction.
    ///
    /// # Panics
    /// If there is no query with a true item.
    pub fn new(queries: &[Standing], policy: TiePolicy) -> Self {
        let queries: Vec<_> = queries.iter().filter(|query| query.is_query()).collect();
        assert!(!queries.is_empty(), "metrics of no query");
        let n = queries.len() as f64;
        let recall = |k| 100.0 * queries.iter().map(|q| q.hit(k, policy)).sum::<f64>() / n;
        let [r1, r5, r10] = CUTS.map(recall);
        let mut ranks: Vec<f64> = queries.iter().map(|q| q.rank(policy)).collect();
        let mean = ranks.iter().sum::<f64>() / n + 1.0;
        Self { r1, r5, r10, median: median(&mut ranks).floor() + 1.0, mean }
    }

    /// R@1, R@5, R@10.
    pub fn recalls(&self) -> [f64; 3] {
        [self.r1, self.r5, self.r10]
    }

    fn average(parts: &[Self]) -> Self {
        let mean =
            |field: fn(&Self) -> f64| parts.iter().map(field).sum::<f64>() / parts.len() as f64;
        Self {
            r1: mean(|m| m.r1),
            r5: mean(|m| m.r5),
            r10: mean(|m| m.r10),
            median: mean(|m| m.median),
            mean: mean(|m| m.mean),
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = if odd { upper } else { below.iter().copied().fold(f64::NEG_INFINITY, f64::max) };
    (lower + upper) / 2.0
}

/// How many queries of a direction a tie decides: their best case differs from their worst case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DecidedQueries {
    /// Hit at 1 in the best case only.
    pub r1: usize,
    /// Hit at 5 in the best case only.
    pub r5: usize,
    /// Hit at 10 in the best case only.
    pub r10: usize,
    /// An untrue item has the score of the best true item.
    pub rank: usize,
}

/// How many queries a tie decides, in both directions; over folds, the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TieCounts {
    /// Images as queries.
    pub i2t: DecidedQueries,
    /// Texts as queries.
    pub t2i: DecidedQueries,
}

/// Everything a table shows about one system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Images as queries.
    pub i2t: DirectionMetrics,
    /// Texts as queries.
    pub t2i: DirectionMetrics,
    /// Sum of the six recalls.
    pub rsum: f64,
    /// How ties were broken.
    pub ties: TiePolicy,
    /// How many queries a tie decides; the policy does not matter.
    pub decided: TieCounts,
    /// Number of averaged folds; 1 if the whole set was ranked at once.
    pub folds: usize,
    /// Number of image queries with a true text.
    pub images: usize,
    /// Number of text queries with a true image.
    pub texts: usize,
}

impl Evaluation {
    /// The metrics of the folds, averaged; ranks are not pooled.
    ///
    /// # Panics
    /// If there is no fold, or a fold has no query.
    pub fn new(folds: &[Ranks], policy: TiePolicy) -> Self {
        assert!(!folds.is_empty(), "evaluation of no fold");
        let average = |direction: fn(&Ranks) -> &[Standing]| {
            let parts: Vec<_> =
                folds.iter().map(|f| DirectionMetrics::new(direction(f), policy)).collect();
            DirectionMetrics::average(&parts)
        };
        let decided = |direction: fn(&Ranks) -> &[Standing]| {
            let at = |k| folds.iter().flat_map(direction).filter(|q| q.decided_at(k)).count();
            let [r1, r5, r10] = CUTS.map(at);
            let rank = folds.iter().flat_map(direction).filter(|q| q.equal > 0).count();
            DecidedQueries { r1, r5, r10, rank }
        };
        let queries = |direction: fn(&Ranks) -> &[Standing]| {
            folds.iter().flat_map(direction).filter(|query| query.is_query()).count()
        };
        let (i2t, t2i) = (average(Ranks::i2t), average(Ranks::t2i));
        Self {
            rsum: i2t.recalls().iter().chain(&t2i.recalls()).sum(),
            i2t,
            t2i,
            ties: policy,
            decided: TieCounts { i2t: decided(Ranks::i2t), t2i: decided(Ranks::t2i) },
            folds: folds.len(),
            images: queries(Ranks::i2t),
            texts: queries(Ranks::t2i),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pairs;

    fn at(ranks: &[u32]) -> Vec<Standing> {
        let at = |&greater| Standing { greater, before: 0, equal: 0, own: 1 };
        ranks.iter().map(at).collect()
    }

    /// ⌊1.5⌋ + 1 = 2, ⌊2.5⌋ + 1 = 3: this formula covers the conventions of `hubness.md` and of `fne.md`.
    #[test]
    fn the_median_of_an_even_number() {
        for (ranks, median) in
            [(vec![3, 0, 2, 1], 2.0), (vec![9, 3, 2, 0], 3.0), (vec![7, 0, 4], 5.0)]
        {
            assert_eq!(DirectionMetrics::new(&at(&ranks), TiePolicy::Index).median, median);
        }
    }

    #[test]
    fn cuts_are_exclusive_and_perfect_is_one() {
        let m = DirectionMetrics::new(&at(&[0, 1, 4, 5, 9, 10, 99, 0]), TiePolicy::Index);
        assert_eq!((m.r1, m.r5, m.r10), (25.0, 50.0, 75.0));
        let perfect = DirectionMetrics::new(&at(&[0, 0, 0]), TiePolicy::Pessimistic);
        assert_eq!((perfect.median, perfect.mean, perfect.r1), (1.0, 1.0, 100.0));
    }

    /// Recalls are averaged over folds, not pooled: folds of different sizes show the difference.
    #[test]
    fn folds_weigh_the_same() {
        let fold = |ranks: &[u32]| {
            let pairs = Pairs::uniform(ranks.len(), 1);
            Ranks::from_counts(pairs, at(ranks), at(&vec![0; ranks.len()])).unwrap()
        };
        let folds = [fold(&[0, 0]), fold(&[1, 1, 1, 2, 2, 2])];
        let evaluation = Evaluation::new(&folds, TiePolicy::Index);
        assert_eq!(evaluation.i2t.r1, 50.0);
        assert_eq!(evaluation.i2t.median, 1.5); // of 1 and ⌊1.5⌋ + 1; pooled it would be 2
        assert_eq!(evaluation.rsum, 50.0 + 100.0 + 100.0 + 300.0);
        assert_eq!((evaluation.folds, evaluation.images, evaluation.texts), (2, 8, 8));
    }

    #[test]
    fn a_report_reads_back() {
        let ranks =
            Ranks::from_counts(Pairs::uniform(3, 1), at(&[0, 1, 2]), at(&[0, 0, 1])).unwrap();
        let evaluation = Evaluation::new(&[ranks], TiePolicy::Expected);
        let json = serde_json::to_string(&evaluation).unwrap();
        assert!(json.contains("\"ties\":\"expected\""), "{json}");
        assert_eq!(serde_json::from_str::<Evaluation>(&json).unwrap(), evaluation);
    }
}

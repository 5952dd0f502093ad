//! Clusters of queries: k-means by the tile engine.

use itm_core::tiles::{Embeddings, Side, Tiles};
use itm_core::{Error, Result};

/// The most clusters.
const MOST: usize = 32;

/// The most rounds; the assignment mostly stops changing before.
const ROUNDS: usize = 20;

/// The cluster of each query, and the queries of each cluster.
#[derive(Debug, Clone)]
pub(super) struct Clusters {
    pub(super) of: Vec<u32>,
    pub(super) sizes: Vec<u32>,
}

impl Clusters {
    /// Lloyd's k-means with ⌊√n⌋ clusters, at most 32. A cluster that loses all queries keeps its centre. The first
    /// centres are queries at multiples of the golden ratio: nothing is random, and no period of the rows puts all of them into one topic.
    ///
    /// ```text
    /// argmin_c ‖q − c‖² = argmax_c ⟨(q, 1), (c, −‖c‖²/2)⟩
    /// ```
    pub(super) fn new(queries: Embeddings<'_>) -> Result<Self> {
        let (n, d) = (queries.rows(), queries.dim());
        let count = n.isqrt().clamp(1, MOST);
        let row = |query: usize| queries.row(query);
        let one = |query: usize| row(query).iter().copied().chain([1.0]);
        let asked: Vec<f32> = (0..n).flat_map(one).collect();
        let asked = Embeddings::new("queries", n, d + 1, &asked)?;
        let mut centres: Vec<f64> =
            (0..count).flat_map(|c| row(start(c, n))).map(|&v| f64::from(v)).collect();
        // Products of rows and squared lengths must be numbers of f32.
        let too_long = |_| Error::invalid("queries", "lengths below some 1e11", "longer rows");
        let mut of = Vec::new();
        for _ in 0..ROUNDS {
            let next = nearest(asked, &centres, d).map_err(too_long)?;
            if next == of {
                break;
            }
            of = next;
            move_to_means(&mut centres, &of, d, row);
        }
        let mut sizes = vec![0; count];
        of.iter().for_each(|&cluster| sizes[cluster as usize] += 1);
        Ok(Self { of, sizes })
    }
}

/// `⌊n · frac(c / φ)⌋`, with 1 / φ in 32 bits.
fn start(cluster: usize, n: usize) -> usize {
    const INVERSE_GOLDEN_RATIO: u32 = 2_654_435_769;
    let share = (cluster as u32).wrapping_mul(INVERSE_GOLDEN_RATIO);
    ((u128::from(share) * n as u128) >> 32) as usize
}

/// The nearest centre of every query, the smaller number on ties.
fn nearest(asked: Embeddings<'_>, centres: &[f64], d: usize) -> Result<Vec<u32>> {
    let with_half_square = |centre: &[f64]| {
        let square: f64 = centre.iter().map(|v| v * v).sum();
        centre.iter().copied().chain([-square / 2.0]).map(|v| v as f32).collect::<Vec<_>>()
    };
    let rows: Vec<f32> = centres.chunks(d).flat_map(with_half_square).collect();
    let rows = Embeddings::new("centres of queries", centres.len() / d, d + 1, &rows)?;
    let top = Tiles::new(asked, rows)?.top(Side::Images, 1);
    Ok((0..asked.rows()).map(|query| top.items(query)[0]).collect())
}

fn move_to_means<'a>(centres: &mut [f64], of: &[u32], d: usize, row: impl Fn(usize) -> &'a [f32]) {
    let (mut sums, mut sizes) = (vec![0.0; centres.len()], vec![0u32; centres.len() / d]);
    for (query, &cluster) in of.iter().enumerate() {
        sizes[cluster as usize] += 1;
        let sum = &mut sums[cluster as usize * d..][..d];
        sum.iter_mut().zip(row(query)).for_each(|(sum, &v)| *sum += f64::from(v));
    }
    let clusters = centres.chunks_mut(d).zip(sums.chunks(d)).zip(sizes);
    for ((centre, sum), size) in clusters.filter(|&(_, size)| size > 0) {
        centre.iter_mut().zip(sum).for_each(|(c, sum)| *c = sum / f64::from(size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far from the origin, where the largest inner product is always with the farthest centre. Three topics, in turn.
    #[test]
    fn clusters_are_by_distance() {
        let at = |query: usize| [100.0 + (query % 3) as f32 * 5.0, (query / 3) as f32 * 0.01];
        let values: Vec<f32> = (0..12).flat_map(at).collect();
        let clusters = Clusters::new(Embeddings::new("queries", 12, 2, &values).unwrap()).unwrap();
        assert_eq!(clusters.sizes, [4; 3]);
        for query in 3..12 {
            assert_eq!(clusters.of[query], clusters.of[query % 3], "{:?}", clusters.of);
        }
    }

    /// Six evenly spaced queries of 36 would all be of one topic.
    #[test]
    fn no_period_of_the_rows_puts_all_centres_into_one_topic() {
        let at = |query: usize| [(query % 3) as f32 * 5.0, (query / 3) as f32 * 0.5];
        let values: Vec<f32> = (0..36).flat_map(at).collect();
        let clusters = Clusters::new(Embeddings::new("queries", 36, 2, &values).unwrap()).unwrap();
        for cluster in 0..6 {
            let topics =
                (0..36).filter(|&query| clusters.of[query] == cluster).map(|query| query % 3);
            let topics: std::collections::BTreeSet<_> = topics.collect();
            assert!(topics.len() <= 1, "{:?}", clusters.of);
        }
    }

    /// n · frac(c · 0.6180339887…) by hand.
    #[test]
    fn golden_starts() {
        assert_eq!([0, 1, 2, 3].map(|cluster| start(cluster, 100)), [0, 61, 23, 85]);
    }

    #[test]
    fn one_query_is_one_cluster() {
        let clusters = Clusters::new(Embeddings::new("queries", 1, 1, &[2.0]).unwrap()).unwrap();
        assert_eq!((clusters.of, clusters.sizes), (vec![0], vec![1]));
    }
}

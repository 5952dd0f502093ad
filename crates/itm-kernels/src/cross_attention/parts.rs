//! The contribution of each query to the score of one image and one text, per branch, to explain a score.

use super::pair::{self, PairScratch};
use super::{Batch, Inputs, Rule};
use crate::matrix::Matrix;
use crate::product::{Threads, product_new};

/// The parts of a score; see the [module](super). Parts that the rule does not have are empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    /// `S`
    pub score: f32,
    /// `s`, `[words, regions]`.
    pub products: Vec<f32>,
    /// `neg`, `[q]`
    pub negative: Vec<f32>,
    /// `cos`, `[q]`
    pub cosine: Vec<f32>,
    /// `rel`, `[q]`
    pub relevance: Vec<f32>,
    /// `w` of the cosine, `[q, k]`
    pub weights: Vec<f32>,
}

/// The score of one image, `[regions, width]`, and one text, `[words, width]`, in parts.
///
/// # Panics
/// If a side does not consist of whole rows, has no rows, the width is 0, or the threshold is not finite.
pub fn parts(regions: &[f32], words: &[f32], width: usize, threshold: f32, rule: &Rule) -> Parts {
    assert!(width > 0, "rows of 0 values");
    let [v, u] = [regions, words].map(|rows| (rows, rows.len() / width));
    let products = times(u, v, width);
    let (region_grams, word_grams) = (times(v, v, width), times(u, u, width));
    let inputs = Inputs {
        products: &products,
        region_grams: &region_grams,
        word_grams: &word_grams,
        regions: &[v.1],
        words: &[u.1],
    };
    let thresholds = [threshold];
    let batch = Batch::new(&inputs, rule, &thresholds);
    let mut scratch = PairScratch::default();
    let mut by = |rule: &Rule| {
        let (spread, mut score) = (batch.load(&mut scratch, 0, 0), 0.0);
        pair::forward(&mut scratch, rule, threshold, spread, &mut score);
        let (lanes, keys) = (scratch.w.as_flattened(), scratch.keys);
        let rows = lanes.chunks_exact((lanes.len() / scratch.queries).max(1));
        let weights = rows.flat_map(|row| &row[..keys]).copied().collect();
        (score, scratch.parts.clone(), weights)
    };
    let (score, ..) = by(rule);
    let none = Rule { negative: None, cosine: None, relevance: None, ..rule.clone() };
    let mut branch = |has: bool, rule: Rule| if has { by(&rule) } else { Default::default() };
    let Rule { negative, cosine, relevance, .. } = rule.clone();
    let (_, negative, _) = branch(negative.is_some(), Rule { negative, ..none.clone() });
    let (_, cosine, weights) = branch(cosine.is_some(), Rule { cosine, ..none.clone() });
    let (_, relevance, _) = branch(relevance.is_some(), Rule { relevance, ..none });
    Parts { score, products, negative, cosine, relevance, weights }
}

/// `a bᵀ`
fn times((a, m): (&[f32], usize), (b, n): (&[f32], usize), width: usize) -> Vec<f32> {
    product_new(Threads::This, Matrix::new(a, m, width), Matrix::new(b, n, width).t())
}

#[cfg(test)]
mod tests {
    use super::super::{
        Cosine, ItemRows, KeyWeights, Negative, Norm, Pool, Propagation, Side, Spreads, scores,
    };
    use super::*;
    use crate::tests::random;

    fn softmax(norm: Norm) -> KeyWeights {
        KeyWeights::Softmax { scale: 6.0, leak: 0.1, norm }
    }

    fn full(queries: Side) -> Rule {
        let spread = Some(Propagation { scale: 5.0, what: Spreads::Mask });
        Rule {
            queries,
            negative: Some(Negative { masked: true, spread }),
            cosine: Some(Cosine {
                weights: KeyWeights::Above { scale: 20.0 },
                unit_queries: false,
            }),
            relevance: Some(softmax(Norm::Queries)),
            pool: Pool::Mean,
        }
    }

    /// The parts add up to the score, with either side as queries. The weights belong only to the cosine.
    #[test]
    fn parts_add_up_to_the_score() {
        let (d, n, m) = (9, 21, 6); // more regions than a register holds
        let [v, u] = [(n, 1), (m, 2)].map(|(rows, seed)| random(rows * d, seed));
        for queries in [Side::Words, Side::Regions] {
            let rule = full(queries);
            let made = parts(&v, &u, d, 0.4, &rule);
            let [images, texts] =
                [(&v, n), (&u, m)].map(|(x, k)| ItemRows::new(x.clone(), d, &[k]));
            let want = scores(&images, &texts, [0..1, 0..1], 0.4, &rule)[0];
            assert!((made.score - want).abs() < 1e-5, "{} for {want}", made.score);
            let q = made.negative.len();
            let sum = |part: &[f32]| part.iter().map(|&x| f64::from(x)).sum::<f64>();
            let all = [&made.negative, &made.cosine, &made.relevance].map(|part| sum(part));
            let mean = all.iter().sum::<f64>() / q as f64;
            assert!((mean - f64::from(made.score)).abs() < 1e-5, "{mean}: {all:?}");
            assert!(all.iter().all(|&part| part != 0.0), "{all:?}");
            let rows = made.weights.chunks_exact(m * n / q);
            assert_eq!((rows.len(), q), (q, if queries == Side::Words { m } else { n }));
            assert!(rows.map(sum).all(|sum| sum == 0.0 || (sum - 1.0).abs() < 1e-5));
        }
        let bare = Rule { negative: None, relevance: None, ..full(Side::Words) };
        let made = parts(&v, &u, d, 0.4, &bare);
        assert_eq!((made.negative.len(), made.relevance.len(), made.cosine.len()), (0, 0, m));
        assert_eq!(made.products.len(), m * n);
    }
}

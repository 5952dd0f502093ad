//! The corrected scores of every query's true items: the thresholds of its ranks.

use itm_core::eval::Standing;
use itm_core::scored::Scored;
use itm_core::{Pairs, Result};

use super::filter::TileFilter;

/// The best true item of each query: the largest corrected score, the smaller index on ties.
#[derive(Debug)]
pub(super) struct Thresholds {
    pub(super) score: Vec<f64>,
    pub(super) near: Vec<f32>, // the scores, rounded
    best: Vec<u32>,
    own: Vec<u32>, // how many true items have this score
}

impl Thresholds {
    pub(super) fn new(scores: &dyn Scored, pairs: &Pairs, filter: &TileFilter<'_>) -> Result<Self> {
        let shape = (scores.images(), scores.texts());
        assert_eq!(shape, (pairs.images(), pairs.texts()), "scores and pairs of one shape");
        let (images, texts) = pairs.list();
        let plain = scores.pairs(images, &texts)?;
        let direction = filter.direction;
        let mut all = vec![NOTHING; direction.queries(pairs.images(), pairs.texts())];
        // Text by text: the true items of every query come in ascending order.
        for ((&image, &text), &score) in images.iter().zip(&texts).zip(&plain) {
            let (query, item) = direction.sides(image, text);
            all[query] = better(all[query], item, filter.exact(image, text, score));
        }
        Ok(Self {
            score: all.iter().map(|&(score, ..)| score).collect(),
            near: all.iter().map(|&(score, ..)| score as f32).collect(),
            best: all.iter().map(|&(_, item, _)| item as u32).collect(),
            own: all.iter().map(|&(.., own)| own).collect(),
        })
    }

    /// Counts an item that f32 could not tell from the threshold.
    #[inline]
    pub(super) fn decide(&self, counts: &mut QueryCounts, query: usize, item: usize, score: f64) {
        let (at, threshold) = (query - counts.first, self.score[query]);
        if score > threshold {
            counts.greater[at] += 1;
        } else if score == threshold {
            counts.equal[at] += 1;
            counts.before[at] += u32::from((item as u32) < self.best[query]);
        }
    }

    pub(super) fn standings(&self, counts: &QueryCounts) -> Vec<Standing> {
        let standing = |query: usize| {
            let own = self.own[query];
            if own == 0 {
                return Standing::NONE;
            }
            let equal = counts.equal[query].checked_sub(own);
            let equal =
                equal.unwrap_or_else(|| panic!("query {query}: its true score was not met"));
            Standing { greater: counts.greater[query], before: counts.before[query], equal, own }
        };
        (0..self.score.len()).map(standing).collect()
    }
}

/// A score, the smallest item that has it, and how many have it: infinity for a query without a true item.
type Best = (f64, usize, u32);

const NOTHING: Best = (f64::INFINITY, usize::MAX, 0);

/// The best with one item more, which is larger than all before.
fn better(best: Best, item: usize, score: f64) -> Best {
    if best.2 == 0 || score > best.0 {
        (score, item, 1)
    } else {
        (best.0, best.1, best.2 + u32::from(score == best.0))
    }
}

/// Counts of a range of queries; `equal` includes the true items themselves.
#[derive(Debug, Clone, Default)]
pub(super) struct QueryCounts {
    pub(super) first: usize,
    pub(super) greater: Vec<u32>,
    before: Vec<u32>,
    equal: Vec<u32>,
}

impl QueryCounts {
    pub(super) fn new(queries: std::ops::Range<usize>) -> Self {
        let zeros = || vec![0; queries.len()];
        Self { first: queries.start, greater: zeros(), before: zeros(), equal: zeros() }
    }

    pub(super) fn add(&mut self, lane: &Self) {
        let add = |total: &mut [u32], part: &[u32]| {
            total[lane.first..].iter_mut().zip(part).for_each(|(a, b)| *a += b);
        };
        add(&mut self.greater, &lane.greater);
        add(&mut self.before, &lane.before);
        add(&mut self.equal, &lane.equal);
    }
}

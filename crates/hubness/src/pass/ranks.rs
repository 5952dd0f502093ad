//! Where the true items of every query stand under a correction.

use std::ops::Range;

use itm_core::Pairs;
use itm_core::eval::Standing;
use itm_core::tiles::{Consumer, Tile, widest};

use super::filter::{Filter, STRETCH, compare, largest, places};
use crate::{Direction, Rescore, Scores};

/// Counts for each query of one direction the items whose corrected score is above or equal to that of its true item; of several
/// true items the best counts, the smaller index on ties.
///
/// ```text
/// greater(q) = #{ j : u(q, j) > u(q, j*) }      equal(q) = #{ j : u(q, j) = u(q, j*) }
/// ```
#[derive(Debug)]
pub struct CorrectedRanks<'a> {
    filter: Filter<'a>,
    /// Of each query's best true item: score, index, and how many of its true items score the same.
    score: Vec<f64>,
    near: Vec<f32>,
    best: Vec<u32>,
    own: Vec<u32>,
}

impl<'a> CorrectedRanks<'a> {
    /// Prepares the pass; the scores of the true pairs are computed now.
    ///
    /// # Panics
    /// If the numbers of images and texts are not those of `pairs`.
    pub fn new(
        scores: &impl Scores,
        pairs: &Pairs,
        direction: Direction,
        map: &'a dyn Rescore,
    ) -> Self {
        let shape = (scores.images(), scores.texts());
        assert_eq!(shape, (pairs.images(), pairs.texts()), "scores and pairs of one shape");
        let filter = Filter::new(direction, map);
        let texts: Vec<_> = (0..pairs.texts()).collect();
        let plain = scores.pair_scores(pairs.image_of_text(), &texts);
        let corrected = |text: usize| filter.exact(pairs.image_of(text), text, plain[text]);
        let best = |query: usize| match direction {
            Direction::I2t => best_of(pairs.texts_of(query).iter().map(|&t| (t, corrected(t)))),
            Direction::T2i => (corrected(query), pairs.image_of(query), 1),
        };
        let queries = direction.queries(pairs.images(), pairs.texts());
        let all: Vec<_> = (0..queries).map(best).collect();
        Self {
            score: all.iter().map(|&(score, ..)| score).collect(),
            near: all.iter().map(|&(score, ..)| score as f32).collect(),
            best: all.iter().map(|&(_, item, _)| item as u32).collect(),
            own: all.iter().map(|&(.., own)| own).collect(),
            filter,
        }
    }

    /// What f32 leaves open.
    #[inline]
    fn decide(&self, counts: &mut Counts, image: usize, text: usize, score: f32) {
        let direction = self.filter.direction();
        let (query, item) = (direction.queries(image, text), direction.items(image, text));
        let (corrected, threshold) = (self.filter.exact(image, text, score), self.score[query]);
        let at = query - counts.first;
        if corrected > threshold {
            counts.greater[at] += 1;
        } else if corrected == threshold {
            counts.equal[at] += 1;
            counts.before[at] += u32::from((item as u32) < self.best[query]);
        }
    }
}

/// The largest score, its smallest index, and how often it occurs; without an item, above everything.
fn best_of(items: impl Iterator<Item = (usize, f64)>) -> (f64, usize, u32) {
    let nothing = (f64::INFINITY, usize::MAX, 0);
    items.fold(nothing, |best, (item, score)| {
        if best.2 == 0 || score > best.0 {
            (score, item, 1)
        } else {
            (best.0, best.1, best.2 + u32::from(score == best.0))
        }
    })
}

/// Counts of some neighbouring queries; `equal` includes the true items themselves.
#[derive(Debug, Clone)]
pub struct Counts {
    first: usize,
    greater: Vec<u32>,
    before: Vec<u32>,
    equal: Vec<u32>,
}

impl Consumer for CorrectedRanks<'_> {
    type State = Counts;
    type Output = Vec<Standing>;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Counts {
        let queries = self.filter.direction().queries(images, texts);
        let zeros = || vec![0; queries.len()];
        Counts { first: queries.start, greater: zeros(), before: zeros(), equal: zeros() }
    }

    fn tile(&self, counts: &mut Counts, tile: &Tile<'_>) {
        widest(
            #[inline(always)]
            || {
                let slack = self.filter.slack(
                    tile.rows()
                        .map(|(_, row)| largest(row))
                        .fold(0.0, |a, b| if b > a { b } else { a }),
                );
                for (image, row) in tile.rows() {
                    let texts = tile.texts().step_by(STRETCH);
                    for (stretch, text0) in row.chunks(STRETCH).zip(texts) {
                        let corrected = self.filter.stretch(image, text0, stretch);
                        let (n, first) = (stretch.len(), counts.first);
                        let unclear = match self.filter.direction() {
                            Direction::I2t => {
                                let t = self.near[image];
                                let (above, unclear) = compare(&corrected, |_| t, slack, n);
                                counts.greater[image - first] += above.count_ones();
                                unclear
                            }
                            Direction::T2i => {
                                let near = &self.near[text0..text0 + n];
                                let (above, unclear) = compare(&corrected, |i| near[i], slack, n);
                                let greater = &mut counts.greater[text0 - first..][..n];
                                add_bits(greater, above);
                                unclear
                            }
                        };
                        for i in places(unclear) {
                            self.decide(counts, image, text0 + i, stretch[i]);
                        }
                    }
                }
            },
        );
    }

    fn merge(&self, total: &mut Counts, lane: Counts) {
        let add = |total: &mut [u32], part: &[u32]| {
            total[lane.first..].iter_mut().zip(part).for_each(|(a, b)| *a += b);
        };
        add(&mut total.greater, &lane.greater);
        add(&mut total.before, &lane.before);
        add(&mut total.equal, &lane.equal);
    }

    fn finish(&self, total: Counts) -> Vec<Standing> {
        let standing = |query: usize| {
            let own = self.own[query];
            let equal = total.equal[query].checked_sub(own);
            let equal =
                equal.unwrap_or_else(|| panic!("query {query}: its true score was not met"));
            Standing { greater: total.greater[query], before: total.before[query], equal, own }
        };
        (0..self.score.len()).map(standing).collect()
    }
}

/// Adds bit `i` of a mask to the `i`-th count.
#[inline(always)]
fn add_bits(counts: &mut [u32], mask: u32) {
    if let Ok(counts) = <&mut [u32; STRETCH]>::try_from(&mut *counts) {
        for i in 0..STRETCH {
            counts[i] += mask >> i & 1;
        }
    } else {
        places(mask).for_each(|i| counts[i] += 1);
    }
}

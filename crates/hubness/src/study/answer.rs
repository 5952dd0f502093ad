//! The lists of a method in one direction, with hits, recalls and hub counts.

use itm_core::eval::{CUTS, DirectionMetrics, Standing, TiePolicy};
use itm_core::{Pairs, Result};

use crate::choose::Split;
use crate::hubs::{Counts, Lists};
use crate::report::Recalls;
use crate::{Direction, GreedyRuns, TopLists};

/// The lists behind R@1, R@5 and R@10 of every query.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    /// One ranking; R@K looks at its first K.
    Top(TopLists),
    /// One matching for each K, or one for all.
    Runs(Box<GreedyRuns>),
}

impl Found {
    fn items(&self, cut: usize, query: usize) -> &[u32] {
        let k = CUTS[cut] as usize;
        let list = match self {
            Self::Top(top) => top.items(query),
            Self::Runs(runs) => runs.at(cut).items(query),
        };
        &list[..k.min(list.len())]
    }
}

/// One setting of one method in one direction.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Whether each query hits at 1, 5, 10.
    pub(crate) hits: Vec<[bool; 3]>,
    /// Ranks of the true items; none after a matching.
    pub(crate) standings: Option<Vec<Standing>>,
    pub(crate) found: Found,
}

impl Answer {
    pub(crate) fn ranked(standings: Vec<Standing>, top: TopLists) -> Self {
        Self { hits: hits(&standings), standings: Some(standings), found: Found::Top(top) }
    }

    pub(crate) fn matched(runs: GreedyRuns, pairs: &Pairs) -> Self {
        let [first, fifth, tenth] = runs.hits(pairs);
        let hits = first.into_iter().zip(fifth).zip(tenth).map(|((a, b), c)| [a, b, c]).collect();
        Self { hits, standings: None, found: Found::Runs(Box::new(runs)) }
    }
}

/// Hits at 1, 5, 10; of equal scores, the smaller index comes first.
pub(crate) fn hits(standings: &[Standing]) -> Vec<[bool; 3]> {
    let hit = |s: &Standing| CUTS.map(|k| s.hit(k, TiePolicy::Index) > 0.0);
    standings.iter().map(hit).collect()
}

/// Hits by image: of the image as a query (i2t), or summed over its texts as queries (t2i).
pub(crate) fn by_image(hits: &[[bool; 3]], pairs: &Pairs, direction: Direction) -> Vec<[u16; 3]> {
    let image = |image: usize| match direction {
        Direction::I2t => hits[image].map(u16::from),
        Direction::T2i => {
            let add = |sum: [u16; 3], &text: &usize| {
                [0, 1, 2].map(|cut| sum[cut] + u16::from(hits[text][cut]))
            };
            pairs.texts_of(image).iter().fold([0; 3], add)
        }
    };
    (0..pairs.images()).map(image).collect()
}

/// Answers pooled over the folds of the images. Each fold takes one answer; a method without a choice has one for all.
#[derive(Debug, Clone)]
pub(crate) struct Pooled {
    pub(crate) direction: Direction,
    pub(crate) hits: Vec<[u16; 3]>, // by image
    pub(crate) recalls: Recalls,
    pub(crate) counts: [Counts; 3],
}

impl Pooled {
    /// `answers[f]` serves the queries of fold `f`; without a split, the first answer serves all queries. `missing` says which
    /// pairs a run does not hold.
    pub(crate) fn new(
        answers: &[&Answer],
        split: Option<&Split>,
        pairs: &Pairs,
        direction: Direction,
        missing: impl Fn(usize, usize) -> bool,
    ) -> Result<Self> {
        let image_of = |query: usize| {
            direction.queries(query, *pairs.image_of_text().get(query).unwrap_or(&0))
        };
        let answer = |query: usize| {
            let fold = split.map_or(0, |split| split.of_image()[image_of(query)]);
            answers[fold.min(answers.len() - 1)]
        };
        let (queries, items) = (
            direction.queries(pairs.images(), pairs.texts()),
            direction.items(pairs.images(), pairs.texts()),
        );
        let hits: Vec<_> = (0..queries).map(|query| answer(query).hits[query]).collect();
        let asked =
            |query: &usize| direction == Direction::T2i || !pairs.texts_of(*query).is_empty();
        let asked: Vec<usize> = (0..queries).filter(asked).collect();
        let recall = |cut: usize| {
            100.0 * asked.iter().filter(|&&query| hits[query][cut]).count() as f64
                / asked.len() as f64
        };
        let standing = |&query: &usize| Some(answer(query).standings.as_ref()?[query]);
        let standings: Option<Vec<_>> = asked.iter().map(standing).collect();
        // A true item that a run does not hold has no rank.
        let ranked = standings.filter(|all| all.iter().all(|s| s.greater < u32::MAX));
        let ranks = ranked.map(|all| DirectionMetrics::new(&all, TiePolicy::Index));
        let recalls = Recalls {
            r1: recall(0),
            r5: recall(1),
            r10: recall(2),
            median_rank: ranks.map(|m| m.median),
            mean_rank: ranks.map(|m| m.mean),
        };
        let counts = [0, 1, 2].map(|cut| {
            let held = |query: usize| {
                let list = answer(query).found.items(cut, query).iter().copied();
                list.filter(|&item| !missing(query, item as usize)).collect::<Vec<u32>>()
            };
            let lists: Vec<_> = (0..queries).map(held).collect();
            let lists = lists.iter().map(Vec::as_slice);
            Counts::new(&Lists::new(direction, items, CUTS[cut] as usize, lists))
        });
        Ok(Self { direction, hits: by_image(&hits, pairs, direction), recalls, counts })
    }
}

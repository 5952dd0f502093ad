//! The largest hubs and the queries they wrongly win.

use itm_core::scored::Scored;
use itm_core::{Pairs, Result};
use serde::{Deserialize, Serialize};

use super::{Counts, Lists};
use crate::{AnyCorrection, Direction, TopLists};

/// Which hubs and victims to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worst {
    /// Hubs are ordered by `N_k` for this `k`.
    pub k: usize,
    /// An item wins a query if it is among the first `within` items of its list: 1, or `k`.
    pub within: usize,
    /// Largest number of hubs.
    pub hubs: usize,
    /// Largest number of victims per hub.
    pub victims: usize,
}

impl Default for Worst {
    /// The ten items with the largest `N_10`, each with up to five queries that wrongly have it first.
    fn default() -> Self {
        Self { k: 10, within: 1, hubs: 10, victims: 5 }
    }
}

/// An item that many queries have among their nearest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hub {
    /// The item.
    pub item: usize,
    /// `N_k`.
    pub count: u32,
    /// How many queries have it first: `N_1`.
    pub at_first: u32,
    /// How many queries it wins without being paired with them.
    pub wrong: usize,
    /// Some of these queries, by the rank of the hub, then by ascending query.
    pub victims: Vec<Victim>,
}

/// A query that a hub wins wrongly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Victim {
    /// The query.
    pub query: usize,
    /// The rank of the hub, from 0.
    pub rank: usize,
    /// The hub's score.
    pub score: f64,
    /// The best of the query's own items. `None` if it is not in the list and nobody called [`complete_truth`], or the query has no
    /// item of its own.
    pub truth: Option<TrueItem>,
}

/// The best of a query's own items.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrueItem {
    /// The item.
    pub item: usize,
    /// Its score.
    pub score: f64,
    /// Its rank, from 0; `None` if it is beyond the list.
    pub rank: Option<usize>,
}

/// The items with the largest `N_k`, each with the queries that it wins without being paired with them.
///
/// Hubs are ordered by descending `N_k`, equal counts by ascending item. An item that no query has is not a hub.
///
/// # Panics
/// If the lists are shorter than `k` or `within` although there are more items, or if there is not one list
/// for each query of the pairs.
pub fn worst_hubs(lists: &TopLists, pairs: &Pairs, what: Worst) -> Vec<Hub> {
    let direction = lists.direction();
    let (queries, items) = sizes(pairs, direction);
    assert_eq!(lists.queries(), queries, "lists of the {direction} queries of the pairs");
    let [counts, first, _] =
        [what.k, 1, what.within].map(|k| Counts::new(&Lists::top(items, k, lists)));
    let mut hubs: Vec<Hub> = counts
        .largest(what.hubs)
        .into_iter()
        .map(|item| Hub {
            item,
            count: counts.values()[item],
            at_first: first.values()[item],
            wrong: 0,
            victims: Vec::new(),
        })
        .collect();
    let mut hub_of = vec![usize::MAX; items];
    hubs.iter().enumerate().for_each(|(h, hub)| hub_of[hub.item] = h);
    // By rank, then query: the order in which victims are kept.
    for rank in 0..what.within.min(lists.k()) {
        for query in 0..queries {
            let item = lists.items(query)[rank] as usize;
            let Some(hub) = hubs.get_mut(hub_of[item]) else { continue };
            let is_query = !direction.truths(pairs, query).is_empty();
            if !is_query || paired(pairs, direction, query, item) {
                continue;
            }
            hub.wrong += 1;
            if hub.victims.len() < what.victims {
                let truth = listed_truth(lists, pairs, direction, query);
                hub.victims.push(Victim { query, rank, score: lists.scores(query)[rank], truth });
            }
        }
    }
    hubs
}

/// Scores every victim's own items, even items beyond the lists. The best of them becomes the truth.
///
/// `correction` must be the one that the lists were made with. The scores of hubs are computed again too, so that hub and
/// truth are comparable.
///
/// # Errors
/// As [`Scored::pairs`].
///
/// # Panics
/// If scores and pairs differ in shape.
pub fn complete_truth(
    hubs: &mut [Hub],
    pairs: &Pairs,
    scores: &dyn Scored,
    correction: &AnyCorrection,
) -> Result<()> {
    let (direction, map) = (correction.direction(), correction.map());
    assert_eq!(
        (scores.images(), scores.texts()),
        (pairs.images(), pairs.texts()),
        "images and texts of scores and pairs"
    );
    // For every victim: the hub, then the victim's own items.
    let mut asked = Vec::new();
    for hub in &*hubs {
        for victim in &hub.victims {
            asked.push((victim.query, hub.item));
            let own = direction.truths(pairs, victim.query).iter();
            asked.extend(own.map(|&item| (victim.query, item)));
        }
    }
    let side = |of: fn(Direction, usize, usize) -> usize| -> Vec<usize> {
        asked.iter().map(|&(query, item)| of(direction, query, item)).collect()
    };
    // `queries` of (query, item) is the image's side for i2t: there the query is the image.
    let (images, texts) = (side(Direction::queries), side(Direction::items));
    let raw = scores.pairs(&images, &texts)?;
    let mut scored = asked
        .into_iter()
        .zip(raw)
        .map(|((query, item), raw)| (item, map.rescore(query, item, raw)));
    for hub in hubs {
        for victim in &mut hub.victims {
            victim.score = scored.next().expect("one score for each").1;
            let own = direction.truths(pairs, victim.query).len();
            let better = |best: (usize, f64), next: (usize, f64)| {
                if next.1 > best.1 { next } else { best } // own items ascend: equal ones keep the smaller
            };
            let best = scored.by_ref().take(own).reduce(better);
            let rank = victim.truth.and_then(|truth| truth.rank);
            victim.truth = best.map(|(item, score)| TrueItem { item, score, rank });
        }
    }
    Ok(())
}

/// Queries and items of a direction.
fn sizes(pairs: &Pairs, direction: Direction) -> (usize, usize) {
    let (images, texts) = (pairs.images(), pairs.texts());
    (direction.queries(images, texts), direction.items(images, texts))
}

fn paired(pairs: &Pairs, direction: Direction, query: usize, item: usize) -> bool {
    pairs.contains(direction.queries(query, item), direction.items(query, item))
}

/// The first item of the list that the query is paired with.
fn listed_truth(
    lists: &TopLists,
    pairs: &Pairs,
    direction: Direction,
    query: usize,
) -> Option<TrueItem> {
    let items = lists.items(query);
    let rank = items.iter().position(|&item| paired(pairs, direction, query, item as usize))?;
    let (item, score) = (items[rank] as usize, lists.scores(query)[rank]);
    Some(TrueItem { item, score, rank: Some(rank) })
}

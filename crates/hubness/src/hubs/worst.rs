//! The largest hubs and the queries they wrongly win.

use std::collections::BTreeMap;

use itm_core::eval::{Standing, TiePolicy};
use itm_core::scored::Scored;
use itm_core::{Error, Pairs, Relevance, Result};
use serde::{Deserialize, Serialize};

use super::Counts;
use crate::{AnyCorrection, TopLists, pass};

/// Length of the lists in which hubs are counted.
const LISTED: usize = 10;

/// Largest number of hubs.
const HUBS: usize = 10;

/// Largest number of victims per hub.
const VICTIMS: usize = 5;

/// An item that turns up in too many lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hub {
    /// The item's index.
    pub item: u64,
    /// Its caption or file name, if names were given.
    pub name: Option<String>,
    /// N_10 under nearest neighbours.
    pub count: u64,
    /// N_1: for how many queries it comes first.
    pub first: u64,
    /// In how many of the `count` lists it is a wrong answer.
    pub wrong: u64,
    /// Share of the `wrong` lists in which the truth beyond the pairs calls the item right; `null` without such a truth or
    /// without a wrong list.
    pub deserved: Option<f64>,
    /// N_10 under each other method.
    pub after: BTreeMap<String, u64>,
    /// Queries that it wrongly wins.
    pub victims: Vec<Victim>,
}

/// A query for which a hub comes before every true item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Victim {
    /// The query's index.
    pub query: u64,
    /// Its caption or file name, if names were given.
    pub name: Option<String>,
    /// Score of the query with the hub.
    pub hub_score: f64,
    /// Score of the query with its best true item.
    pub true_score: f64,
    /// Rank of the best true item, from 1.
    pub true_rank: u64,
}

/// The ten items with the largest `N_10`, equal counts by ascending item, each with up to five queries that wrongly have it
/// first. An item that no query has is not a hub.
///
/// `lists` and `standings` must be the answers of `correction` over `scores`. Victims without a true item that has a score
/// and a rank are left out. Names and counts under other methods stay open.
///
/// # Errors
/// If the correction is of the other direction, or does not fit the scores; if scores or truth are of other images or texts than the
/// pairs; and as [`Scored::pairs`].
///
/// # Panics
/// If the lists are shorter than ten although there are more items, or if there is not one list and one standing for each
/// query of the pairs.
pub fn worst_hubs(
    (lists, standings): (&TopLists, &[Standing]),
    pairs: &Pairs,
    truth: Option<&Relevance>,
    scores: &dyn Scored,
    correction: &AnyCorrection,
) -> Result<Vec<Hub>> {
    let direction = lists.direction;
    let (images, texts) = (pairs.images(), pairs.texts());
    let (queries, items) = direction.sides(images, texts);
    let own = correction.direction();
    let expected = format_args!("one of direction {direction}");
    Error::unless(own == direction, "correction", expected, format_args!("one of {own}"))?;
    pass::check("scores", (scores.images(), scores.texts()), pairs)?;
    truth.map_or(Ok(()), |t| pass::check("truth", (t.images(), t.texts()), pairs))?;
    correction.check(scores)?;
    let got = (lists.queries(), standings.len());
    assert_eq!(got, (queries, queries), "answers to the {direction} queries of the pairs");
    let [counts, first] = [LISTED, 1].map(|k| Counts::top(items, k, lists));
    let hubs = counts.largest(HUBS);
    // A query without a true item is no query.
    let is_wrong = |query: usize, item: usize| {
        let truths = direction.truths(pairs, query);
        !truths.is_empty() && truths.binary_search(&item).is_err()
    };
    let victims_of = |hub: usize| {
        let won =
            (0..queries).filter(move |&query| lists.held(query).first() == Some(&(hub as u32)));
        won.filter(move |&query| is_wrong(query, hub)).take(VICTIMS)
    };
    // For every victim: the hub, then the victim's own items.
    let of_victim = |hub: usize, query: usize| {
        let own = direction.truths(pairs, query).iter().copied();
        let items = [hub].into_iter().chain(own);
        items.map(move |item| (query, item))
    };
    let asked = |hub: usize| victims_of(hub).flat_map(move |query| of_victim(hub, query));
    let (of_queries, of_items): (Vec<_>, Vec<_>) = hubs.iter().flat_map(|&hub| asked(hub)).unzip();
    let (of_images, of_texts) = direction.sides(&of_queries, &of_items);
    let raw = scores.pairs(of_images, of_texts)?;
    let entries = of_queries.iter().zip(&of_items).zip(raw);
    // −0 + 0 = +0, as in every list.
    let mut scored = entries.map(|((&q, &i), raw)| correction.map().rescore(q, i, raw) + 0.0);
    let mut victim = |query: usize| {
        let hub_score = scored.next().expect("one score for each");
        let own = scored.by_ref().take(direction.truths(pairs, query).len());
        let true_score = own.reduce(|best, next| if next > best { next } else { best })?;
        let rank = standings[query].rank(TiePolicy::Index) + 1.0;
        let known = true_score.is_finite() && rank < f64::from(u32::MAX);
        let (query, true_rank) = (query as u64, rank as u64);
        known.then_some(Victim { query, name: None, hub_score, true_score, true_rank })
    };
    let of_hub = |item: usize| {
        let lists_it = |query: &usize| {
            let list = lists.held(*query);
            list[..LISTED.min(list.len())].contains(&(item as u32)) && is_wrong(*query, item)
        };
        let wrong: Vec<usize> = (0..queries).filter(lists_it).collect();
        let right = |truth: &Relevance| {
            let is_true = |&&query: &&usize| {
                truth.contains(direction.queries(query, item), direction.items(query, item))
            };
            wrong.iter().filter(is_true).count() as f64 / wrong.len() as f64
        };
        Hub {
            item: item as u64,
            name: None,
            count: u64::from(counts.values[item]),
            first: u64::from(first.values[item]),
            wrong: wrong.len() as u64,
            deserved: truth.filter(|_| !wrong.is_empty()).map(right),
            after: BTreeMap::new(),
            victims: victims_of(item).filter_map(&mut victim).collect(),
        }
    };
    Ok(hubs.into_iter().map(of_hub).collect())
}

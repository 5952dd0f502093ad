//! Hubs that deserve it: items that are true of most queries that find them.

use itm_core::Relevance;
use serde::{Deserialize, Serialize};

use super::Lists;
use crate::Direction;

/// The share above which a hub is deserved, if nothing speaks for another.
pub const HALF: f64 = 0.5;

/// How many of the queries that have an item among their nearest it is true of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Deserved {
    /// The item.
    pub item: usize,
    /// `N_k`.
    pub count: u32,
    /// Those of them that it is true of, whether annotated or not.
    pub relevant: u32,
    /// `relevant / count`; 0 if no query has it.
    pub share: f64,
    /// Whether the share is above the threshold.
    pub deserved: bool,
}

/// Whether items are true of more than a share `above` of the queries that have them in their lists; in the order of `items`.
///
/// # Panics
/// If the lists are not of the queries and items of the relevance, an item is not there, or `above` is not within 0 and 1.
pub fn deserved(
    lists: &Lists<'_>,
    relevance: &Relevance,
    items: &[usize],
    above: f64,
) -> Vec<Deserved> {
    let direction = lists.direction();
    let (images, texts) = (relevance.images(), relevance.texts());
    assert_eq!(
        (lists.queries().len(), lists.items()),
        (direction.queries(images, texts), direction.items(images, texts)),
        "{direction} queries and items of lists and relevance"
    );
    assert!((0.0..=1.0).contains(&above), "a share within 0 and 1, got {above}");
    let (mut count, mut relevant) = (vec![0u32; lists.items()], vec![0u32; lists.items()]);
    for (query, list) in lists.queries().iter().enumerate() {
        for item in list.iter().map(|&item| item as usize) {
            let truth = match direction {
                Direction::I2t => relevance.contains(query, item),
                Direction::T2i => relevance.contains(item, query),
            };
            count[item] += 1;
            relevant[item] += u32::from(truth);
        }
    }
    let of = |&item: &usize| {
        let (count, relevant) = (count[item], relevant[item]);
        let share = f64::from(relevant) / f64::from(count.max(1));
        Deserved { item, count, relevant, share, deserved: share > above }
    };
    items.iter().map(of).collect()
}

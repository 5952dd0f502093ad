//! Deserved hubs: items that are true of most queries that find them.

use itm_core::Relevance;
use serde::{Deserialize, Serialize};

use super::Lists;
use crate::Direction;

/// The usual share above which a hub is deserved.
pub const HALF: f64 = 0.5;

/// How many queries have an item among their nearest, and of how many of these queries the item is true.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Deserved {
    /// The item.
    pub item: usize,
    /// `N_k`.
    pub count: u32,
    /// Number of these queries that the item is true of, whether annotated or not.
    pub relevant: u32,
    /// `relevant / count`; 0 if no query has the item.
    pub share: f64,
    /// Whether the share is above the threshold.
    pub deserved: bool,
}

/// Whether each item is true of more than a share `above` of the queries that list it; in the order of `items`.
///
/// # Panics
/// If lists and relevance differ in their number of queries or items, an item does not exist, or `above` is not within
/// 0 and 1.
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

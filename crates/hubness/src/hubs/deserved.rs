//! Deserved hubs: items that are true of most queries that find them.

use itm_core::Relevance;

use super::Lists;
use crate::Direction;

/// How many queries have an item among their nearest, and of how many of these queries the item is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deserved {
    /// The item.
    pub item: usize,
    /// `N_k`.
    pub count: u32,
    /// Number of these queries that the item is true of, whether annotated or not.
    pub relevant: u32,
}

/// The queries that list each item, and those that the item is true of; in the order of `items`.
///
/// # Panics
/// If lists and relevance differ in their number of queries or items, or an item does not exist.
pub fn deserved(lists: &Lists<'_>, relevance: &Relevance, items: &[usize]) -> Vec<Deserved> {
    let direction = lists.direction();
    let (images, texts) = (relevance.images(), relevance.texts());
    assert_eq!(
        (lists.queries().len(), lists.items()),
        (direction.queries(images, texts), direction.items(images, texts)),
        "{direction} queries and items of lists and relevance"
    );
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
    let of = |&item: &usize| Deserved { item, count: count[item], relevant: relevant[item] };
    items.iter().map(of).collect()
}

//! The map of a correction from a score to a corrected score.

use std::any::Any;
use std::fmt;

use itm_core::scored::Scored;
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// Maps a score to a new score. Larger is better. A score that is a number never gives NaN.
///
/// `Any` lets [`Correction`](crate::Correction) see which maps of this crate it can save.
pub trait Rescore: Any + fmt::Debug + Send + Sync {
    /// The new score of a query and an item whose score was `score`.
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64;

    /// The number of items of the fit.
    fn items(&self) -> usize;

    /// The number of queries of the fit, if the map holds values of single queries; `None` if it serves any queries.
    fn queries(&self) -> Option<usize> {
        None
    }

    /// Whether the map takes these scores, where it does not take all.
    ///
    /// # Errors
    /// Names a score that it does not take.
    fn check_scores(&self, _scores: &dyn Scored) -> Result<()> {
        Ok(())
    }

    /// The new scores of a query that was not in the fit. `scores` are its scores with all items, all finite.
    ///
    /// # Errors
    /// If the map holds values of single queries and cannot find them for this one.
    fn of_query(&self, scores: &[f32]) -> Result<Vec<f64>> {
        if self.queries().is_some() {
            return Err(serves_no_other_query());
        }
        Ok(scores.iter().enumerate().map(|(item, &score)| self.rescore(0, item, score)).collect())
    }

    /// The map as `scale · score − bias`, if it has that form. Passes over tiles are then many times faster.
    fn affine(&self) -> Option<&Affine> {
        None
    }
}

/// The error for a query outside the fit.
fn serves_no_other_query() -> Error {
    let expected =
        "one that serves queries outside its fit (not exclusive IS, or CSLS with the query's mean)";
    Error::invalid("correction", expected, "one that holds only values of the queries of its fit")
}

/// The item with the largest score; among equal scores, the smaller index, as in every list. 0 without items.
pub(crate) fn best_of(scores: &[f32]) -> usize {
    (1..scores.len()).fold(0, |best, item| if scores[item] > scores[best] { item } else { best })
}

/// # Errors
/// If a value is not finite or below `least`: `place` and its number name it.
pub(crate) fn check_values(
    place: impl fmt::Display,
    values: &[f64],
    least: f64,
    expected: impl fmt::Display,
) -> Result<()> {
    match values.iter().position(|value| !(value.is_finite() && *value >= least)) {
        None => Ok(()),
        Some(at) => Err(Error::invalid(format!("{place} {at}"), expected, values[at])),
    }
}

/// A correction that subtracts numbers from the score: `u(q, j) = scale · s(q, j) − item(j) − query(q) − fine(j)`. Each group
/// of queries has its own item biases.
///
/// | symbol  | here             | shape                  |
/// |---------|------------------|------------------------|
/// | scale   | `scale`          | > 0                    |
/// | item    | `items[group]`   | one per item           |
/// | query   | `queries`        | one per query, or none   |
/// | fine    | `fine`           | one per item, or none  |
/// | group   | `groups`         | one per query, or none: all in group 0 |
/// |         | `by_best`        | one per item, or none: the group of an unseen query with this best item |
///
/// `fine` is the second part of an item bias. It holds what the first f64 cannot: where `scale · s − item` is 0, a bias of
/// 10⁻⁴⁰ still tells two items apart. `fine` is the same for all groups.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Affine {
    /// The factor of the score.
    pub scale: f64,
    /// Item biases to subtract, by group of queries: `[groups][items]`.
    pub items: Vec<Vec<f64>>,
    /// Item biases to subtract last; empty if there are none.
    pub fine: Vec<f64>,
    /// Query biases to subtract; empty if there are none. They never change the order of one query's items.
    pub queries: Vec<f64>,
    /// The group of every query; empty if all are in the first.
    pub groups: Vec<u8>,
    /// The group of a query that is not among `groups`, by its best item; empty if all are in the first.
    pub by_best: Vec<u8>,
}

impl Affine {
    /// One bias per item, the same for all queries.
    pub fn of_items(scale: f64, items: Vec<f64>) -> Self {
        Self { scale, items: vec![items], ..Self::default() }
    }

    /// Checks that the parts have the same numbers of items and queries, and that every value is finite.
    ///
    /// # Errors
    /// Names the first part that does not fit.
    pub fn check(&self) -> Result<()> {
        let unless = |fits, part: &str, expected: fmt::Arguments<'_>, got: &dyn fmt::Display| {
            Error::unless(fits, format_args!("{part} of the correction"), expected, got)
        };
        let fits = self.scale.is_finite() && self.scale > 0.0;
        unless(fits, "scale", format_args!("a number above 0"), &self.scale)?;
        unless(!self.items.is_empty(), "items", format_args!("at least one group"), &0)?;
        let n = self.items[0].len();
        let lists = self.items.iter().map(|group| ("items", group));
        for (part, values) in lists.chain([("fine", &self.fine), ("queries", &self.queries)]) {
            let place = format_args!("{part} of the correction, value");
            check_values(place, values, f64::MIN, "a finite number")?;
        }
        let groups = self.items.iter().map(|group| ("items", group.len()));
        let optional = [("fine", self.fine.len()), ("by_best", self.by_best.len())];
        let optional = optional.into_iter().filter(|&(_, count)| count > 0);
        for (part, count) in groups.chain(optional) {
            unless(count == n, part, format_args!("one value for each of {n} items"), &count)?;
        }
        let (queries, grouped) = (self.queries.len(), self.groups.len());
        let fits = queries == 0 || grouped == 0 || queries == grouped;
        unless(fits, "queries", format_args!("{grouped}, as many as have a group"), &queries)?;
        let (groups, last) = (self.items.len(), self.groups.iter().chain(&self.by_best).max());
        let fits = last.is_none_or(|&last| usize::from(last) < groups);
        unless(fits, "groups", format_args!("numbers below {groups}"), last.unwrap_or(&0))
    }

    /// The item biases of a query.
    pub(crate) fn items_for(&self, query: usize) -> &[f64] {
        let group = self.groups.get(query).copied().unwrap_or(0);
        &self.items[usize::from(group)]
    }
}

impl Rescore for Affine {
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64 {
        let own = self.queries.get(query).copied().unwrap_or(0.0);
        let fine = self.fine.get(item).copied().unwrap_or(0.0);
        self.scale * f64::from(score) - self.items_for(query)[item] - own - fine
    }

    fn items(&self) -> usize {
        self.items.first().map_or(0, Vec::len)
    }

    fn queries(&self) -> Option<usize> {
        let queries = self.queries.len().max(self.groups.len());
        (queries > 0).then_some(queries)
    }

    fn of_query(&self, scores: &[f32]) -> Result<Vec<f64>> {
        if !self.queries.is_empty() || self.by_best.is_empty() && !self.groups.is_empty() {
            return Err(serves_no_other_query());
        }
        let group = self.by_best.get(best_of(scores)).copied().unwrap_or(0);
        let fine = |item: usize| self.fine.get(item).copied().unwrap_or(0.0);
        let biases = self.items[usize::from(group)].iter().zip(scores).enumerate();
        let new = |(item, (bias, &score))| self.scale * f64::from(score) - bias - fine(item);
        Ok(biases.map(new).collect())
    }

    fn affine(&self) -> Option<&Affine> {
        Some(self)
    }
}

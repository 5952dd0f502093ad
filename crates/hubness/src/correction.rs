//! What a fitted correction makes of a score.

use std::fmt;
use std::marker::PhantomData;

use itm_core::ScoreMatrix;

use crate::bank::{Knowledge, Marker, Plain, Setting};
use crate::{Direction, Scores};

/// Makes a new score of an old one. Larger is better; NaN never comes of a number.
pub trait Rescore: fmt::Debug + Send + Sync {
    /// The new score of a query and an item whose score was `score`.
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64;

    /// The same as `scale · score − bias`, where it has that form: passes over tiles are then many times faster.
    fn affine(&self) -> Option<&Affine> {
        None
    }
}

/// A correction that takes numbers from the score: `u(q, j) = scale · s(q, j) − item(j) − query(q) − fine(j)`, with other item
/// biases for other groups of queries.
///
/// | symbol  | here             | shape                  |
/// |---------|------------------|------------------------|
/// | scale   | `scale`          | > 0                    |
/// | item    | `items[group]`   | one value an item      |
/// | query   | `queries`        | one a query, or none   |
/// | fine    | `fine`           | one value an item, or none |
/// | group   | `groups`         | one a query, or none: all in group 0 |
///
/// `fine` is the second part of an item bias, for what its f64 cannot hold: where `scale · s − item` is 0, a bias of 10⁻⁴⁰ still
/// tells two items apart. It is the same for all groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Affine {
    /// Times the score.
    pub scale: f64,
    /// Less this, by group of queries: `[groups][items]`.
    pub items: Vec<Vec<f64>>,
    /// Less this after all else, for every item; empty if it is nothing.
    pub fine: Vec<f64>,
    /// Less this for every query; empty if it is nothing. It never changes the order of one query's items.
    pub queries: Vec<f64>,
    /// The group of every query; empty if all are in the first.
    pub groups: Vec<u8>,
}

impl Affine {
    /// One bias for each item, whoever asks.
    pub fn of_items(scale: f64, items: Vec<f64>) -> Self {
        let (fine, queries, groups) = Default::default();
        Self { scale, items: vec![items], fine, queries, groups }
    }

    /// The item biases that hold for a query.
    pub fn items_for(&self, query: usize) -> &[f64] {
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

    fn affine(&self) -> Option<&Affine> {
        Some(self)
    }
}

/// A correction of one direction, fitted; its type says what it has seen.
#[derive(Debug)]
pub struct Correction<K> {
    direction: Direction,
    rescore: Box<dyn Rescore>,
    knowledge: Marker<K>,
}

impl Correction<Plain> {
    /// Nearest neighbours as they are.
    pub fn none(scores: &impl Scores, direction: Direction) -> Self {
        let items = direction.items(scores.images(), scores.texts());
        Self::new(direction, Affine::of_items(1.0, vec![0.0; items]))
    }
}

impl<K: Knowledge> Correction<K> {
    /// A correction that was fitted elsewhere; `K` must say what it has seen.
    pub fn new(direction: Direction, rescore: impl Rescore + 'static) -> Self {
        Self { direction, rescore: Box::new(rescore), knowledge: PhantomData }
    }

    /// The direction it was fitted for.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// What it has seen.
    pub fn setting(&self) -> Setting {
        K::SETTING
    }

    /// What it makes of a score.
    pub fn map(&self) -> &dyn Rescore {
        &*self.rescore
    }

    /// All corrected scores, images × texts, rounded to f32. Ranks should be taken from a [`pass`](crate::pass), which compares in f64.
    ///
    /// # Panics
    /// If there are more items than it was fitted for, or more queries where it holds something of each query. Fewer are not noticed.
    pub fn apply(&self, scores: &ScoreMatrix) -> ScoreMatrix {
        let (n, m) = (scores.images(), scores.texts());
        let value = |at: usize| {
            let (image, text) = (at / m, at % m);
            let (query, item) =
                (self.direction.queries(image, text), self.direction.items(image, text));
            self.rescore.rescore(query, item, scores.values()[at]) as f32
        };
        ScoreMatrix::new(n, m, (0..n * m).map(value).collect()).expect("corrections give numbers")
    }

    /// The same correction, its setting no longer in the type but in [`AnyCorrection::setting`].
    pub fn into_any(self) -> AnyCorrection {
        AnyCorrection { direction: self.direction, setting: K::SETTING, rescore: self.rescore }
    }
}

/// A correction whose [`Setting`] is a value: what lists of corrections hold.
#[derive(Debug)]
pub struct AnyCorrection {
    /// The direction it was fitted for.
    pub direction: Direction,
    /// What it has seen.
    pub setting: Setting,
    /// What it makes of a score.
    pub rescore: Box<dyn Rescore>,
}

//! A fitted correction: its direction, what it has seen, and its map of scores.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use itm_core::scored::Scored;
use itm_core::{Error, Result, ScoreMatrix};
use rayon::prelude::*;

use crate::bank::{Bank, Knowledge, Plain, Setting};
use crate::{Affine, Direction, Rescore};

/// A fitted correction of one direction. What it has seen is a value, [`setting`](Self::setting), so that lists can hold
/// corrections of different settings. Every function that reads a correction takes this type; a [`Correction`] dereferences
/// to it.
#[derive(Debug)]
pub struct AnyCorrection {
    direction: Direction,
    setting: Setting,
    rescore: Box<dyn Rescore>,
}

impl AnyCorrection {
    /// A correction that was fitted elsewhere; `setting` must say what it has seen.
    pub fn new(direction: Direction, setting: Setting, rescore: Box<dyn Rescore>) -> Self {
        Self { direction, setting, rescore }
    }

    /// The direction that the correction was fitted for.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// What the correction has seen.
    pub fn setting(&self) -> Setting {
        self.setting
    }

    /// The map from a score to a corrected score.
    pub fn map(&self) -> &dyn Rescore {
        &*self.rescore
    }

    /// The same direction and setting with another map.
    pub(crate) fn mapped(self, map: impl FnOnce(Box<dyn Rescore>) -> Box<dyn Rescore>) -> Self {
        Self { rescore: map(self.rescore), ..self }
    }

    /// Checks that the scores have as many items as the fit. If the correction holds values of single queries, the scores
    /// must also have as many queries. For local scaling and NICDM a pass over the scores checks that they are cosines.
    ///
    /// The check compares only the numbers of items and queries. A correction that holds values of single queries must get the queries of its fit, in
    /// the same order. For another query, use [`of_query`](Self::of_query).
    ///
    /// # Errors
    /// Names the number that differs, the part of an [`Affine`] that does not fit the others, or a score that is no cosine.
    pub fn check(&self, scores: &dyn Scored) -> Result<()> {
        self.rescore.affine().map_or(Ok(()), Affine::check)?;
        let (n, m, direction) = (scores.images(), scores.texts(), self.direction);
        let (queries, items) = direction.sides(n, m);
        let own = self.rescore.items();
        let place = format_args!("items of direction {direction}");
        let expected = format_args!("the {own} that the correction was fitted for");
        Error::unless(items == own, place, expected, items)?;
        let own = self.rescore.queries().unwrap_or(queries);
        let place = format_args!("queries of direction {direction}");
        let expected = format_args!("the {own} whose values the correction holds");
        Error::unless(queries == own, place, expected, queries)?;
        self.rescore.check_scores(scores)
    }

    /// All corrected scores, images × texts, rounded to f32. Take ranks from a [`pass`](crate::pass), which compares in f64.
    ///
    /// # Errors
    /// As [`check`](Self::check), if a score cannot be computed or is infinite, or if a corrected score is beyond f32.
    pub fn apply(&self, scores: &dyn Scored) -> Result<ScoreMatrix> {
        self.check(scores)?;
        let (n, m) = (scores.images(), scores.texts());
        let images: Vec<usize> = (0..n).collect();
        let (mut values, beyond) = (Vec::new(), AtomicUsize::new(usize::MAX));
        Direction::I2t.batches(scores, &images, |images, rows| {
            values.par_extend(rows.par_iter().enumerate().map(|(at, &score)| {
                let (image, text) = (images[at / m], at % m);
                let (query, item) = self.direction.sides(image, text);
                let new = self.rescore.rescore(query, item, score);
                if new.is_finite() && !(new as f32).is_finite() {
                    beyond.fetch_min(image * m + text, Relaxed);
                }
                new as f32
            }));
        })?;
        let at = beyond.into_inner();
        let place =
            format_args!("corrected score of image {} and text {}", at / m.max(1), at % m.max(1));
        let got = "one of larger magnitude";
        Error::unless(at == usize::MAX, place, "a number that f32 holds", got)?;
        ScoreMatrix::new(n, m, values)
    }

    /// The corrected scores of one query that was not in the fit, as a service needs them. `scores` are its scores with all
    /// items.
    ///
    /// A query of the fit gets the same values here as among all queries; only the last bits of Gaussian mutual proximity over more than 512
    /// items may differ, because their means are summed in parts. The correction takes the query's own values from
    /// `scores`: QB-Norm and DBNorm use the best item, mutual proximity (Gaussian, counted) uses all scores. Two kinds of
    /// correction hold only values of the queries of their fit and give an error: the exclusive form of
    /// IS, and the forms of CSLS with a mean of the query.
    ///
    /// # Errors
    /// If there is not one score for each item, a score is not finite or is one that the fit would refuse too, or the
    /// correction is one of the two kinds.
    ///
    /// ```
    /// use hubness::{Direction, HeldOutBank, ScoreMatrix, csls};
    ///
    /// let bank = ScoreMatrix::from_rows([[0.9, 0.2], [0.8, 0.3], [0.7, 0.1]]); // item 0 is a hub
    /// let fair = csls(&HeldOutBank(&bank), Direction::I2t, 2)?;
    /// let one = fair.of_query(&[0.7, 0.6])?; // 2 · 0.7 − 0.85 and 2 · 0.6 − 0.25
    /// assert!((one[0] - 0.55).abs() < 1e-6 && (one[1] - 0.95).abs() < 1e-6);
    /// # Ok::<(), hubness::Error>(())
    /// ```
    pub fn of_query(&self, scores: &[f32]) -> Result<Vec<f64>> {
        let items = self.rescore.items();
        let expected = format_args!("one for each of {items} items");
        Error::unless(scores.len() == items, "scores of a query", expected, scores.len())?;
        let place = |item| format!("score of a query with item {item}");
        Error::unless_finite(scores, place, "a finite number")?;
        self.rescore.affine().map_or(Ok(()), Affine::check)?;
        self.rescore.of_query(scores)
    }
}

/// A fitted correction of one direction; its type says what it has seen.
///
/// It has all methods of [`AnyCorrection`]. serde saves and loads it. Loading refuses a file whose setting differs from the
/// setting of the type, whose parts do not fit each other, or whose values are not finite. Exclusive IS
/// and a [`Rescore`] of your own cannot be saved: serialisation gives an error.
///
/// ```
/// use hubness::{Correction, Direction, HeldOut, HeldOutBank, ScoreMatrix, csls};
///
/// let bank = ScoreMatrix::from_rows([[0.9, 0.2], [0.8, 0.3]]);
/// let saved = serde_json::to_string(&csls(&HeldOutBank(&bank), Direction::I2t, 2)?).unwrap();
/// let loaded: Correction<HeldOut> = serde_json::from_str(&saved).unwrap();
/// assert_eq!(loaded.of_query(&[0.5, 0.5])?.len(), 2);
/// # Ok::<(), hubness::Error>(())
/// ```
#[derive(Debug)]
pub struct Correction<K> {
    any: AnyCorrection,
    knowledge: PhantomData<fn() -> K>, // K is known without a value of it
}

/// What a fit on a bank gives.
pub type BankFit<B> = Result<Correction<<B as Bank>::Knowledge>>;

impl Correction<Plain> {
    /// No correction: the nearest neighbours stay as they are.
    pub fn none(scores: &dyn Scored, direction: Direction) -> Self {
        let items = direction.items(scores.images(), scores.texts());
        Self::new(direction, Affine::of_items(1.0, vec![0.0; items]))
    }
}

impl<K: Knowledge> Correction<K> {
    /// A correction that was fitted elsewhere; `K` must say what it has seen.
    pub fn new(direction: Direction, rescore: impl Rescore) -> Self {
        Self::of_map(direction, Box::new(rescore))
    }

    pub(crate) fn of_map(direction: Direction, map: Box<dyn Rescore>) -> Self {
        let any = AnyCorrection::new(direction, K::SETTING, map);
        Self { any, knowledge: PhantomData }
    }

    /// The same correction with its setting as a value, [`AnyCorrection::setting`], instead of a type.
    pub fn into_any(self) -> AnyCorrection {
        self.any
    }
}

impl<K> Deref for Correction<K> {
    type Target = AnyCorrection;

    fn deref(&self) -> &AnyCorrection {
        &self.any
    }
}

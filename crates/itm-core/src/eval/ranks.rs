//! Ranks by counting: one pass over the scores, without sorting.

use super::TiePolicy;
use crate::{Error, Pairs, Result};

/// The rank of one query's best true item, as counts; ranks are 0-based.
///
/// Let `s⁺` be the largest score of a true item of the query. No true item scores more, so
///
/// ```text
/// g = #{ s > s⁺ }                                     a = #{ true items with s = s⁺ } ≥ 1
/// e = #{ other items with s = s⁺ }                    b = #{ items of e before the first of a }
///
/// policy        rank of the best true item            query hits at K
/// Index         g + b                                 rank < K
/// Optimistic    g                                     rank < K
/// Pessimistic   g + e                                 rank < K
/// Expected      g + e / (a + 1)                       1 − C(e, h) / C(e + a, h),  h = K − g
/// ```
///
/// | symbol | here      |
/// |--------|-----------|
/// | g      | `greater` |
/// | b      | `before`  |
/// | e      | `equal`   |
/// | a      | `own`     |
///
/// Other true items of the same score never push the best one back: more of them improve the expected
/// rank. `Expected` takes the mean over all orders of the `e + a` tied items. Its rank is the mean rank of
/// the first true item. Its hit is the probability that a true item is among the first `h` (0 if `h ≤ 0`,
/// 1 if `h > e`). With one true item these are `g + e / 2` and `h / (e + 1)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Items with a greater score.
    pub greater: u32,
    /// Untrue items of an equal score whose index is smaller than the index of every true item of that score.
    pub before: u32,
    /// Untrue items of an equal score; `before ≤ equal`.
    pub equal: u32,
    /// True items of that score, including the best one: 1 for a text of one image, 0 for a query without a true item.
    pub own: u32,
}

impl Standing {
    /// The standing of a query without a true item, which recalls leave out.
    pub const NONE: Self = Self { greater: 0, before: 0, equal: 0, own: 0 };

    /// Whether the query has a true item.
    pub fn is_query(&self) -> bool {
        self.own > 0
    }

    /// 0-based rank; fractional only under [`TiePolicy::Expected`].
    pub fn rank(&self, policy: TiePolicy) -> f64 {
        let greater = f64::from(self.greater);
        match policy {
            TiePolicy::Index => greater + f64::from(self.before),
            TiePolicy::Optimistic => greater,
            TiePolicy::Pessimistic => greater + f64::from(self.equal),
            TiePolicy::Expected => greater + f64::from(self.equal) / (f64::from(self.own) + 1.0),
        }
    }

    /// Whether the query hits at `k`, as 0 or 1; under [`TiePolicy::Expected`] the probability of a hit.
    pub fn hit(&self, k: u32, policy: TiePolicy) -> f64 {
        if !self.is_query() {
            return 0.0;
        }
        if policy != TiePolicy::Expected {
            return f64::from(u8::from(self.rank(policy) < f64::from(k)));
        }
        let places = k.saturating_sub(self.greater); // places among the first k for the tied items
        if places > self.equal {
            return 1.0;
        }
        let (equal, tied) = (f64::from(self.equal), f64::from(self.equal) + f64::from(self.own));
        1.0 - (0..places).map(f64::from).map(|j| (equal - j) / (tied - j)).product::<f64>()
    }

    /// Whether a tie decides if the query hits at `k`: the best case hits, the worst does not.
    pub fn decided_at(&self, k: u32) -> bool {
        self.greater < k && k <= self.greater.saturating_add(self.equal)
    }
}

/// The [`Standing`] of every query in both directions: all metrics of one matrix are computed from it.
///
/// ```
/// use itm_core::eval::{Ranks, TiePolicy};
/// use itm_core::{Pairs, ScoreMatrix};
///
/// let scores = ScoreMatrix::from_rows([[0.5, 0.5, 0.1], [0.5, 0.2, 0.9]]);
/// let ranks = Ranks::new(&scores, &Pairs::new(2, vec![0, 1, 1])?)?;
/// assert_eq!(ranks.t2i()[0].rank(TiePolicy::Index), 0.0); // image 0 stands before image 1
/// assert_eq!(ranks.t2i()[0].rank(TiePolicy::Pessimistic), 1.0);
/// assert_eq!(ranks.i2t()[1].rank(TiePolicy::Pessimistic), 0.0); // through text 2
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranks {
    pairs: Pairs,
    i2t: Vec<Standing>,
    t2i: Vec<Standing>,
}

impl Ranks {
    /// Takes counts that were made elsewhere, tile by tile: `i2t[i]` is the standing of image `i` among the texts, and
    /// `t2i[t]` the standing of text `t` among the images.
    ///
    /// The score of the true item must come from the same kernel as the other scores. Otherwise rounding can rank a
    /// perfect match behind itself.
    ///
    /// # Errors
    /// If an image has no text, or nothing in [judged](Pairs::judged) pairs is true.
    ///
    /// # Panics
    /// If the lengths differ from `pairs`, or counts contradict each other.
    pub fn from_counts(pairs: Pairs, i2t: Vec<Standing>, t2i: Vec<Standing>) -> Result<Self> {
        let (got, want) = ((i2t.len(), t2i.len()), (pairs.images(), pairs.texts()));
        assert_eq!(got, want, "standings of {got:?} images and texts for pairs of {want:?}");
        refuse_lonely_images(&pairs)?;
        let consistent = |s: &Standing, own: usize, items: usize| {
            let counted = s.greater as usize + s.equal as usize + s.own as usize;
            let truths = own.min(1)..=own;
            truths.contains(&(s.own as usize)) && s.before <= s.equal && counted <= items
        };
        for (image, s) in i2t.iter().enumerate() {
            let own = pairs.texts_of(image).len();
            assert!(consistent(s, own, pairs.texts()), "image {image} with {own} texts: {s:?}");
        }
        for (text, s) in t2i.iter().enumerate() {
            let own = pairs.images_of(text).len();
            assert!(consistent(s, own, pairs.images()), "text {text} of {own} images: {s:?}");
        }
        let known = |s: Standing| if s.is_query() { s } else { Standing::NONE };
        let [i2t, t2i] = [i2t, t2i].map(|of| of.into_iter().map(known).collect());
        Ok(Self { pairs, i2t, t2i })
    }

    /// Which texts belong to which image.
    pub(crate) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// The standing of each image's best text.
    pub fn i2t(&self) -> &[Standing] {
        &self.i2t
    }

    /// The standing of each text's best image.
    pub fn t2i(&self) -> &[Standing] {
        &self.t2i
    }
}

/// Refuses scores of `n` × `m` that do not fit the pairs.
pub(crate) fn check_pairs((n, m): (usize, usize), pairs: &Pairs) -> Result<()> {
    let (images, texts) = (pairs.images(), pairs.texts());
    let expected = format!("{images} × {texts} scores, as the pairs");
    Error::unless((n, m) == (images, texts), "ranks", expected, format_args!("{n} × {m}"))
}

/// Judgements may leave images without a text, but not all of them.
fn refuse_lonely_images(pairs: &Pairs) -> Result<()> {
    let is_true = |image: usize| !pairs.texts_of(image).is_empty();
    if pairs.is_judged() {
        let some = (0..pairs.images()).any(is_true);
        return Error::unless(some, "judged pairs", "at least 1 true pair", 0);
    }
    match (0..pairs.images()).find(|&image| !is_true(image)) {
        Some(image) => Err(Error::invalid(format!("ranks, image {image}"), "at least 1 text", 0)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;

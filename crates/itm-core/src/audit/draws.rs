//! Drawn negatives against the truth.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::NegativeSet;
use crate::Relevance;

/// Drawn negatives against the truth; sums over anchors, so that steps add up.
///
/// ```
/// use itm_core::audit::Draws;
///
/// let mut sum = Draws { anchors: 4.0, drawn: 1.0, ..Draws::default() };
/// sum.add(&Draws { anchors: 4.0, drawn: 2.0, ..Draws::default() });
/// assert_eq!(sum.shares().unwrap().drawn, 0.375);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draws {
    /// Anchors, both directions.
    pub anchors: f64,
    /// Sum over anchors: the drawn negative is a true pair.
    pub drawn: f64,
    /// Sum over anchors: share of true pairs among the candidates.
    pub uniform: f64,
    /// Sum over anchors: the hardest candidate is a true pair.
    pub hardest: f64,
    /// Other ways to draw from the same candidates, by name: sums over the anchors of `others_anchors`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, f64>,
    /// Anchors for which the others are known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others_anchors: f64,
}

/// Shares instead of sums.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares {
    /// Share of drawn negatives that are true pairs.
    pub drawn: f64,
    /// The same share for a uniform draw from the candidates.
    pub uniform: f64,
    /// The same share for the hardest candidates.
    pub hardest: f64,
    /// The same share for other ways to draw, by name.
    pub others: BTreeMap<String, f64>,
}

impl Draws {
    /// The sums of a step, both directions.
    pub fn of(negatives: &[NegativeSet; 2], truth: &Relevance) -> Self {
        let mut sum = Self::default();
        negatives.iter().for_each(|side| sum.add(&side.draws(truth)));
        sum
    }

    /// Adds another step's sums.
    pub fn add(&mut self, other: &Self) {
        self.anchors += other.anchors;
        self.drawn += other.drawn;
        self.uniform += other.uniform;
        self.hardest += other.hardest;
        self.others_anchors += other.others_anchors;
        for (name, sum) in &other.others {
            *self.others.entry(name.clone()).or_default() += sum;
        }
    }

    /// Sums divided by the number of anchors; `None` without anchors.
    pub fn shares(&self) -> Option<Shares> {
        let Self { anchors, drawn, uniform, hardest, .. } = *self;
        let of_others = |(name, sum): (&String, &f64)| (name.clone(), sum / self.others_anchors);
        (anchors > 0.0).then(|| Shares {
            drawn: drawn / anchors,
            uniform: uniform / anchors,
            hardest: hardest / anchors,
            others: match self.others_anchors > 0.0 {
                true => self.others.iter().map(of_others).collect(),
                false => BTreeMap::new(),
            },
        })
    }
}

fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps without a posterior have no other way to draw: the share counts only the anchors of the other steps.
    #[test]
    fn others_are_shares_of_their_own_anchors() {
        let mut sum = Draws { anchors: 6.0, uniform: 3.0, ..Draws::default() };
        let others = BTreeMap::from([("paper".to_owned(), 1.0)]);
        let step = Draws { anchors: 2.0, others, others_anchors: 2.0, ..Draws::default() };
        sum.add(&step);
        sum.add(&step);
        let shares = sum.shares().unwrap();
        assert_eq!((shares.uniform, shares.others["paper"]), (0.3, 0.5)); // 3 of 10, 2 of 4
        assert_eq!(Draws::default().shares(), None);
    }

    /// A checkpoint of an earlier version has sums without `others`.
    #[test]
    fn sums_without_others_are_read() {
        let text = r#"{"anchors":4.0,"drawn":1.0,"uniform":0.5,"hardest":2.0}"#;
        let read: Draws = serde_json::from_str(text).unwrap();
        assert_eq!((read.anchors, read.others.len()), (4.0, 0));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}

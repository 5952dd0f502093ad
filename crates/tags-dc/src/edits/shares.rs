//! How often a model scores edited captions below the captions themselves: Table 4 of the paper, for any model.
//!
//! ```text
//! below = #{edits with s(image, edit) < s(image, caption)} / #{edits}          a tie counts against the model
//! ```
//!
//! The edits are VSE-C's: they replace a noun, a number or a relation. One edit is drawn per caption, its kind first.

use std::collections::{BTreeMap, BTreeSet};

use itm_core::data::SplitData;
use itm_core::significance::{Share, per_image};
use serde::{Deserialize, Serialize};

use super::{Captions, Edits, NounTable, Quota, Rules, negatives};
use crate::fluency::{Fluency, Trigrams};
use crate::phrases::{Sentence, parse};
use crate::record::Kind;

/// VSE-C's kinds.
const KINDS: [(Kind, &str); 3] =
    [(Kind::Noun, "noun"), (Kind::Numeral, "numeral"), (Kind::Relation, "relation")];
/// Seed of the draws.
const SEED: u64 = 0;

/// A caption of a split with one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptionEdit {
    /// Number of the caption.
    pub text: usize,
    /// The kind of the edit; `None` if the kind was drawn.
    pub kind: Option<&'static str>,
    /// The caption after the change.
    pub sentence: String,
}

impl CaptionEdit {
    /// For each caption, one edit of a drawn kind, and one edit of every kind. The training captions decide which noun may replace which.
    pub fn all(train: &SplitData, part: &SplitData) -> Vec<Self> {
        let parsed = |image| -> Vec<Sentence> {
            train.pairs.texts_of(image).iter().map(|&text| parse(&train.captions[text])).collect()
        };
        let training: Vec<_> = (0..train.pairs.images()).map(parsed).collect();
        let edits = Edits { nouns: NounTable::fit(&training), rules: Rules::VseC };
        let texts = |image| part.pairs.texts_of(image);
        let captions = |image: usize| Captions {
            id: image.to_string(),
            texts: texts(image).iter().map(|&text| part.captions[text].clone()).collect(),
        };
        let images: Vec<_> = (0..part.pairs.images()).map(captions).collect();
        let mut all = vec![];
        let mut of = |kinds: Vec<Kind>, kind: Option<&'static str>| {
            let wanted = Quota { seed: SEED, per_caption: 1, kinds };
            for record in negatives(&images, &edits, &wanted).0 {
                let (image, number) = record.caption.split_once('#').expect("as ids are made");
                let [image, number] = [image, number].map(|n| n.parse().expect("a number"));
                all.push(Self { text: texts(image)[number], kind, sentence: record.text });
            }
        };
        of(KINDS.map(|(kind, _)| kind).to_vec(), None);
        for (kind, name) in KINDS {
            of(vec![kind], Some(name));
        }
        all
    }
}

/// How a model scores the edits of a split.
#[derive(Debug, Clone, PartialEq)]
pub struct EditCounts {
    /// The number of images.
    images: usize,
    /// Image and kind of each edit, and whether it scores below its caption. Edits without a kind are drawn.
    below: Vec<(usize, Option<&'static str>, bool)>,
    /// Drawn edits with the score of their caption.
    ties: u64,
    /// Captions that no rule changes.
    without: u64,
    /// Fluency of the captions, and of the drawn edits.
    fluency: [Option<Fluency>; 2],
}

impl EditCounts {
    /// Counts the edits of a split. `scores` are first of its captions, then of the edits, each with the image of the caption.
    ///
    /// # Panics
    /// If there is not a score for each, or one is NaN.
    pub fn new(train: &SplitData, part: &SplitData, edits: &[CaptionEdit], scores: &[f32]) -> Self {
        assert!(scores.iter().all(|score| !score.is_nan()), "a score of NaN");
        let (own, changed) = scores.split_at(part.pairs.texts());
        assert_eq!(changed.len(), edits.len(), "scores of the edits");
        let scored = || edits.iter().zip(changed);
        let below = |(edit, &score): (&CaptionEdit, &f32)| {
            (part.pairs.image_of(edit.text), edit.kind, score < own[edit.text])
        };
        let drawn = || scored().filter(|(edit, _)| edit.kind.is_none());
        let texts: BTreeSet<usize> = drawn().map(|(edit, _)| edit.text).collect();
        let reader = Trigrams::fit(train.captions.iter().map(String::as_str));
        let captions = part.captions.iter().map(String::as_str);
        let sentences = drawn().map(|(edit, _)| &edit.sentence[..]);
        Self {
            images: part.pairs.images(),
            below: scored().map(below).collect(),
            ties: drawn().filter(|&(edit, &score)| score == own[edit.text]).count() as u64,
            without: (own.len() - texts.len()) as u64,
            fluency: [Fluency::of(&reader, captions), Fluency::of(&reader, sentences)],
        }
    }

    /// What [`Share`] takes of the drawn edits, or of the edits of a kind.
    fn of(&self, kind: Option<&str>) -> Vec<[u64; 2]> {
        let edits = self.below.iter().filter(|edit| edit.1 == kind);
        per_image(self.images, edits.map(|&(image, _, below)| (image, below)))
    }
}

/// The shares of some runs of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditShares {
    /// Share that scores below its caption with the same image; the kind of the change is drawn for each caption.
    pub below: Share,
    /// The same share for one change of each kind.
    pub by_kind: BTreeMap<String, Share>,
    /// Changed captions with the same score as their caption, summed over runs. They do not count as below.
    pub ties: u64,
    /// Captions that no rule changes.
    pub without: u64,
    /// Fluency of the captions under a trigram model of the training captions.
    pub fluency_of_captions: Option<Fluency>,
    /// Fluency of the changed captions.
    pub fluency: Option<Fluency>,
}

impl EditShares {
    /// The shares over all runs; `None` if nothing was counted.
    pub fn over(runs: &[&EditCounts]) -> Option<Self> {
        let first = runs.first()?;
        let share = |kind: Option<&str>| {
            Share::over(&runs.iter().map(|run| run.of(kind)).collect::<Vec<_>>())
        };
        let kinds: BTreeSet<&str> = first.below.iter().filter_map(|edit| edit.1).collect();
        let of_kind = |kind: &str| Some((kind.to_owned(), share(Some(kind))?));
        Some(Self {
            below: share(None)?,
            by_kind: kinds.into_iter().filter_map(of_kind).collect(),
            ties: runs.iter().map(|run| run.ties).sum(),
            without: first.without,
            fluency_of_captions: first.fluency[0],
            fluency: first.fluency[1],
        })
    }
}

#[cfg(test)]
mod tests {
    use itm_core::Pairs;

    use super::*;

    #[test]
    #[should_panic(expected = "a score of NaN")]
    fn a_score_is_a_number() {
        let part = SplitData {
            images: vec!["i".into()],
            captions: vec!["a dog".into()],
            pairs: Pairs::new(1, vec![0]).unwrap(),
            ..SplitData::default()
        };
        EditCounts::new(&part, &part, &[], &[f32::NAN]);
    }

    /// By hand, two runs of two images: 3 of 4 and 1 of 2 drawn edits below; nouns 1 of 1 and 0 of 1.
    #[test]
    fn golden_shares_of_two_runs() {
        let of = |below: &[(usize, Option<&'static str>, bool)], ties| EditCounts {
            images: 2,
            below: below.to_vec(),
            ties,
            without: 3,
            fluency: [None; 2],
        };
        let noun = Some("noun");
        let drawn = [(0, None, true), (0, None, true), (1, None, true), (1, None, false)];
        let first = of(&[&drawn[..], &[(0, noun, true)]].concat(), 1);
        let second = of(&[(0, None, true), (0, None, false), (0, noun, false)], 0);
        let got = EditShares::over(&[&first, &second]).unwrap();
        assert_eq!((got.below.value, got.below.of), (4.0 / 6.0, 6));
        assert_eq!((got.by_kind["noun"].value, got.by_kind["noun"].of), (0.5, 2));
        assert_eq!((got.ties, got.without), (1, 3));
        assert_eq!(EditShares::over(&[]), None);
    }
}

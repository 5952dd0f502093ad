//! Sentences that a model makes from captions, against the truth: whether they are false of their images, and whether the word heads see
//! and correct the changed words.
//!
//! ```text
//! truly false = #{sentences with a meaning that the image denies} / #{sentences with a meaning}
//! of all      = #{sentences that are false, true, or without a meaning} / #{sentences}
//! seen        = #{changed words that are said not to match} / #{changed words}       of truly false sentences
//! corrected   = #{changed words whose correction is the old word} / #{changed words}  of the same
//! ```
//!
//! # Departures
//! The paper let people judge 200 sentences of each data set, also broken ones, and prints accuracies over all tokens. A broken sentence is not
//! true, so a share of sentences that are not true ([`Verdicts`]) grows with the broken ones.

use std::collections::BTreeMap;

use itm_core::significance::Share;
use serde::{Deserialize, Serialize};

use super::{SentenceText, WordText};
use crate::fluency::Fluency;

/// Counts per image, for one model: things that count, and all things.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SentenceCounts {
    /// False and true sentences, and sentences without a meaning.
    verdicts: Vec<[u64; 3]>,
    /// The same, by the kind of the only changed word.
    by_kind: BTreeMap<&'static str, Vec<[u64; 3]>>,
    /// The number of captions.
    pub captions: u64,
    /// Changed words of truly false sentences that the head calls mismatched.
    seen: Vec<[u64; 2]>,
    /// Other words of truly false sentences that the head calls matched.
    kept: Vec<[u64; 2]>,
    corrected: Vec<[u64; 2]>,
    /// Sentences that score below their captions.
    below: Vec<[u64; 2]>,
    /// Fluency of the sentences.
    pub fluency: Option<Fluency>,
    /// Fluency of the sentences after the model corrected them.
    pub fluency_of_corrected: Option<Fluency>,
}

impl SentenceCounts {
    /// Nothing counted yet.
    pub fn new(images: usize) -> Self {
        let [seen, kept, corrected, below] = std::array::from_fn(|_| vec![[0; 2]; images]);
        Self { seen, kept, corrected, below, verdicts: vec![[0; 3]; images], ..Self::default() }
    }

    /// Counts a sentence. `denied` is whether the image denies it, `None` if it has no meaning. `kind` is the kind of
    /// the only changed word.
    pub fn add(
        &mut self,
        image: usize,
        sentence: &SentenceText,
        denied: Option<bool>,
        kind: Option<&'static str>,
    ) {
        count(&mut self.below[image], sentence.below);
        let verdict = denied.map_or(2, |denied| usize::from(!denied)); // false, true, no meaning
        let images = self.verdicts.len();
        self.verdicts[image][verdict] += 1;
        if let Some(kind) = kind {
            let of_kind = self.by_kind.entry(kind).or_insert_with(|| vec![[0; 3]; images]);
            of_kind[image][verdict] += 1;
        }
        if denied == Some(true) {
            sentence.words().for_each(|word| self.add_word(image, word));
        }
    }

    fn add_word(&mut self, image: usize, word: &WordText) {
        let Some(probability) = word.matches else { return }; // no word heads
        let matches = probability > 0.5;
        if word.changed {
            count(&mut self.seen[image], !matches);
            count(&mut self.corrected[image], word.restored);
        } else {
            count(&mut self.kept[image], matches);
        }
    }
}

fn count(counts: &mut [u64; 2], hit: bool) {
    counts[0] += u64::from(hit);
    counts[1] += 1;
}

impl SentenceText {
    /// The words without punctuation marks.
    fn words(&self) -> impl Iterator<Item = &WordText> {
        self.words.iter().filter(|word| word.at.is_some())
    }

    /// The number of the only changed word; `None` if several words are changed.
    pub fn changed(&self) -> Option<usize> {
        let mut changed = self.words().filter(|word| word.changed);
        changed.next().filter(|_| changed.next().is_none())?.at
    }
}

/// The shares of some runs of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SentenceShares {
    /// Share of the synthetic sentences with a meaning that are false of their images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic_truly_false: Option<Share>,
    /// Share of the changed words of these false sentences that the model calls mismatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wod_accuracy: Option<Share>,
    /// Share of the same words for which the model proposes the caption's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woc_accuracy: Option<Share>,
    /// Further shares of these sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<FurtherShares>,
}

/// The share of each verdict over all sentences, as the paper's annotators judged them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdicts {
    /// False of their images.
    pub truly_false: Share,
    /// True of their images.
    pub truly_true: Share,
    /// Without a meaning.
    pub no_sentence: Share,
}

impl Verdicts {
    fn over(runs: &[&Vec<[u64; 3]>]) -> Option<Self> {
        let share = |verdict: usize| among(runs, |n| [n[verdict], n.iter().sum()]);
        Some(Self { truly_false: share(0)?, truly_true: share(1)?, no_sentence: share(2)? })
    }
}

/// The share over all runs of what `of` counts of an image's verdicts.
fn among(runs: &[&Vec<[u64; 3]>], of: impl Fn(&[u64; 3]) -> [u64; 2]) -> Option<Share> {
    let runs: Vec<Vec<_>> = runs.iter().map(|run| run.iter().map(&of).collect()).collect();
    Share::over(&runs)
}

/// Truly false sentences, and all sentences with a meaning.
fn denied(verdicts: &[u64; 3]) -> [u64; 2] {
    [verdicts[0], verdicts[0] + verdicts[1]]
}

/// Further shares of the sentences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FurtherShares {
    /// Share that have no meaning: nobody can say whether they are false.
    pub unparsed: Share,
    /// The three shares over all sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_all: Option<Verdicts>,
    /// The same over the sentences with one changed word, by the kind of that word.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub of_all_by_kind: BTreeMap<String, Verdicts>,
    /// How many sentences with a meaning that are false a caption has, mean over captions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub false_per_caption: Option<f64>,
    /// Share of truly false sentences among the sentences with one changed word, by the kind of that word.
    pub by_kind: BTreeMap<String, Share>,
    /// Share of the unchanged words of false sentences that the model calls matched.
    pub kept_words_match: Option<Share>,
    /// Share that the model scores below their captions.
    pub scored_below: Option<Share>,
    /// Fluency of the sentences under a trigram model of the training captions, mean over runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fluency: Option<Fluency>,
    /// The same after the model put other words in place of those that do not match the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fluency_of_corrected: Option<Fluency>,
}

impl SentenceShares {
    /// The shares over all runs.
    pub fn over(runs: &[&SentenceCounts]) -> Self {
        let share = |of: fn(&SentenceCounts) -> &Vec<[u64; 2]>| {
            Share::over(&runs.iter().map(|run| of(run).clone()).collect::<Vec<_>>())
        };
        let all: Vec<_> = runs.iter().map(|run| &run.verdicts).collect();
        let of_kind = |kind: &str| -> Vec<&Vec<[u64; 3]>> {
            runs.iter().filter_map(|run| run.by_kind.get(kind)).collect()
        };
        let kinds = || runs.iter().take(1).flat_map(|run| run.by_kind.keys().copied());
        // A kind is listed if the first run has a sentence of it with a meaning. Its share is over the runs that have such a sentence.
        let has_meaning = |run: &&Vec<[u64; 3]>| run.iter().any(|verdicts| denied(verdicts)[1] > 0);
        let denied_of_kind = |kind: &str| {
            let runs: Vec<_> = of_kind(kind).into_iter().filter(has_meaning).collect();
            Some((kind.to_owned(), among(&runs, denied)?))
        };
        let captions: u64 = runs.iter().map(|run| run.captions).sum();
        let false_ones: u64 = runs.iter().flat_map(|run| &run.verdicts).map(|v| v[0]).sum();
        let verdicts = |kind: &str| Some((kind.to_owned(), Verdicts::over(&of_kind(kind))?));
        let further = |of_all: Verdicts| FurtherShares {
            unparsed: of_all.no_sentence,
            of_all: Some(of_all),
            of_all_by_kind: kinds().filter_map(verdicts).collect(),
            false_per_caption: (captions > 0).then(|| false_ones as f64 / captions as f64),
            by_kind: kinds()
                .filter(|kind| has_meaning(&&runs[0].by_kind[kind]))
                .filter_map(denied_of_kind)
                .collect(),
            kept_words_match: share(|run| &run.kept),
            scored_below: share(|run| &run.below),
            fluency: Fluency::mean(runs.iter().filter_map(|run| run.fluency)),
            fluency_of_corrected: Fluency::mean(
                runs.iter().filter_map(|run| run.fluency_of_corrected),
            ),
        };
        Self {
            synthetic_truly_false: among(&all, denied),
            wod_accuracy: share(|run| &run.seen),
            woc_accuracy: share(|run| &run.corrected),
            synthetic: Verdicts::over(&all).map(further),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of three sentences one has no meaning, one is true and one is false. The changed word of the false
    /// sentence is seen but not corrected.
    #[test]
    fn golden_counts_of_an_image() {
        let word = |at, changed, (matches, restored)| {
            let (text, correction) = (String::new(), None);
            WordText { text, at, changed, matches: Some(matches), restored, correction }
        };
        let sentence = |words, below| SentenceText {
            text: String::new(),
            score: 0.5,
            below,
            words,
            corrected: None,
        };
        let mut all = SentenceCounts { captions: 2, ..SentenceCounts::new(2) };
        let three = || {
            vec![
                word(Some(0), false, (0.9, true)),
                word(Some(1), true, (0.5, false)),
                word(Some(2), false, (0.1, true)),
                word(None, false, (0.9, true)), // a full stop is not a word
            ]
        };
        assert_eq!(sentence(three(), true).changed(), Some(1));
        all.add(1, &sentence(three(), true), None, Some("colour"));
        all.add(1, &sentence(three(), false), Some(false), Some("colour"));
        all.add(1, &sentence(three(), true), Some(true), Some("kind"));
        let shares = SentenceShares::over(&[&all, &SentenceCounts::new(2)]);
        let value = |share: Option<Share>| share.map(|share| (share.value, share.of));
        assert_eq!(value(shares.synthetic_truly_false), Some((0.5, 2)));
        assert_eq!(value(shares.wod_accuracy), Some((1.0, 1)));
        assert_eq!(value(shares.woc_accuracy), Some((0.0, 1)));
        let synthetic = shares.synthetic.unwrap();
        assert_eq!(value(Some(synthetic.unparsed)), Some((1.0 / 3.0, 3)));
        assert_eq!(value(synthetic.kept_words_match), Some((0.5, 2)));
        assert_eq!(value(synthetic.scored_below), Some((2.0 / 3.0, 3)));
        let three = |verdicts: &Verdicts| {
            [&verdicts.truly_false, &verdicts.truly_true, &verdicts.no_sentence]
                .map(|s| (s.value, s.of))
        };
        let third = (1.0 / 3.0, 3);
        assert_eq!(three(synthetic.of_all.as_ref().unwrap()), [third; 3]);
        assert_eq!(three(&synthetic.of_all_by_kind["colour"]), [(0.0, 2), (0.5, 2), (0.5, 2)]);
        assert_eq!(three(&synthetic.of_all_by_kind["kind"]), [(1.0, 1), (0.0, 1), (0.0, 1)]);
        assert_eq!(synthetic.false_per_caption, Some(0.5), "one of two captions has one");
        let of = |kind: &str| value(synthetic.by_kind.get(kind).copied());
        assert_eq!((of("colour"), of("kind"), of("size")), (Some((0.0, 1)), Some((1.0, 1)), None));
    }
}

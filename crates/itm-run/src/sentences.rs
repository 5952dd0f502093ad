//! Sentences that a model makes from the test captions, against the truth: whether they are false of their images, and
//! whether the model's word heads see and correct the changed words.
//!
//! ```text
//! truly false = #{sentences with a meaning that the image denies} / #{sentences with a meaning}
//! seen        = #{changed words that are said not to match} / #{changed words}       of truly false sentences
//! corrected   = #{changed words whose correction is the old word} / #{changed words}  of the same
//! ```
//!
//! # Departures
//! The paper let people judge 200 sentences of each data set, and prints accuracies over all tokens.

use std::collections::BTreeMap;

use itm_core::Result;
use itm_core::significance::Share;

use crate::bench::Model;
use crate::mean::mean;
use crate::methods::{self, Caption, Reader, Sentence};
use crate::report::{Fluency, JudgedText, SyntheticSentences, Truth};
use crate::source::Source;
use crate::split::Split;

/// Counts of each test image, of one trained row and seed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct OfImages {
    /// Truly false sentences among the sentences with a meaning.
    false_: Vec<[u64; 2]>,
    /// The same, by the kind of the only changed word.
    by_kind: BTreeMap<&'static str, Vec<[u64; 2]>>,
    /// Sentences without a meaning among all sentences.
    unparsed: Vec<[u64; 2]>,
    /// Changed words of truly false sentences that the head calls mismatched.
    seen: Vec<[u64; 2]>,
    /// Other words of truly false sentences that the head calls matched.
    kept: Vec<[u64; 2]>,
    corrected: Vec<[u64; 2]>,
    /// Sentences that score below their captions.
    below: Vec<[u64; 2]>,
    /// Fluency of the sentences.
    fluency: Option<Fluency>,
}

/// The words of a sentence without punctuation marks.
fn words(sentence: &Sentence) -> impl Iterator<Item = &JudgedText> {
    sentence.judged.words.iter().filter(|word| word.at.is_some())
}

fn count(counts: &mut [u64; 2], hit: bool) {
    counts[0] += u64::from(hit);
    counts[1] += 1;
}

impl OfImages {
    fn new(images: usize) -> Self {
        let none = || vec![[0; 2]; images];
        Self {
            false_: none(),
            by_kind: BTreeMap::new(),
            unparsed: none(),
            seen: none(),
            kept: none(),
            corrected: none(),
            below: none(),
            fluency: None,
        }
    }

    /// Counts a sentence. `denied` is whether the image denies it, `None` if it has no meaning. `kind` is the kind of
    /// the only changed word.
    fn add(
        &mut self,
        image: usize,
        sentence: &Sentence,
        denied: Option<bool>,
        kind: Option<&'static str>,
    ) {
        count(&mut self.below[image], sentence.below);
        count(&mut self.unparsed[image], denied.is_none());
        let Some(denied) = denied else { return };
        count(&mut self.false_[image], denied);
        if let Some(kind) = kind {
            let images = self.false_.len();
            let of_kind = self.by_kind.entry(kind).or_insert_with(|| vec![[0; 2]; images]);
            count(&mut of_kind[image], denied);
        }
        if denied {
            for word in words(sentence) {
                let Some(matches) = word.matches.map(|probability| probability > 0.5) else {
                    continue; // no word heads
                };
                if word.changed {
                    count(&mut self.seen[image], !matches);
                    count(&mut self.corrected[image], word.restored);
                } else {
                    count(&mut self.kept[image], matches);
                }
            }
        }
    }
}

/// Judges the sentences that a trained model makes from the test captions; `None` if it makes none, or without a truth.
///
/// # Errors
/// If an item cannot be read.
pub(crate) fn measure(source: &Source, model: &Model) -> Result<Option<OfImages>> {
    let (part, Some(_)) = source.part(Split::Test) else { return Ok(None) };
    let (mut all, reading) = (OfImages::new(part.pairs.images()), model.reading()?);
    let spelled = reading.spelled_by_number();
    let mut texts = vec![];
    for (text, caption) in part.captions.iter().enumerate() {
        let of = Caption {
            items: model.inputs.items(Split::Test),
            text,
            caption,
            words: spelled.as_deref(),
            spell: &|text| reading.words(text),
        };
        let Some(sentences) = methods::sentences(&*model.method, of)? else { return Ok(None) };
        let image = part.pairs.image_of(text);
        for sentence in sentences {
            let denied = source.denies(Split::Test, image, &sentence.text);
            let changed = words(&sentence).filter(|word| word.changed);
            let kind = match changed.filter_map(|word| word.at).collect::<Vec<_>>()[..] {
                [at] => source.says(caption, at),
                _ => None,
            };
            all.add(image, &sentence, denied, kind);
            texts.push(sentence.text);
        }
    }
    let reader = Reader::of(&source.dataset.train);
    all.fluency = reader.fluency(texts.iter().map(String::as_str));
    Ok(Some(all))
}

/// Adds the shares over all seeds of a row.
pub(crate) fn summarise(runs: &[&OfImages], truth: &mut Truth) {
    let Some(first) = runs.first() else { return };
    let over = |of: &dyn Fn(&OfImages) -> Option<&Vec<[u64; 2]>>| {
        let runs: Vec<&[[u64; 2]]> = runs.iter().filter_map(|run| Some(&of(run)?[..])).collect();
        Share::over(&runs)
    };
    truth.synthetic_truly_false = over(&|run| Some(&run.false_));
    truth.wod_accuracy = over(&|run| Some(&run.seen));
    truth.woc_accuracy = over(&|run| Some(&run.corrected));
    let Some(unparsed) = over(&|run| Some(&run.unparsed)) else { return };
    let kinds = first
        .by_kind
        .keys()
        .filter_map(|&kind| Some((kind.to_owned(), over(&|run| run.by_kind.get(kind))?)));
    truth.synthetic = Some(SyntheticSentences {
        unparsed,
        by_kind: kinds.collect(),
        kept_words_match: over(&|run| Some(&run.kept)),
        scored_below: over(&|run| Some(&run.below)),
        fluency: fluency(runs),
    });
}

/// The mean over the seeds.
fn fluency(runs: &[&OfImages]) -> Option<Fluency> {
    let all: Vec<Fluency> = runs.iter().filter_map(|run| run.fluency).collect();
    let mean = |of: fn(&Fluency) -> f64| mean(all.iter().map(of));
    Some(Fluency {
        mean_perplexity: mean(|f| f.mean_perplexity)?,
        of_mean_sentence: mean(|f| f.of_mean_sentence)?,
        of_mean_word: mean(|f| f.of_mean_word)?,
        sentences: all.iter().map(|f| f.sentences).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::JudgedCaption;

    /// By hand: of three sentences one has no meaning, one is true and one is false. The changed word of the false
    /// sentence is seen but not corrected.
    #[test]
    fn golden_counts_of_an_image() {
        let word = |at, changed, (matches, restored)| {
            let (text, correction) = (String::new(), None);
            JudgedText { text, at, changed, matches: Some(matches), restored, correction }
        };
        let sentence = |words, below| {
            let judged = JudgedCaption { score: 0.5, words, denied: None };
            Sentence { text: String::new(), below, judged }
        };
        let mut all = OfImages::new(2);
        let three = || {
            vec![
                word(Some(0), false, (0.9, true)),
                word(Some(1), true, (0.5, false)),
                word(Some(2), false, (0.1, true)),
                word(None, false, (0.9, true)), // a full stop is not a word
            ]
        };
        all.add(1, &sentence(three(), true), None, Some("colour"));
        all.add(1, &sentence(three(), false), Some(false), Some("colour"));
        all.add(1, &sentence(three(), true), Some(true), Some("kind"));
        let mut truth = Truth::default();
        summarise(&[&all, &OfImages::new(2)], &mut truth);
        let value = |share: Option<Share>| share.map(|share| (share.value, share.of));
        assert_eq!(value(truth.synthetic_truly_false), Some((0.5, 2)));
        assert_eq!(value(truth.wod_accuracy), Some((1.0, 1)));
        assert_eq!(value(truth.woc_accuracy), Some((0.0, 1)));
        let synthetic = truth.synthetic.unwrap();
        assert_eq!(value(Some(synthetic.unparsed)), Some((1.0 / 3.0, 3)));
        assert_eq!(value(synthetic.kept_words_match), Some((0.5, 2)));
        assert_eq!(value(synthetic.scored_below), Some((2.0 / 3.0, 3)));
        let of = |kind: &str| value(synthetic.by_kind.get(kind).copied());
        assert_eq!((of("colour"), of("kind"), of("size")), (Some((0.0, 1)), Some((1.0, 1)), None));
    }
}

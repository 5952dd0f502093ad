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
use itm_report::format::{interval, points, share};
use itm_report::table::Table;
use serde::{Deserialize, Serialize};

use super::edits::{Fluency, Reader};
use super::sentences::{Caption, Sentence, sentences};
use crate::mean::mean;
use crate::measures::{BySeed, Measure, Trial};
use crate::model::Model;
use crate::report::{JudgedText, Place, Report, Section, of_rows};
use crate::source::Source;
use crate::split::Split;

/// The synthetic sentences of each row, on data with a truth.
#[derive(Debug, Default)]
pub(super) struct SyntheticSentences(BySeed<OfImages>);

impl Measure for SyntheticSentences {
    fn look(&self, trial: &Trial) -> Result<()> {
        let Some(trained) = trial.trained else { return Ok(()) };
        if let Some(counts) = measure(trial.source, trained.model)? {
            self.0.put(trial, counts);
        }
        Ok(())
    }

    fn section(&self, report: &Report) -> Result<Section> {
        let rows = self.0.rows(report, |seeds| Some(summarise(seeds)));
        let mut section = Section::new("Synthetic sentences");
        section.add_rows(report, Place::Truth, &rows)?;
        section.tables.extend(table(report, &rows));
        section.tables.extend(by_kind(report, &rows));
        Ok(section)
    }
}

/// The numbers of a row in `report.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sentences {
    /// Share of the synthetic sentences with a meaning that are false of their images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    synthetic_truly_false: Option<Share>,
    /// Share of the changed words of these false sentences that the model calls mismatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wod_accuracy: Option<Share>,
    /// Share of the same words for which the model proposes the caption's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    woc_accuracy: Option<Share>,
    /// Further measures of these sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    synthetic: Option<Further>,
}

/// Further measures of the sentences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Further {
    /// Share that are not sentences of the built-in world: nobody can say whether they are false.
    unparsed: Share,
    /// Share of truly false sentences among the sentences with one changed word, by the kind of that word.
    by_kind: BTreeMap<String, Share>,
    /// Share of the unchanged words of false sentences that the model calls matched.
    kept_words_match: Option<Share>,
    /// Share that the model scores below their captions.
    scored_below: Option<Share>,
    /// Fluency of the sentences under a trigram model of the training captions, mean over seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fluency: Option<Fluency>,
}

/// Counts of each test image, of one trained row and seed.
#[derive(Debug, Clone, Default, PartialEq)]
struct OfImages {
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
fn measure(source: &Source, model: &Model) -> Result<Option<OfImages>> {
    let (part, Some(_)) = source.part(Split::Test) else { return Ok(None) };
    let (mut all, reading) = (OfImages::new(part.pairs.images()), model.reading);
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
        let Some(made) = sentences(&*model.method, of)? else { return Ok(None) };
        let image = part.pairs.image_of(text);
        for sentence in made {
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

/// The shares over all seeds of a row.
fn summarise(runs: &[&OfImages]) -> Sentences {
    let over = |of: &dyn Fn(&OfImages) -> Option<&Vec<[u64; 2]>>| {
        let runs: Vec<&[[u64; 2]]> = runs.iter().filter_map(|run| Some(&of(run)?[..])).collect();
        Share::over(&runs)
    };
    let kinds = runs[0]
        .by_kind
        .keys()
        .filter_map(|&kind| Some((kind.to_owned(), over(&|run| run.by_kind.get(kind))?)));
    let further = |unparsed| Further {
        unparsed,
        by_kind: kinds.collect(),
        kept_words_match: over(&|run| Some(&run.kept)),
        scored_below: over(&|run| Some(&run.below)),
        fluency: fluency(runs),
    };
    Sentences {
        synthetic_truly_false: over(&|run| Some(&run.false_)),
        wod_accuracy: over(&|run| Some(&run.seen)),
        woc_accuracy: over(&|run| Some(&run.corrected)),
        synthetic: over(&|run| Some(&run.unparsed)).map(further),
    }
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

/// Truly false sentences and judged words of every row; `None` where no row makes sentences.
fn table(report: &Report, rows: &[Option<Sentences>]) -> Option<Table> {
    let found = || rows.iter().map(Option::as_ref);
    found().find_map(|truth| truth?.synthetic.as_ref())?;
    let mut t = of_rows(report, "Synthetic sentences").noted(
        "Negatives that each row makes from the test captions, without noise. Truly false: share that the image denies, among sentences \
         of the world. Below caption: share that scores below the caption. Seen: share of the changed words of false sentences that the \
         model calls mismatched; kept: share of the other words that it calls matched. Corrected: share of the changed words for which \
         it proposes the caption's word. Perplexity: mean over sentences, by a trigram model of the training captions. Interval: bootstrap \
         over images and seeds.",
    );
    type Of = fn(&Sentences) -> Option<&Share>;
    let columns: [(&str, Of, bool); 6] = [
        ("truly false", |t| t.synthetic_truly_false.as_ref(), true),
        ("no sentence", |t| Some(&t.synthetic.as_ref()?.unparsed), false),
        ("below caption", |t| t.synthetic.as_ref()?.scored_below.as_ref(), false),
        ("seen", |t| t.wod_accuracy.as_ref(), true),
        ("kept", |t| t.synthetic.as_ref()?.kept_words_match.as_ref(), false),
        ("corrected", |t| t.woc_accuracy.as_ref(), true),
    ];
    let percent = |ends: [f64; 2]| format!("{} %", interval(ends.map(|end| 100.0 * end)));
    for (head, of, with_interval) in columns {
        let each = || found().map(|truth| of(truth?));
        if each().flatten().next().is_none() {
            continue;
        }
        t.numbers(head, each().map(|s| Some(s?.value)), share);
        if with_interval {
            t.numbers("95 % interval", each().map(|s| Some(s?.ci95)), percent);
        }
    }
    let read = || found().map(|truth| truth?.synthetic.as_ref()?.fluency);
    if read().flatten().next().is_some() {
        t.numbers("perplexity", read().map(|f| Some(f?.mean_perplexity)), points);
    }
    Some(t)
}

/// Truly false sentences, by the kind of their one changed word.
fn by_kind(report: &Report, rows: &[Option<Sentences>]) -> Option<Table> {
    let found = || rows.iter().map(|row| Some(&row.as_ref()?.synthetic.as_ref()?.by_kind));
    let mut kinds: Vec<&String> = found().flatten().flat_map(|by_kind| by_kind.keys()).collect();
    kinds.sort();
    kinds.dedup();
    kinds.first()?;
    let mut t = of_rows(
        report,
        "Synthetic sentences that are truly false, by the word that changed",
    )
    .noted("Only sentences of the world with one changed word; their number is in parentheses.");
    for kind in kinds {
        let each = found().map(|by_kind| by_kind?.get(kind));
        let text = |s: &Share| format!("{} ({})", share(s.value), s.of);
        t.numbers(kind, each, text);
    }
    Some(t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::JudgedCaption;
    use crate::report::tests::sample;
    use crate::testing::texts;

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
        let truth = summarise(&[&all, &OfImages::new(2)]);
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

    #[test]
    fn rows_that_make_sentences_tell_of_them() {
        let report = sample::report(24.3, -5.5, &[1]);
        let mut rows = vec![None; report.rows.len()];
        assert!(table(&report, &rows).is_none() && by_kind(&report, &rows).is_none());
        let share = |value: f64| Share { value, ci95: [value - 0.02, value + 0.01], of: 400 };
        rows[2] = Some(Sentences {
            synthetic_truly_false: Some(share(0.965)),
            wod_accuracy: Some(share(0.75)),
            woc_accuracy: None,
            synthetic: Some(Further {
                unparsed: share(0.25),
                by_kind: BTreeMap::from([("colour".to_owned(), share(0.5))]),
                kept_words_match: None,
                scored_below: Some(share(0.875)),
                fluency: None,
            }),
        });
        let want = ["96.5 %", "94.5 to 97.5 %", "25.0 %", "87.5 %", "75.0 %", "73.0 to 76.0 %"];
        assert_eq!(texts(&table(&report, &rows).unwrap(), "Full"), want);
        assert_eq!(texts(&by_kind(&report, &rows).unwrap(), "Full"), ["50.0 % (400)"]);
    }
}

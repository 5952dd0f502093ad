//! Sentences that a model makes from the test captions, against the truth.

use itm_core::Result;
use itm_core::significance::Share;
use itm_report::format::{interval, points, share};
use itm_report::table::Table;
use tags_dc::fluency::{Fluency, Trigrams};
use tags_dc::train::{SentenceCounts, SentenceShares, Verdicts};

use super::{caption, filler};
use crate::measures::{BySeed, Measure, Trial};
use crate::model::Model;
use crate::report::{Place, Report, Section, of_rows};
use crate::source::Source;
use crate::split::Split;

/// The synthetic sentences of each row, on data with a truth.
#[derive(Debug, Default)]
pub(super) struct SyntheticSentences(BySeed<SentenceCounts>);

impl Measure for SyntheticSentences {
    fn look(&self, trial: &Trial) -> Result<()> {
        let Some(trained) = trial.trained else { return Ok(()) };
        if let Some(counts) = measure(trial.source, trained.model)? {
            self.0.put(trial, counts);
        }
        Ok(())
    }

    fn section(&self, report: &Report) -> Result<Section> {
        let rows = self.0.rows(report, |seeds| Some(SentenceShares::over(seeds)));
        let mut section = Section::new("Synthetic sentences");
        section.add_rows(report, Place::Truth, &rows)?;
        section.tables.extend(table(report, &rows));
        section.tables.extend(by_kind(report, &rows));
        section.tables.extend(of_all(report, &rows));
        Ok(section)
    }
}

/// Judges the sentences that a trained model makes from the test captions; `None` if it makes none, or without a truth.
///
/// # Errors
/// If an item cannot be read.
fn measure(source: &Source, model: &Model) -> Result<Option<SentenceCounts>> {
    let (part, Some(_)) = source.part(Split::Test) else { return Ok(None) };
    let (Some(method), Some(words)) = (filler(&*model.method), model.reading.spelled_by_number())
    else {
        return Ok(None);
    };
    let (mut all, mut texts) = (SentenceCounts::new(part.pairs.images()), vec![]);
    let spell = |text: &str| model.reading.words(text);
    for (text, written) in part.captions.iter().enumerate() {
        let of = caption(model, (Split::Test, text), &words, &spell);
        let Some(made) = method.sentences(&of)? else { return Ok(None) };
        let image = part.pairs.image_of(text);
        all.captions += 1;
        for sentence in made {
            let denied = source.denies(Split::Test, image, &sentence.text);
            let kind = sentence.changed().and_then(|at| source.says(written, at));
            all.add(image, &sentence, denied, kind);
            texts.push(sentence.text);
        }
    }
    let reader = Trigrams::fit(source.dataset.train.captions.iter().map(String::as_str));
    all.fluency = Fluency::of(&reader, texts.iter().map(String::as_str));
    Ok(Some(all))
}

/// Truly false sentences and judged words of every row; `None` where no row makes sentences.
fn table(report: &Report, rows: &[Option<SentenceShares>]) -> Option<Table> {
    let found = || rows.iter().map(Option::as_ref);
    found().find_map(|truth| truth?.synthetic.as_ref())?;
    let mut t = of_rows(report, "Synthetic sentences").noted(
        "Negatives that each row makes from the test captions, without noise. Truly false: share that the image denies, among sentences \
         of the world. Below caption: share that scores below the caption. Seen: share of the changed words of false sentences that the \
         model calls mismatched; kept: share of the other words that it calls matched. Corrected: share of the changed words for which \
         it proposes the caption's word. Perplexity: mean over sentences, by a trigram model of the training captions. Interval: bootstrap \
         over images and seeds.",
    );
    type Of = fn(&SentenceShares) -> Option<&Share>;
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

/// All sentences as the paper's annotators judged them: false, true, no sentence; then by the kind of the one changed word.
fn of_all(report: &Report, rows: &[Option<SentenceShares>]) -> Option<Table> {
    let found = || rows.iter().map(|row| row.as_ref()?.synthetic.as_ref());
    let mut kinds: Vec<&String> = found().flatten().flat_map(|s| s.of_all_by_kind.keys()).collect();
    kinds.sort();
    kinds.dedup();
    found().flatten().find_map(|s| s.of_all.as_ref())?;
    let mut t = of_rows(report, "All synthetic sentences: false, true, no sentence").noted(
        "Shares of all sentences, also of broken ones, as the paper counts (96.5 % not true): a broken sentence is not true, so this measure \
         grows with them. False per caption: sentences of the world that the image denies. By kind: only sentences with one changed word; \
         their number is in parentheses.",
    );
    let three = |v: &Verdicts| {
        let [no, yes, none] =
            [&v.truly_false, &v.truly_true, &v.no_sentence].map(|s| share(s.value));
        format!("{no}, {yes}, {none} ({})", v.truly_false.of)
    };
    t.numbers("all", found().map(|s| s?.of_all.as_ref()), three);
    t.numbers("false per caption", found().map(|s| s?.false_per_caption), |x| format!("{x:.2}"));
    for kind in kinds {
        t.numbers(kind, found().map(|s| s?.of_all_by_kind.get(kind)), three);
    }
    Some(t)
}

/// Truly false sentences, by the kind of their one changed word.
fn by_kind(report: &Report, rows: &[Option<SentenceShares>]) -> Option<Table> {
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
    use std::collections::BTreeMap;

    use tags_dc::train::FurtherShares;

    use super::*;
    use crate::report::tests::sample;
    use crate::testing::texts;

    #[test]
    fn rows_that_make_sentences_tell_of_them() {
        let report = sample::report(24.3, -5.5, &[1]);
        let mut rows = vec![None; report.rows.len()];
        assert!(table(&report, &rows).is_none() && by_kind(&report, &rows).is_none());
        let share = |value: f64| Share { value, ci95: [value - 0.02, value + 0.01], of: 400 };
        let verdicts = || Verdicts {
            truly_false: share(0.625),
            truly_true: share(0.125),
            no_sentence: share(0.25),
        };
        rows[2] = Some(SentenceShares {
            synthetic_truly_false: Some(share(0.965)),
            wod_accuracy: Some(share(0.75)),
            woc_accuracy: None,
            synthetic: Some(FurtherShares {
                unparsed: share(0.25),
                of_all: Some(verdicts()),
                of_all_by_kind: BTreeMap::from([("colour".to_owned(), verdicts())]),
                false_per_caption: Some(4.25),
                by_kind: BTreeMap::from([("colour".to_owned(), share(0.5))]),
                kept_words_match: None,
                scored_below: Some(share(0.875)),
                fluency: None,
            }),
        });
        let want = ["96.5 %", "94.5 to 97.5 %", "25.0 %", "87.5 %", "75.0 %", "73.0 to 76.0 %"];
        assert_eq!(texts(&table(&report, &rows).unwrap(), "Full"), want);
        let three = "62.5 %, 12.5 %, 25.0 % (400)";
        assert_eq!(texts(&of_all(&report, &rows).unwrap(), "Full"), [three, "4.25", three]);
        assert_eq!(texts(&by_kind(&report, &rows).unwrap(), "Full"), ["50.0 % (400)"]);
    }
}

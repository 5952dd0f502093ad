//! Sentences that a model makes from the test captions, against the truth; how fluent they are (Table 3), how other models score them
//! (Table 4, Figure 4) and how far their scores are from the captions' (Figures 1 and 3).

use std::collections::BTreeSet;

use itm_core::Result;
use itm_core::data::Split;
use itm_core::significance::Share;
use itm_report::format::{points, share};
use itm_report::table::Table;
use tags_dc::edits::CaptionEdit;
use tags_dc::fluency::{Fluency, Trigrams};
use tags_dc::train::{SentenceCounts, SentenceShares, Verdicts};

use super::gaps::{self, Gaps};
use super::generators::Generators;
use super::made::{Made, sentences};
use crate::measures::{BySeed, Measure, Trial};
use crate::report::{Report, Section, of_rows, percent};
use crate::source::Source;

/// The synthetic sentences of each row, on data with a truth.
#[derive(Debug, Default)]
pub(super) struct SyntheticSentences {
    counts: BySeed<SentenceCounts>,
    fluency: BySeed<[Option<Fluency>; 2]>,
    gaps: BySeed<Gaps>,
    generators: Generators,
}

impl Measure for SyntheticSentences {
    fn look(&self, trial: &Trial) -> Result<()> {
        let Some(trained) = trial.trained else { return Ok(()) };
        let made = sentences(trial.source, trained.model)?;
        if let Some(made) = &made {
            let source = trial.source;
            let reader = Trigrams::fit(source.dataset.train.captions.iter().map(String::as_str));
            self.counts.put(trial, counts(source, made, &reader));
            self.fluency.put(trial, fluency_of_others(source, &reader));
            self.gaps.put(trial, Gaps::of(trial, &trained, made)?);
        }
        self.generators.look(trial, trained.model, made)
    }

    fn section(&self, report: &mut Report) -> Result<Section> {
        let rows = self.counts.rows(report, |seeds| Some(SentenceShares::over(seeds)));
        let others = self.fluency.rows(report, |seeds| seeds.first().map(|found| **found));
        let gaps = self.gaps.rows(report, |seeds| Some(Gaps::over(seeds)));
        let mut section = Section::new("Synthetic sentences");
        section.add_rows(report, |row| row.truth.get_or_insert_default(), &rows)?;
        section.tables = [table, by_kind, of_all].map(|of| of(report, &rows)).into();
        section.tables.extend(fluency(report, &rows, &others));
        section.tables.extend(self.generators.tables(report));
        section.tables.push(gaps::table(report, &gaps));
        section.figures.extend(gaps::figures(report, &gaps));
        Ok(section)
    }
}

/// The sentences against the truth.
fn counts(source: &Source, made: &[Made], reader: &Trigrams) -> SentenceCounts {
    let part = &source.dataset.test;
    let mut all = SentenceCounts::new(part.pairs.images());
    all.captions = part.captions.len() as u64;
    for Made { text, sentence } in made {
        let image = part.pairs.image_of(*text);
        let denied = source.denies(Split::Test, image, &sentence.text);
        let kind = sentence.changed().and_then(|at| source.says(&part.captions[*text], at));
        all.add(image, sentence, denied, kind);
    }
    let texts = made.iter().map(|made| made.sentence.text.as_str());
    let corrected = made.iter().filter_map(|made| made.sentence.corrected.as_deref());
    all.fluency = Fluency::of(reader, texts);
    all.fluency_of_corrected = Fluency::of(reader, corrected);
    all
}

/// Fluency of the test captions, and of one drawn edit of each.
fn fluency_of_others(source: &Source, reader: &Trigrams) -> [Option<Fluency>; 2] {
    let (train, part) = (&source.dataset.train, &source.dataset.test);
    let edits = CaptionEdit::all(train, part);
    let drawn = edits.iter().filter(|edit| edit.kind.is_none()).map(|edit| &edit.sentence[..]);
    let captions = part.captions.iter().map(String::as_str);
    [Fluency::of(reader, captions), Fluency::of(reader, drawn)]
}

/// Table 3: perplexity of captions, synthetic, corrected and edited sentences.
fn fluency(
    report: &Report,
    rows: &[Option<SentenceShares>],
    others: &[Option<[Option<Fluency>; 2]>],
) -> Option<Table> {
    let found = || rows.iter().map(|row| row.as_ref()?.synthetic.as_ref());
    found().find_map(|made| made?.fluency)?;
    let mut t = of_rows(report, "Perplexity of sentences (Table 3)").noted(
        "Mean over sentences, by a trigram model of the training captions, which stands in for GPT-2: compare these numbers with each other, \
         not with the paper's. Corrected: the row's word heads replace the words that they call mismatched. Edited: VSE-C's rules.",
    );
    let mean = |f: Option<Fluency>| f.map(|f| f.mean_perplexity);
    t.numbers("captions", others.iter().map(|o| mean((*o)?[0])), points);
    t.numbers("synthetic", found().map(|made| mean(made?.fluency)), points);
    t.numbers("corrected", found().map(|made| mean(made?.fluency_of_corrected)), points);
    t.numbers("edited", others.iter().map(|o| mean((*o)?[1])), points);
    Some(t)
}

/// Truly false sentences and judged words of every row.
fn table(report: &Report, rows: &[Option<SentenceShares>]) -> Table {
    let found = || rows.iter().map(Option::as_ref);
    let mut t = of_rows(report, "Synthetic sentences").noted(
        "Negatives that each row makes from the test captions, without noise. Truly false: share that the image denies, among sentences \
         of the world. Below caption: share that scores below the caption. Seen: share of the changed words of false sentences that the \
         model calls mismatched; kept: share of the other words that it calls matched. Corrected: share of the changed words for which \
         it proposes the caption's word. Interval: bootstrap over images and seeds.",
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
    for (head, of, with_interval) in columns {
        let each = || found().map(|truth| of(truth?));
        t.numbers(head, each().map(|s| Some(s?.value)), share);
        if with_interval {
            t.numbers("95 % interval", each().map(|s| Some(s?.ci95)), percent);
        }
    }
    t
}

/// All sentences as the paper's annotators judged them: false, true, no sentence; then by the kind of the one changed word.
fn of_all(report: &Report, rows: &[Option<SentenceShares>]) -> Table {
    let found = || rows.iter().map(|row| row.as_ref()?.synthetic.as_ref());
    let kinds: BTreeSet<&String> =
        found().flatten().flat_map(|s| s.of_all_by_kind.keys()).collect();
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
    t
}

/// Truly false sentences, by the kind of their one changed word.
fn by_kind(report: &Report, rows: &[Option<SentenceShares>]) -> Table {
    let found = || rows.iter().map(|row| Some(&row.as_ref()?.synthetic.as_ref()?.by_kind));
    let kinds: BTreeSet<&String> = found().flatten().flat_map(|by_kind| by_kind.keys()).collect();
    let title = "Synthetic sentences that are truly false, by the word that changed";
    let note = "Only sentences of the world with one changed word; their number is in parentheses.";
    let mut t = of_rows(report, title).noted(note);
    for kind in kinds {
        let each = found().map(|by_kind| by_kind?.get(kind));
        let text = |s: &Share| format!("{} ({})", share(s.value), s.of);
        t.numbers(kind, each, text);
    }
    t
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tags_dc::train::FurtherShares;

    use super::*;
    use crate::report::tests::sample;
    use crate::tests::texts;

    #[test]
    fn rows_that_make_sentences_tell_of_them() {
        let report = sample::report(24.3, -5.5, &[1]);
        let mut rows = vec![None; report.rows.len()];
        for of in [table, by_kind, of_all] {
            assert!(of(&report, &rows).filled().lines.is_empty());
        }
        let share = |value: f64| Share { value, ci95: [value - 0.02, value + 0.01], of: 400 };
        let perplexity = |mean_perplexity| Fluency {
            mean_perplexity,
            of_mean_sentence: 1.0,
            of_mean_word: 1.0,
            sentences: 7,
        };
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
                fluency: Some(perplexity(20.0)),
                fluency_of_corrected: Some(perplexity(10.0)),
            }),
        });
        let want = ["96.5 %", "94.5 to 97.5 %", "25.0 %", "87.5 %", "75.0 %", "73.0 to 76.0 %"];
        assert_eq!(texts(&table(&report, &rows).filled(), "Full"), want);
        let three = "62.5 %, 12.5 %, 25.0 % (400)";
        assert_eq!(texts(&of_all(&report, &rows), "Full"), [three, "4.25", three]);
        assert_eq!(texts(&by_kind(&report, &rows), "Full"), ["50.0 % (400)"]);
        let mut others = vec![None; rows.len()];
        others[2] = Some([5.0, 40.0].map(|mean| Some(perplexity(mean))));
        let table = fluency(&report, &rows, &others).unwrap();
        assert_eq!(texts(&table, "Full"), ["5.0", "20.0", "10.0", "40.0"]);
    }
}

//! Sentences that models make from captions, against the truth.

use itm_report::format::{interval, points, share};
use itm_report::table::Table;

use super::of_rows;
use crate::report::json::{Report, Share, Truth};

/// Truly false sentences and judged words of every row; `None` where no row makes sentences.
pub(in crate::report) fn sentences(report: &Report) -> Option<Table> {
    let found = || report.rows.iter().map(|row| row.truth.as_ref());
    found().find_map(|truth| truth?.synthetic.as_ref())?;
    let mut t = of_rows(report, "Synthetic sentences").noted(
        "Negatives that each row makes from the test captions, without noise. Truly false: share that the image denies, among sentences \
         of the world. Below caption: share that scores below the caption. Seen: share of the changed words of false sentences that the \
         model calls mismatched; kept: share of the other words that it calls matched. Corrected: share of the changed words for which \
         it proposes the caption's word. Perplexity: mean over sentences, by a trigram model of the training captions. Interval: bootstrap \
         over images and seeds.",
    );
    type Of = fn(&Truth) -> Option<&Share>;
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
pub(in crate::report) fn sentences_by_kind(report: &Report) -> Option<Table> {
    let found =
        || report.rows.iter().map(|row| Some(&row.truth.as_ref()?.synthetic.as_ref()?.by_kind));
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

    use super::super::super::tests::sample;
    use super::super::texts;
    use super::*;
    use crate::report::json::SyntheticSentences;

    #[test]
    fn rows_that_make_sentences_tell_of_them() {
        let mut report = sample::report(24.3, -5.5, &[1]);
        assert!(sentences(&report).is_none() && sentences_by_kind(&report).is_none());
        let share = |value: f64| Share { value, ci95: [value - 0.02, value + 0.01], of: 400 };
        let full = report.rows.iter_mut().find(|row| row.name == "Full").unwrap();
        let truth = full.truth.as_mut().unwrap();
        truth.synthetic_truly_false = Some(share(0.965));
        truth.wod_accuracy = Some(share(0.75));
        truth.synthetic = Some(SyntheticSentences {
            unparsed: share(0.25),
            by_kind: BTreeMap::from([("colour".to_owned(), share(0.5))]),
            kept_words_match: None,
            scored_below: Some(share(0.875)),
            fluency: None,
        });
        let table = sentences(&report).unwrap();
        let want = ["96.5 %", "94.5 to 97.5 %", "25.0 %", "87.5 %", "75.0 %", "73.0 to 76.0 %"];
        assert_eq!(texts(&table, "Full"), want);
        assert_eq!(texts(&sentences_by_kind(&report).unwrap(), "Full"), ["50.0 % (400)"]);
    }
}

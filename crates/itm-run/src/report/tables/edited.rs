//! Captions with one change, against the captions themselves.

use itm_report::format::{count, interval, share};
use itm_report::table::Table;

use super::of_rows;
use crate::report::json::{EditedCaptions, Fluency, Report};

/// How often each row scores an edited caption below the caption; `None` if no row has such scores.
pub(in crate::report) fn edited(report: &Report) -> Option<Table> {
    let found = || report.rows.iter().map(|row| row.edited.as_ref());
    let first = found().flatten().next()?;
    let read =
        |f: &Option<Fluency>| f.map_or("–".into(), |f| format!("{:.1}", f.mean_perplexity));
    let note = format!(
        "One word, number or relation of each test caption is changed by VSE-C's rules, which makes most captions false of their image. \
         Below: share of the changed captions that score below the caption with the same image; a tie counts against the row. {} captions \
         have no such change. By kind: one change of this kind in every caption that allows it. Interval: bootstrap over images and seeds. Mean perplexity by a trigram model of the training captions, which stands in for \
         GPT-2: captions {}, changed captions {}.",
        count(first.without),
        read(&first.fluency_of_captions),
        read(&first.fluency)
    );
    let mut t = of_rows(report, "Edited captions").noted(note);
    t.numbers("below", found().map(|e| Some(e?.below.value)), share);
    let percent = |ends: [f64; 2]| format!("{} %", interval(ends.map(|end| 100.0 * end)));
    t.numbers("95 % interval", found().map(|e| Some(e?.below.ci95)), percent);
    let of_kind = |e: &EditedCaptions, kind: &str| e.by_kind.get(kind).map(|share| share.value);
    for kind in first.by_kind.keys() {
        t.numbers(kind.clone(), found().map(|e| of_kind(e?, kind)), share);
    }
    t.numbers("ties", found().map(|e| Some(e?.ties)), count);
    Some(t)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::super::tests::sample;
    use super::super::texts;
    use super::*;
    use crate::report::json::Share;

    #[test]
    fn rows_tell_of_edited_captions() {
        let mut report = sample::report(24.3, -5.5, &[1]);
        assert!(edited(&report).is_none());
        let share = |value: f64| Share { value, ci95: [value - 0.02, value + 0.01], of: 400 };
        let full = report.rows.iter_mut().find(|row| row.name == "Full").unwrap();
        full.edited = Some(EditedCaptions {
            below: share(0.965),
            by_kind: BTreeMap::from([("noun".to_owned(), share(0.5))]),
            ties: 2,
            without: 17,
            fluency_of_captions: None,
            fluency: None,
        });
        let table = edited(&report).unwrap();
        assert_eq!(texts(&table, "Full"), ["96.5 %", "94.5 to 97.5 %", "50.0 %", "2"]);
    }
}

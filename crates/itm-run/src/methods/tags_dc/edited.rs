//! Compares test captions with edits of them that are false of their image: Table 4 of TAGS-DC, for any model.

use std::collections::BTreeMap;

use itm_core::Result;
use itm_report::format::{count, share};
use itm_report::table::Table;
use tags_dc::edits::{CaptionEdit, EditCounts, EditShares};
use tags_dc::fluency::Fluency;

use super::logits;
use crate::measures::{BySeed, Measure, Trial};
use crate::model::Model;
use crate::report::{Report, Section, of_rows, percent};
use crate::source::Source;

/// How each row scores edited captions.
#[derive(Debug, Default)]
pub(super) struct EditedCaptions(BySeed<EditCounts>);

impl Measure for EditedCaptions {
    fn look(&self, trial: &Trial) -> Result<()> {
        if let Some(trained) = trial.trained {
            self.0.put(trial, measure(trial.source, trained.model)?);
        }
        Ok(())
    }

    fn section(&self, report: &mut Report) -> Result<Section> {
        let rows = self.0.rows(report, EditShares::over);
        let mut section = Section::new("Edited captions");
        let key = |edited: &EditShares| BTreeMap::from([("edited".to_owned(), edited.clone())]);
        let numbers: Vec<_> = rows.iter().map(|row| row.as_ref().map(key)).collect();
        section.add_rows(report, |row| &mut row.more, &numbers)?;
        section.tables.extend(table(report, &rows));
        Ok(section)
    }
}

/// Scores edits of the test captions.
///
/// # Errors
/// If an edit cannot be read as the row reads captions, or an item cannot be read.
fn measure(source: &Source, model: &Model) -> Result<EditCounts> {
    let (train, part) = (&source.dataset.train, &source.dataset.test);
    let edits = CaptionEdit::all(train, part);
    let sentences = edits.iter().map(|edit| (edit.text, edit.sentence.as_str()));
    let scores = logits(&*model.method, model, sentences)?;
    Ok(EditCounts::new(train, part, &edits, &scores))
}

/// How often each row scores an edited caption below the caption; `None` if no row has such scores.
fn table(report: &Report, rows: &[Option<EditShares>]) -> Option<Table> {
    let found = || rows.iter().map(Option::as_ref);
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
    t.numbers("95 % interval", found().map(|e| Some(e?.below.ci95)), percent);
    let of_kind = |e: &EditShares, kind: &str| e.by_kind.get(kind).map(|share| share.value);
    for kind in first.by_kind.keys() {
        t.numbers(kind.clone(), found().map(|e| of_kind(e?, kind)), share);
    }
    t.numbers("ties", found().map(|e| Some(e?.ties)), count);
    Some(t)
}

#[cfg(test)]
mod tests {
    use itm_core::significance::Share;

    use super::*;
    use crate::report::tests::sample;
    use crate::tests::texts;

    #[test]
    fn rows_tell_of_edited_captions() {
        let report = sample::report(24.3, -5.5, &[1]);
        let mut rows = vec![None; report.rows.len()];
        assert!(table(&report, &rows).is_none());
        let share = |value: f64| Share { value, ci95: [value - 0.02, value + 0.01], of: 400 };
        rows[2] = Some(EditShares {
            below: share(0.965),
            by_kind: BTreeMap::from([("noun".to_owned(), share(0.5))]),
            ties: 2,
            without: 17,
            fluency_of_captions: None,
            fluency: None,
        });
        let table = table(&report, &rows).unwrap();
        assert_eq!(texts(&table, "Full"), ["96.5 %", "94.5 to 97.5 %", "50.0 %", "2"]);
    }
}

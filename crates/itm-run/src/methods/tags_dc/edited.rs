//! Compares test captions with edits of them that are false of their image: Table 4 of TAGS-DC, for any model.
//!
//! ```text
//! below = #{edits with s(image, edit) < s(image, caption)} / #{edits}          a tie counts against the model
//! ```
//!
//! The edits are VSE-C's: they replace a noun, a number or a relation. One edit is drawn per caption, its kind first.

use std::collections::BTreeMap;

use itm_core::learn::Items;
use itm_core::significance::Share;
use itm_core::{Pairs, Result};
use itm_report::format::{count, interval, share};
use itm_report::table::Table;
use serde::{Deserialize, Serialize};

use super::edits::{Fluency, Reader, edited};
use crate::measures::{BySeed, Measure, Trial};
use crate::model::Model;
use crate::report::{Place, Report, Section, of_rows};
use crate::source::Source;
use crate::split::Split;

/// How each row scores edited captions.
#[derive(Debug, Default)]
pub(super) struct EditedCaptions(BySeed<OfImages>);

impl Measure for EditedCaptions {
    fn look(&self, trial: &Trial) -> Result<()> {
        if let Some(trained) = trial.trained {
            self.0.put(trial, measure(trial.source, trained.model)?);
        }
        Ok(())
    }

    fn section(&self, report: &Report) -> Result<Section> {
        let rows = self.0.rows(report, summarise);
        let mut section = Section::new("Edited captions");
        let key = |edited: &Edited| BTreeMap::from([("edited".to_owned(), edited.clone())]);
        let numbers: Vec<_> = rows.iter().map(|row| row.as_ref().map(key)).collect();
        section.add_rows(report, Place::Row, &numbers)?;
        section.tables.extend(table(report, &rows));
        Ok(section)
    }
}

/// Test captions with one change by VSE-C's rules, against the captions themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Edited {
    /// Share that scores below its caption with the same image; the kind of the change is drawn for each caption.
    below: Share,
    /// The same share for one change of each kind.
    by_kind: BTreeMap<String, Share>,
    /// Changed captions with the same score as their caption, summed over seeds. They do not count as below.
    ties: u64,
    /// Captions that no rule changes.
    without: u64,
    /// Fluency of the captions under a trigram model of the training captions.
    fluency_of_captions: Option<Fluency>,
    /// Fluency of the changed captions.
    fluency: Option<Fluency>,
}

/// Counts per test image, for one trained row and seed.
#[derive(Debug, Clone, Default, PartialEq)]
struct OfImages {
    /// Counts over the drawn edits.
    below: Vec<[u64; 2]>,
    /// Counts over the edits of each kind.
    by_kind: BTreeMap<&'static str, Vec<[u64; 2]>>,
    ties: u64,
    /// Captions that no rule changes.
    without: u64,
    /// Fluency of the captions, and of the drawn edits.
    fluency: [Option<Fluency>; 2],
}

/// Scores edits of the test captions.
///
/// # Errors
/// If an edit cannot be read as the row reads captions, or an item cannot be read.
fn measure(source: &Source, model: &Model) -> Result<OfImages> {
    let (part, reading) = (&source.dataset.test, model.reading);
    let edits = edited(&source.dataset.train, part)?;
    let own = part.pairs.texts();
    let mut texts = reading.texts(Split::Test).to_vec();
    let mut image_of = part.pairs.image_of_text().to_vec();
    for edit in &edits {
        texts.push(reading.read(&edit.sentence)?);
        image_of.push(part.pairs.image_of(edit.text));
    }
    let pairs = Pairs::new(part.pairs.images(), image_of.clone())?;
    let items = Items { texts: &texts, pairs: &pairs, ..model.inputs.items(Split::Test) };
    let all: Vec<usize> = (0..texts.len()).collect();
    let scores = model.method.scored(items)?.pairs(&image_of, &all)?;
    let mut counts = OfImages { below: vec![[0; 2]; part.pairs.images()], ..OfImages::default() };
    let mut drawn = vec![false; own];
    for (k, edit) in edits.iter().enumerate() {
        let (caption, changed) = (scores[edit.text], scores[own + k]);
        let (image, below) = (image_of[edit.text], u64::from(changed < caption));
        let of = match edit.kind {
            None => {
                drawn[edit.text] = true;
                counts.ties += u64::from(changed == caption);
                &mut counts.below
            }
            Some(kind) => {
                let none = || vec![[0; 2]; part.pairs.images()];
                counts.by_kind.entry(kind).or_insert_with(none)
            }
        };
        of[image][0] += below;
        of[image][1] += 1;
    }
    let reader = Reader::of(&source.dataset.train);
    let read = edits.iter().filter(|edit| edit.kind.is_none()).map(|edit| &edit.sentence[..]);
    let captions = part.captions.iter().map(String::as_str);
    counts.fluency = [reader.fluency(captions), reader.fluency(read)];
    counts.without = drawn.iter().filter(|drawn| !**drawn).count() as u64;
    Ok(counts)
}

/// The shares over all seeds of a row; `None` if nothing was measured.
fn summarise(runs: &[&OfImages]) -> Option<Edited> {
    let first = runs.first()?;
    let share = |of: &dyn Fn(&OfImages) -> Option<&Vec<[u64; 2]>>| {
        let runs: Vec<&[[u64; 2]]> = runs.iter().filter_map(|run| Some(&of(run)?[..])).collect();
        Share::over(&runs)
    };
    let kinds = first.by_kind.keys();
    let kinds =
        kinds.filter_map(|&kind| Some((kind.to_owned(), share(&|run| run.by_kind.get(kind))?)));
    Some(Edited {
        below: share(&|run| Some(&run.below))?,
        by_kind: kinds.collect(),
        ties: runs.iter().map(|run| run.ties).sum(),
        without: first.without,
        fluency_of_captions: first.fluency[0],
        fluency: first.fluency[1],
    })
}

/// How often each row scores an edited caption below the caption; `None` if no row has such scores.
fn table(report: &Report, rows: &[Option<Edited>]) -> Option<Table> {
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
    let percent = |ends: [f64; 2]| format!("{} %", interval(ends.map(|end| 100.0 * end)));
    t.numbers("95 % interval", found().map(|e| Some(e?.below.ci95)), percent);
    let of_kind = |e: &Edited, kind: &str| e.by_kind.get(kind).map(|share| share.value);
    for kind in first.by_kind.keys() {
        t.numbers(kind.clone(), found().map(|e| of_kind(e?, kind)), share);
    }
    t.numbers("ties", found().map(|e| Some(e?.ties)), count);
    Some(t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;
    use crate::testing::texts;

    /// By hand, two seeds of two images: 3 of 4 and 1 of 2 drawn edits below; nouns 1 of 1 and 0 of 1.
    #[test]
    fn golden_shares_of_two_seeds() {
        let of = |below, nouns, ties| OfImages {
            below,
            by_kind: BTreeMap::from([("noun", nouns)]),
            ties,
            without: 3,
            fluency: [None; 2],
        };
        let (first, second) = (
            of(vec![[2, 2], [1, 2]], vec![[1, 1], [0, 0]], 1),
            of(vec![[1, 2], [0, 0]], vec![[0, 1], [0, 0]], 0),
        );
        let got = summarise(&[&first, &second]).unwrap();
        assert_eq!((got.below.value, got.below.of), (4.0 / 6.0, 6));
        assert_eq!((got.by_kind["noun"].value, got.by_kind["noun"].of), (0.5, 2));
        assert_eq!((got.ties, got.without), (1, 3));
        assert_eq!(summarise(&[]), None);
    }

    #[test]
    fn rows_tell_of_edited_captions() {
        let report = sample::report(24.3, -5.5, &[1]);
        let mut rows = vec![None; report.rows.len()];
        assert!(table(&report, &rows).is_none());
        let share = |value: f64| Share { value, ci95: [value - 0.02, value + 0.01], of: 400 };
        rows[2] = Some(Edited {
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

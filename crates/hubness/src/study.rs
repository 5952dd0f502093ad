//! A study: nearest neighbours and corrections over one set of scores, in one call.
//!
//! [`Study::run`] fits every wanted correction, chooses the settings that were left open, ranks, counts hubs, draws intervals
//! and tests, and gives a [`Report`]. The binary `hubness` reads files, calls it, and shows the report.

mod choice;
pub(crate) mod data;
pub(crate) mod fit;
pub(crate) mod input;
mod matching;
mod method;
mod results;
pub(crate) mod rows;
mod settings;
mod table;
mod worst;

use std::time::Instant;

use itm_core::Result;

pub use input::{Banks, ItemNames, Test, TestScores, Validation};
pub use method::{Base, Method, Then};
pub use settings::{Choice, Runs, Settings};

use crate::choose::FoldSplit;
use crate::report::{self, Curve, Report};
use choice::Chooser;
use data::StudyData;
use input::ScoreSet;
use matching::curve;
use results::measure;
use rows::{Limits, StudyRow, rows};
use table::report_rows;
use worst::hubs_of;

/// The settings of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Rows besides nearest neighbours; empty: all rows that the scores allow.
    pub methods: Vec<Method>,
    /// The numbers of the corrections.
    pub settings: Settings,
    /// Seed of folds, intervals and tests.
    pub seed: u64,
    /// Draws of the bootstrap and of the randomisation test; 0 for neither.
    pub resamples: usize,
    /// Whether to compute R@10 against λ for every row of RGM whose correction leaves no setting open.
    pub curves: bool,
}

impl Default for Study {
    /// All rows that the scores allow, with 10,000 draws and no curves.
    fn default() -> Self {
        let (methods, settings) = Default::default();
        Self { methods, settings, seed: 0, resamples: 10_000, curves: false }
    }
}

impl Study {
    /// Measures every row on the test set.
    ///
    /// Settings left open (`auto`) are chosen on the validation set; without one they are cross-fitted over two halves of the images.
    ///
    /// # Errors
    /// If a number is out of the range of its correction, the scores do not allow a method, or scores, pairs, names, banks and
    /// truth do not fit together.
    pub fn run(&self, test: &Test<'_>, validation: Option<&Validation<'_>>) -> Result<Report> {
        let start = Instant::now();
        self.settings.check()?;
        test.check()?;
        let &Test { scores, pairs, banks, .. } = test;
        let limits = Limits::new(&scores, test.length, &banks, &scores.directions());
        let rows = rows(&self.methods, &self.settings, limits)?;
        let chooses = rows.iter().any(StudyRow::chooses);
        let names = || (0..pairs.images()).map(|image| test.names.image(image)).collect::<Vec<_>>();
        let halves =
            (chooses && validation.is_none()).then(|| FoldSplit::hashed(&names(), 2, self.seed));
        let halves = halves.transpose()?; // refused before anything is computed
        validation.map_or(Ok(()), Validation::check)?;

        let mut sets = Vec::new();
        let mut results = vec![Vec::new(); rows.len()];
        for set in scores.sets()? {
            let chooser = match (validation, &halves) {
                (Some(validation), _) if chooses => {
                    let directions = set.directions.clone();
                    let set = ScoreSet { directions, ..ScoreSet::whole(validation.scores) };
                    let data = StudyData::new(set, validation.pairs, banks, &self.settings);
                    Some(Chooser::Validation(data))
                }
                (_, halves) => halves.as_ref().map(Chooser::Folds),
            };
            let mut data = StudyData::new(set, pairs, banks, &self.settings);
            let of_set = measure(&mut data, chooser, &rows)?;
            results.iter_mut().zip(of_set).for_each(|(all, of_set)| all.extend(of_set));
            sets.push(data);
        }
        let mut data = self.data(test, limits, rows.len());
        data.notes.extend(sets.iter().filter_map(|set| set.set.note()));
        let chosen = |row: &StudyRow| row.chosen(validation.is_some());
        Ok(Report {
            version: env!("CARGO_PKG_VERSION").into(),
            data,
            settings: report::Conditions {
                seed: self.seed,
                resamples: self.resamples as u64,
                unit: "image with all its texts".into(),
                tie_policy: "the smaller index first".into(),
                hub_rule: "at least twice the mean count".into(),
                command: None,
            },
            hubs: hubs_of(test, &sets, (&rows, &results))?,
            rows: report_rows(self, &rows, &results, pairs, chosen)?,
            curves: if self.curves { curves(&rows, &sets)? } else { Vec::new() },
            seconds: start.elapsed().as_secs_f64(),
            peak_memory_bytes: None,
        })
    }

    fn data(&self, test: &Test<'_>, limits: Limits, rows: usize) -> report::Data {
        let mut notes = Vec::new();
        if limits.alone && self.methods.is_empty() {
            let note = "a single image or query: corrections compare several and are left out";
            notes.push(note.into());
        }
        // With this number of draws, no difference can ever be significant.
        let least = (rows - 1) as f64 / (self.resamples as f64 + 1.0);
        if self.resamples > 0 && least >= 0.05 {
            let least = least.min(1.0);
            notes.push(format!(
                "with so few resamples no p over all rows can be below {least:.2}, unless so few images differ that it is exact"
            ));
        }
        report::Data {
            images: test.pairs.images() as u64,
            texts: test.pairs.texts() as u64,
            dim: test.scores.cosine_rows().map(|rows| rows.dim as u64),
            pairs_note: "pairs as given".into(),
            files: Vec::new(),
            notes,
            warnings: Vec::new(),
        }
    }
}

/// R@10 against λ for every row of RGM without another open setting, once for each correction and direction.
fn curves(rows: &[StudyRow], sets: &[StudyData<'_>]) -> Result<Vec<Curve>> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in rows.iter().filter(|row| row.then == Then::Rgm && row.fits.len() == 1) {
        let label = row.name_without_lambda();
        for data in sets {
            for &direction in &data.set.directions {
                let there = |c: &Curve| c.label == label && c.direction == direction;
                if !curves.iter().any(there) {
                    curves.push(curve(data, direction, row.fits[0], &label)?);
                }
            }
        }
    }
    Ok(curves)
}

#[cfg(test)]
mod tests;

//! A study: nearest neighbours and corrections over one set of scores, in one call.
//!
//! [`Study::run`] fits every wanted correction, chooses the settings that were left open, ranks, counts hubs, draws intervals
//! and tests, and gives a [`Report`]. The binary `hubness` reads files, calls it, and shows the report.

mod analysis;
mod answer;
mod choice;
pub(crate) mod input;
mod matching;
mod method;
pub(crate) mod plan;
mod set;
mod settings;
pub(crate) mod spec;
mod table;
mod worst;

use std::time::Instant;

use itm_core::Result;

pub use input::{Banks, Judged, Names, Source, Test};
pub use method::{Base, Method, Then};
pub use settings::{Choice, Runs, Settings};

use crate::report::{self, Curve, Report};
use analysis::analyse;
use choice::{Chooser, Halves};
use matching::curve;
use plan::{Offer, Plan, plans};
use set::Set;
use spec::Fit;
use table::rows;
use worst::hubs_of;

/// The settings of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Rows besides nearest neighbours; `None`: all rows that the scores allow.
    pub methods: Vec<Method>,
    /// The numbers of the corrections.
    pub settings: Settings,
    /// Seed of folds, intervals and tests.
    pub seed: u64,
    /// Draws of the bootstrap and of the randomisation test; 0 for neither.
    pub resamples: usize,
    /// Whether to compute R@10 against λ for every row of RGM.
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
    pub fn run(&self, test: &Test<'_>, validation: Option<&Judged<'_>>) -> Result<Report> {
        let start = Instant::now();
        self.settings.check()?;
        test.check()?;
        let Test { set: judged, names, banks, .. } = *test;
        let offer = Offer::new(&judged.scores, &banks, &judged.scores.directions());
        let plans = plans(&self.methods, &self.settings, offer)?;
        let images = (0..judged.pairs.images()).map(|image| names.image(image)).collect();
        let halves = Halves::new(images, self.seed);
        if plans.iter().any(Plan::chooses) && validation.is_none() {
            halves.split()?; // refused before anything is computed
        }

        let fit = |part, source| Fit { test: part, source, banks, settings: &self.settings };
        let other = validation.map(|other| Ok((other, other.for_choosing()?))).transpose()?;
        let parts = judged.scores.parts()?;
        let mut sets = Vec::new();
        let mut sides = vec![Vec::new(); plans.len()];
        for part in &parts {
            let directions = part.directions.clone();
            let chooser = match &other {
                Some((other, part)) => {
                    let fit = fit(&part.scores, other.scores);
                    let set = Set::new(fit, other.pairs, directions.clone(), None);
                    Chooser::Validation(Box::new(set))
                }
                None => Chooser::Halves(&halves),
            };
            let mut set =
                Set::new(fit(&part.scores, judged.scores), judged.pairs, directions, part.floor);
            let found = analyse(&mut set, chooser, &plans)?;
            sides.iter_mut().zip(found).for_each(|(all, of_set)| all.extend(of_set));
            sets.push(set);
        }
        let chosen = |plan: &Plan| plan.chosen(validation.is_some());
        let named = plans.iter().map(|plan| &plan.name[..]).zip(sides.iter().map(Vec::as_slice));
        Ok(Report {
            version: env!("CARGO_PKG_VERSION").into(),
            data: self.data(&judged, offer, plans.len()),
            settings: self.said(),
            rows: rows(self, &plans, &sides, judged.pairs, chosen)?,
            hubs: hubs_of(test, &sets, named),
            curves: if self.curves { curves(&plans, &sets)? } else { Vec::new() },
            seconds: start.elapsed().as_secs_f64(),
            peak_memory_bytes: None,
        })
    }

    fn data(&self, judged: &Judged<'_>, offer: Offer, rows: usize) -> report::Data {
        let mut notes = Vec::new();
        if offer.alone && self.methods.is_empty() {
            let note = "a single image or query: corrections compare several and are left out";
            notes.push(note.into());
        }
        // With this number of draws, no difference can ever be significant.
        let least = (rows - 1) as f64 / (self.resamples + 1) as f64;
        if self.resamples > 0 && least >= 0.05 {
            notes.push(format!("with so few resamples no p over all rows can be below {least:.2}"));
        }
        report::Data {
            images: judged.pairs.images() as u64,
            texts: judged.pairs.texts() as u64,
            dim: judged.scores.dim().map(|dim| dim as u64),
            pairs_note: "pairs as given".into(),
            files: Vec::new(),
            notes,
            warnings: Vec::new(),
        }
    }

    /// The settings as a report states them.
    fn said(&self) -> report::Settings {
        report::Settings {
            seed: self.seed,
            resamples: self.resamples as u64,
            unit: "image with all its texts".into(),
            tie_policy: "the smaller index first".into(),
            hub_rule: "at least twice the mean count".into(),
            command: None,
            more: Default::default(),
        }
    }
}

/// R@10 against λ for every row of RGM without another open setting, once for each correction and direction.
fn curves(plans: &[Plan], sets: &[Set<'_>]) -> Result<Vec<Curve>> {
    let mut curves: Vec<Curve> = Vec::new();
    for plan in plans.iter().filter(|plan| plan.then == Then::Rgm && plan.specs.len() == 1) {
        let label = plan.name_without_lambda();
        for set in sets {
            for &direction in &set.directions {
                let seen = |c: &Curve| c.label == label && c.direction == direction;
                if !curves.iter().any(seen) {
                    curves.push(curve(set, direction, plan.specs[0], &label)?);
                }
            }
        }
    }
    Ok(curves)
}

#[cfg(test)]
mod tests;

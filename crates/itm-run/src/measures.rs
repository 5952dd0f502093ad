//! Measures of the rows of a report. Each looks at the models one by one and makes one section over all rows.

pub(crate) mod course;
mod hubs;
mod judgements;
mod truth;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use itm_core::Result;
use itm_core::eval::Protocol;
use itm_core::scored::Scored;

use crate::log::Line;
use crate::model::Model;
use crate::report::{Report, Section};
use crate::source::Source;
use crate::train::Progress;

pub(crate) use self::course::Courses;
pub(crate) use self::hubs::Hubs;
pub(crate) use self::judgements::Judgements;
pub(crate) use self::truth::Audit;

/// A measure of all rows. Several threads may call it with models of different rows or seeds.
pub(crate) trait Measure: Send + Sync {
    /// Looks at the test scores of one model, or of several models together.
    ///
    /// # Errors
    /// If an item cannot be read, or a score or a file fails.
    fn look(&self, trial: &Trial) -> Result<()>;

    /// What was found, over the rows of the report. Its numbers go into the report. A section without content is not shown.
    ///
    /// # Errors
    /// If a number is not finite.
    fn section(&self, report: &mut Report) -> Result<Section>;
}

/// The measures of a run, in the order of the report.
pub(crate) type AllMeasures<'a> = [Box<dyn Measure + 'a>];

/// A row and seed, with its scores of the test split.
pub(crate) struct Trial<'a> {
    pub(crate) row: &'a str,
    pub(crate) seed: u64,
    pub(crate) source: &'a Source,
    /// How the test split is evaluated.
    pub(crate) protocol: Protocol,
    pub(crate) scores: &'a dyn Scored,
    /// The model behind the scores; `None` for the closed form, and for several models together.
    pub(crate) trained: Option<Trained<'a>>,
}

/// A model after its training.
#[derive(Clone, Copy)]
pub(crate) struct Trained<'a> {
    pub(crate) model: &'a Model<'a>,
    pub(crate) progress: &'a Progress,
    pub(crate) log: &'a [Line],
    /// Whether the seed is the first of its row. Pictures are only of this seed.
    pub(crate) first: bool,
    /// The scores of the validation split.
    pub(crate) validation: &'a dyn Fn() -> Result<Box<dyn Scored + 'a>>,
    /// The folder of the row and seed.
    pub(crate) folder: &'a Path,
}

/// Images per block of scores.
const BAND: usize = 256;

/// Shows each score with the numbers of its image and its text, image after image. Holds one band of images at a time.
///
/// # Errors
/// If a score cannot be computed.
pub(crate) fn each_score(of: &dyn Scored, mut see: impl FnMut(usize, usize, f32)) -> Result<()> {
    let (n, m) = (of.images(), of.texts());
    for first in (0..n).step_by(BAND) {
        let band = of.block(first..(first + BAND).min(n), 0..m)?;
        for (image, row) in (first..n).zip(band.values().chunks_exact(m)) {
            row.iter().enumerate().for_each(|(text, &score)| see(image, text, score));
        }
    }
    Ok(())
}

/// What a measure found, by row and seed.
#[derive(Debug)]
pub(crate) struct BySeed<T>(Mutex<BTreeMap<(String, u64), T>>);

impl<T> Default for BySeed<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> BySeed<T> {
    pub(crate) fn put(&self, trial: &Trial, found: T) {
        self.known().insert((trial.row.to_owned(), trial.seed), found);
    }

    /// What `of` makes of the seeds of each row of the report, in order; `None` for a row without any.
    pub(crate) fn rows<R>(
        &self,
        report: &Report,
        of: impl Fn(&[&T]) -> Option<R>,
    ) -> Vec<Option<R>> {
        let of_row = |seeds: &[&T]| if seeds.is_empty() { None } else { of(seeds) };
        report.rows.iter().map(|row| self.of_row(&row.name, of_row)).collect()
    }

    /// What `of` makes of the seeds of a row, in order.
    pub(crate) fn of_row<R>(&self, row: &str, of: impl FnOnce(&[&T]) -> R) -> R {
        let known = self.known();
        let seeds: Vec<_> =
            known.iter().filter(|(of, _)| of.0 == row).map(|(_, found)| found).collect();
        of(&seeds)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<(String, u64), T>> {
        self.0.lock().expect("no panic under this lock")
    }
}

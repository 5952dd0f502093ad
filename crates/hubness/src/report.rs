//! The results of a study as data: the JSON of `hubness report --json`.

mod hubs;
mod row;

use serde::{Deserialize, Serialize};

use crate::Direction;
pub use crate::hubs::{Hub, HubMeasures, Victim};
pub use hubs::{Histogram, HubSide, Hubs};
pub use row::{ChoiceOrigin, Difference, Param, Params, RecallIntervals, Recalls, ReportRow};

/// Everything a report shows. Numbers are finite; unknown values are `null`.
///
/// | key                 | what                                                              |
/// |---------------------|-------------------------------------------------------------------|
/// | `version`           | of this crate                                                     |
/// | `data`, `settings`  | what was measured, and how                                        |
/// | `rows`              | one for each method, nearest neighbours (`nns`) first             |
/// | `hubs`              | of nearest neighbours: measures, the worst by name, N_k of all rows |
/// | `curves`            | R@10 against λ, if the command wants them                         |
/// | `seconds`           | wall clock of the study, or of the whole command                  |
/// | `peak_memory_bytes` | of the process; `null` if it was not measured                     |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this crate.
    pub version: String,
    /// What was measured.
    pub data: Data,
    /// How it was measured.
    pub settings: Conditions,
    /// One for each method. A name stands for one method, so no name occurs twice.
    pub rows: Vec<ReportRow>,
    /// The hubs of nearest neighbours, and how each row changes them.
    pub hubs: Hubs,
    /// R@10 against λ.
    pub curves: Vec<Curve>,
    /// Wall clock of the study, or of the whole command.
    pub seconds: f64,
    /// The largest memory of the process, if it was measured.
    pub peak_memory_bytes: Option<u64>,
}

impl Report {
    /// Name of the row that all others are compared with.
    pub const BASELINE: &str = "nns";

    /// The row of plain nearest neighbours.
    pub fn baseline(&self) -> Option<&ReportRow> {
        self.rows.iter().find(|r| r.method == Self::BASELINE)
    }

    /// The directions that were measured.
    pub fn directions(&self) -> impl Iterator<Item = Direction> {
        let has = |d: &Direction| self.rows.iter().any(|r| r.recalls.get(*d).is_some());
        Direction::BOTH.into_iter().filter(has)
    }
}

/// One value per direction; `null` for a direction that was not measured (a run file has only one direction).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerDirection<T> {
    /// Images are the queries.
    pub i2t: Option<T>,
    /// Texts are the queries.
    pub t2i: Option<T>,
}

impl<T> PerDirection<T> {
    /// The value of one direction.
    pub fn get(&self, direction: Direction) -> Option<&T> {
        direction.queries(&self.i2t, &self.t2i).as_ref()
    }
}

impl<T> Default for PerDirection<T> {
    fn default() -> Self {
        Self { i2t: None, t2i: None }
    }
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Number of images.
    pub images: u64,
    /// Number of texts.
    pub texts: u64,
    /// Width of the embeddings; `null` for a matrix or a run.
    pub dim: Option<u64>,
    /// Where the pairs of images and texts come from.
    pub pairs_note: String,
    /// The files that were read, in the order they were given.
    pub files: Vec<File>,
    /// Useful facts; nothing is wrong.
    pub notes: Vec<String>,
    /// Possible faults of the data.
    pub warnings: Vec<String>,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its name as given on the command line.
    pub name: String,
    /// The hash of its bytes, in hexadecimal.
    pub sha256: String,
}

/// How it was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// Seed of folds, intervals and tests.
    pub seed: u64,
    /// Draws of the bootstrap and of the randomisation test; 0 if neither was wanted.
    pub resamples: u64,
    /// What is drawn: images with all their texts.
    pub unit: String,
    /// Which of two equal scores comes first.
    pub tie_policy: String,
    /// The multiple of its fair share from which on an item counts as a hub, in words.
    pub hub_rule: String,
    /// The command line, to run it again, if there was one.
    pub command: Option<String>,
}

/// R@10 of a method followed by RGM against λ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The method: `rgm`, `csls+rgm`, …
    pub label: String,
    /// The direction of the queries.
    pub direction: Direction,
    /// λ, ascending.
    pub x: Vec<f64>,
    /// R@10 in percent, one for each λ.
    pub y: Vec<f64>,
    /// R@10 in percent without RGM, which is λ = ∞.
    pub unconstrained: Option<f64>,
}

#[cfg(all(test, feature = "page"))] // the pages' sample
mod tests;

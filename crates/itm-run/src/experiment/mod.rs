//! An experiment: the rows of a table or a figure of a target, with their seeds, their data and their folder. It is built once, from the
//! command line; everything that is trained, measured and reported reads it.
//!
//! | what | where |
//! |---|---|
//! | from the command line, checked before anything is written | `build` |
//! | corrections for hubs by their names | `study` |
//! | its folder | `folder` |
//! | the lines that are printed before the training | `lines` |
//! | what the paper prints for its rows, and the claim | `printed` |

mod build;
mod folder;
mod lines;
mod printed;
mod study;

use std::path::PathBuf;

use hubness::study::Study;
use itm_core::data::Dataset;
use itm_core::eval::Protocol;

use crate::config::{Config, Exhibit, View};
use crate::methods::Kind;
use crate::paper::{Corrections, Paper};
use crate::plan::{Memory, Room};
use crate::run::Run;
use crate::source::Source;

pub(crate) use self::printed::together;
#[cfg(test)]
pub(crate) use self::study::study;

/// The rows of a table or a figure, with all that their training and their report need.
pub(crate) struct Experiment {
    /// The target that the command names.
    pub(crate) target: Config,
    pub(crate) kind: &'static Kind,
    pub(crate) paper: Paper,
    /// What the paper prints for the corrections of the rows.
    pub(crate) printed: Corrections,
    pub(crate) shown: Exhibit,
    /// The table or figure that is made, with the rows that the command names.
    pub(crate) view: View,
    /// How the test split is evaluated.
    pub(crate) protocol: Protocol,
    pub(crate) seeds: Vec<u64>,
    /// Corrections for hubs under which the rows are measured too.
    pub(crate) rescore: Option<Study>,
    pub(crate) backend: String,
    /// The target in use, which is the substitute if data are missing, with its data and its models.
    pub(crate) run: Run,
    /// The memory of each row, if it can be measured.
    memory: Vec<Option<Memory>>,
    room: Room,
    /// Trainings at a time.
    pub(crate) jobs: usize,
    /// The command line that repeats the experiment.
    pub(crate) command: String,
}

impl Experiment {
    /// The names of the rows.
    pub(crate) fn rows(&self) -> &[String] {
        &self.view.rows
    }

    pub(crate) fn source(&self) -> &Source {
        &self.run.source
    }

    pub(crate) fn data(&self) -> &Dataset {
        &self.run.source.dataset
    }

    /// Whether images have features or given rows. Without them there is no closed form.
    pub(crate) fn has_features(&self) -> bool {
        let train = &self.data().train;
        train.features.dim + train.embeddings.images.dim > 0
    }

    /// Steps of all rows and seeds.
    pub(crate) fn steps(&self) -> usize {
        let of_row = |row: &String| self.run.plan(row, 0).steps();
        self.rows().iter().map(of_row).sum::<usize>() * self.seeds.len()
    }

    /// Whether the rows' hubs are counted: if the paper is about hubs, or a figure draws them.
    pub(crate) fn counts_hubs(&self) -> bool {
        self.kind.about_hubs || self.view.distribution().is_some()
    }

    /// The folder of the reports: the run's folder for the target's own table, and a folder below it for another table or a
    /// figure. So rows are trained only once, and no report replaces another.
    pub(crate) fn folder(&self) -> PathBuf {
        let path = self.run.dir().path();
        match &self.shown {
            Exhibit::Table(n) if *n == self.target.target.table => path.to_path_buf(),
            Exhibit::Table(n) => path.join(format!("table-{n}")),
            Exhibit::Named(name) => path.join(format!("table-{name}")),
            Exhibit::Figure(n) => path.join(format!("figure-{n}")),
        }
    }
}

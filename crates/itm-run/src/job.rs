//! A command to train: which rows of a target, on which data, and where the files go.

use std::path::PathBuf;

use hubness::study::Study;
use itm_core::eval::Protocol;

use crate::config::{Config, Shown, View};
use crate::methods::Kind;
use crate::paper::{Corrections, Paper};
use crate::run::Run;

/// What the command line requests.
pub(crate) struct Asked {
    /// The target that the command names. The bench has the target in use, which is the substitute if data are missing.
    pub(crate) target: Config,
    pub(crate) kind: &'static Kind,
    pub(crate) paper: Paper,
    /// What the paper prints for the corrections of the rows.
    pub(crate) printed: Corrections,
    pub(crate) backend: String,
    pub(crate) shown: Shown,
    /// The table or figure that is made, with the rows that the command names.
    pub(crate) view: View,
    /// How the test split is evaluated.
    pub(crate) protocol: Protocol,
    pub(crate) seeds: Vec<u64>,
    /// Trainings at a time.
    pub(crate) jobs: usize,
    /// The command line that repeats the run.
    pub(crate) command: String,
    /// Corrections for hubs that the command names.
    pub(crate) rescore: Option<Study>,
}

impl Asked {
    /// Whether the rows' hubs are counted: if the paper is about hubs, or a figure draws them.
    pub(crate) fn counts_hubs(&self) -> bool {
        self.kind.about_hubs || self.view.distribution().is_some()
    }
}

/// What the command line requests, and the run that makes it.
pub(crate) struct Job {
    pub(crate) asked: Asked,
    pub(crate) run: Run,
}

impl Job {
    /// The folder of the reports: the run's folder for the target's own table, and a folder below it for another table or a
    /// figure. So rows are trained only once, and no report replaces another.
    pub(crate) fn folder(&self) -> PathBuf {
        let path = self.run.dir.path();
        match &self.asked.shown {
            Shown::Table(n) if *n == self.asked.target.target.table => path.to_path_buf(),
            Shown::Table(n) => path.join(format!("table-{n}")),
            Shown::Named(name) => path.join(format!("table-{name}")),
            Shown::Figure(n) => path.join(format!("figure-{n}")),
        }
    }
}

/// The name of a row that averages the scores of `size` models at a time.
pub(crate) fn together(row: &str, size: u64) -> String {
    format!("{row}, {size} together")
}

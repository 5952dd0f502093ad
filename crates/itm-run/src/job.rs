//! What a command asks to train: which rows of a target, on which data, and where its files go.

use std::path::PathBuf;

use itm_core::eval::Protocol;

use crate::config::{Config, Shown, View};
use crate::methods::Kind;
use crate::paper::Paper;
use crate::rescore::Rescoring;
use crate::run::Run;

/// What a command asks for.
pub(crate) struct Asked {
    /// The target as named. The bench has the target in use, which is another where data are missing.
    pub(crate) target: Config,
    pub(crate) kind: &'static Kind,
    pub(crate) paper: Paper,
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
}

impl Asked {
    /// Whether the rows' hubs are counted: if the paper is about hubs, or a figure draws them.
    pub(crate) fn counts_hubs(&self) -> bool {
        self.kind.about_hubs || self.view.distribution().is_some()
    }
}

/// What a command asks for, and where it is made.
pub(crate) struct Job {
    pub(crate) asked: Asked,
    pub(crate) run: Run,
    /// Corrections for hubs that the command names.
    pub(crate) rescoring: Option<Rescoring>,
}

impl Job {
    /// Where the reports go: into the run's folder. Another table or a figure has a folder of its own below it, so that
    /// rows are trained once and no report replaces another's.
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

/// The name of a row whose models answer together, `size` at a time.
pub(crate) fn together(row: &str, size: u64) -> String {
    format!("{row}, {size} together")
}

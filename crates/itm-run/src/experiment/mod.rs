//! An experiment: the rows of a table or a figure of a target, with their seeds, their data and their folder. It is built once, from the
//! command line; everything that is trained, measured and reported reads it.
//!
//! | what | where |
//! |---|---|
//! | from the command line, checked before anything is written | `build` |
//! | its folder | here |
//! | the lines that are printed before the training | `lines` |
//! | what the paper prints for its rows, and the claim | `printed` |

mod build;
mod lines;
mod printed;

use std::path::PathBuf;

use hubness::study::Study;
use itm_core::eval::Protocol;
use itm_core::{Error, Result};

use crate::config::{Config, Exhibit, View};
use crate::methods::Kind;
use crate::paper::{Corrections, Paper};
use crate::plan::{Memory, Room};
use crate::run::Run;
use crate::run_dir::{Identity, RunDir, new_path, paths};
use crate::{cli, progress};

#[cfg(test)]
pub(crate) use self::build::study;
pub(crate) use self::printed::together;

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
    /// Steps of all rows and seeds.
    pub(crate) fn steps(&self) -> usize {
        let of_row = |row: &String| self.run.plan(row, 0).steps();
        self.view.rows.iter().map(of_row).sum::<usize>() * self.seeds.len()
    }

    /// The folder of the reports: the run's folder for the target's own table, and a folder below it for another table or a
    /// figure. So rows are trained only once, and no report of a table replaces another's.
    pub(crate) fn folder(&self) -> PathBuf {
        let path = &self.run.dir().path;
        match self.shown == Exhibit::Table(self.target.target.table) {
            true => path.clone(),
            false => path.join(self.shown.to_string().replace(' ', "-")),
        }
    }

    /// Makes or opens the folder, and prints what will be trained in it.
    ///
    /// # Errors
    /// If the folder holds another run, is missing, or cannot be written.
    pub(crate) fn begin(mut self, how: &cli::How) -> Result<Self> {
        let config = &self.run.config;
        let identity = Identity {
            target: self.target.name.clone(),
            config_sha256: config.sha256.clone(),
            data_sha256: self.run.source.dataset.sha256.clone(),
            backend: self.backend.clone(),
            set: config.set.clone(),
        };
        let dir = match self.trained(how, &identity) {
            Some(path) => RunDir::resume(path, identity, &config.text)?,
            None => named(how, identity, &config.text)?,
        };
        progress::say(self.lines(Some(&dir.path)));
        self.run.dir = Some(dir);
        Ok(self)
    }

    /// For a table of corrections, the newest run of the same target, data and backend, if there is one and the command line names no
    /// other: such a table needs no models of its own.
    fn trained(&self, how: &cli::How, identity: &Identity) -> Option<PathBuf> {
        if self.view.rescore.is_empty() || how.out.is_some() || how.resume {
            return None;
        }
        let is_same = |path: &PathBuf| Identity::read(path).is_ok_and(|found| found == *identity);
        paths(&identity.target).into_iter().find(is_same)
    }
}

/// The folder that the command line names: a new one, or with `--resume` an existing one.
fn named(how: &cli::How, identity: Identity, config: &str) -> Result<RunDir> {
    let target = &identity.target;
    if !how.resume {
        let path = how.out.clone().unwrap_or_else(|| new_path(target));
        return RunDir::create(path, identity, config);
    }
    let path = how.out.clone().or_else(|| paths(target).into_iter().next());
    let none = || Error::invalid("--resume", format!("a run of {target} below `runs`"), "none");
    let path = path.ok_or_else(none)?;
    let expected = format_args!("a run in {}", path.display());
    Error::unless(path.is_dir(), "--resume", expected, "no such folder")?;
    RunDir::resume(path, identity, config)
}

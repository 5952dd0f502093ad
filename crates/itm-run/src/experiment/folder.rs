//! The folder of an experiment: a new one, or the folder of an earlier run.

use std::path::PathBuf;

use itm_core::{Error, Result};

use super::Experiment;
use crate::run_dir::{Identity, RunDir, new_path, newest_path, paths};
use crate::{cli, progress};

impl Experiment {
    /// Makes or opens the folder, and prints what will be trained in it.
    ///
    /// # Errors
    /// If the folder holds another run, is missing, or cannot be written.
    pub(crate) fn begin(mut self, how: &cli::How) -> Result<Self> {
        let config = &self.run.config;
        let identity = Identity {
            target: self.target.name.clone(),
            config_sha256: config.sha256.clone(),
            data_sha256: self.data().sha256.clone(),
            backend: self.backend.clone(),
            set: config.set.clone(),
        };
        let dir = match self.trained(how, &identity) {
            Some(path) => RunDir::resume(path, identity, &config.text)?,
            None => named(how, identity, &config.text)?,
        };
        progress::say(self.lines(Some(dir.path())));
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
        return RunDir::create(
            how.out.clone().unwrap_or_else(|| new_path(target)),
            identity,
            config,
        );
    }
    let path = how.out.clone().or_else(|| newest_path(target));
    let none = || Error::invalid("--resume", format!("a run of {target} below `runs`"), "none");
    let path = path.ok_or_else(none)?;
    if !path.is_dir() {
        let expected = format!("a run in {}", path.display());
        return Err(Error::invalid("--resume", expected, "no such folder"));
    }
    RunDir::resume(path, identity, config)
}

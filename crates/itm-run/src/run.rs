//! Trains models into a run directory, and reads them back.

use std::fs;
use std::path::{Path, PathBuf};

use itm_core::{Error, Result};

use crate::bench::Bench;
use crate::checkpoint::{self, Checkpoints};
use crate::config::Config;
use crate::devices::device;
use crate::model::Model;
use crate::run_dir::{Identity, RunDir};
use crate::source::Source;
use crate::train::{Event, Plan, Progress, Training, chosen, restore};

/// A bench with a run directory: models are trained into it and read from it.
pub(crate) struct Run {
    pub(crate) bench: Bench,
    pub(crate) dir: RunDir,
}

/// Which finished run is opened, with which data and backend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished<'a> {
    /// Its folder.
    pub(crate) run: &'a Path,
    /// A row of the run, by its name.
    pub(crate) row: Option<&'a str>,
    /// Folder of the data set.
    pub(crate) data: Option<&'a Path>,
    pub(crate) backend: &'a str,
}

impl Run {
    /// Opens a run with its own copy of the configuration and its data. `check` sees the configuration before the data are read.
    ///
    /// # Errors
    /// If there is no such run or row, if the data have changed, or if `check` fails.
    pub(crate) fn open(
        asked: Finished,
        configs: &Path,
        check: impl FnOnce(&Config) -> Result<()>,
    ) -> Result<Self> {
        let identity = Identity::read(asked.run)?;
        let path = asked.run.join("config.toml");
        let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
        let config = Config::parse(&identity.target, path, text)?;
        check(&config)?;
        check_row(&config, asked.row)?;
        let device = device(asked.backend)?;
        let (config, source) = Source::open(&config, asked.data, configs)?;
        let wanted = Identity {
            config_sha256: config.sha256.clone(),
            data_sha256: source.dataset.sha256.clone(),
            ..identity
        };
        let dir = RunDir::open(asked.run.to_path_buf(), wanted, &config.text)?;
        Ok(Self { bench: Bench::new(config, source, device)?, dir })
    }

    /// The named row, or the first.
    pub(crate) fn row(&self, asked: Option<&str>) -> String {
        asked.or_else(|| self.bench.config.rows().next()).unwrap_or_default().to_owned()
    }

    /// Trains a row with one seed, or resumes its training.
    ///
    /// # Errors
    /// As [`Training::run`].
    pub(crate) fn train(
        &self,
        row: &str,
        seed: u64,
        watch: impl FnMut(Event, &Plan),
    ) -> Result<(Model<'_>, Progress)> {
        let from = self.bench.config.from(row).map(|from| self.chosen(from, seed)).transpose()?;
        let (log, checkpoints) = self.dir.row(row, seed)?;
        let mut model = self.bench.model(row, seed, Some(self.dir.path()))?;
        let (name, plan, mut watch) = (model.name(), model.plan, watch);
        let (method, inputs) = (&mut *model.method, &mut model.inputs);
        let (from, checkpoints) = (from.as_deref(), &checkpoints);
        let training = Training { name: &name, plan: &plan, method, inputs, checkpoints, from };
        let progress = training.run(&log, |event| watch(event, &plan))?;
        Ok((model, progress))
    }

    /// The trained model of a row and seed, from the checkpoint that validation chose.
    ///
    /// # Errors
    /// If the row was not trained to its end, or its checkpoint is damaged or of another run.
    pub(crate) fn trained(&self, row: &str, seed: u64) -> Result<Model<'_>> {
        let (folder, checkpoints) = self.of_trained(row, seed)?;
        let mut model = self.bench.model(row, seed, Some(self.dir.path()))?;
        restore(&mut *model.method, &model.plan, &checkpoints, &folder)?;
        Ok(model)
    }

    /// The folder of the checkpoint that validation chose for a row and seed.
    fn chosen(&self, row: &str, seed: u64) -> Result<PathBuf> {
        let (folder, checkpoints) = self.of_trained(row, seed)?;
        chosen(&self.bench.plan(row, seed)?, &checkpoints, &folder)
    }

    /// SHA-256 of the manifest of the chosen checkpoint, which covers all its files.
    ///
    /// # Errors
    /// If the row was not trained to its end, or its checkpoint is damaged or of another run.
    pub(crate) fn hash_of_chosen(&self, row: &str, seed: u64) -> Result<String> {
        checkpoint::hash(&self.chosen(row, seed)?)
    }

    /// The folder of a row and seed, and the checkpoints in it.
    fn of_trained(&self, row: &str, seed: u64) -> Result<(PathBuf, Checkpoints)> {
        let folder = self.dir.folder(row, seed);
        if !folder.is_dir() {
            return Err(Error::invalid(folder.display(), "a trained row", "nothing"));
        }
        let (_, checkpoints) = self.dir.row(row, seed)?;
        Ok((folder, checkpoints))
    }

    /// Where the log of a row and seed is.
    pub(crate) fn log(&self, row: &str, seed: u64) -> PathBuf {
        self.dir.folder(row, seed).join("log.jsonl")
    }
}

fn check_row(config: &Config, row: Option<&str>) -> Result<()> {
    let known: Vec<_> = config.rows().collect();
    let Some(row) = row.filter(|row| !known.contains(row)) else { return Ok(()) };
    let expected = format!("one of {}", known.join(", "));
    Err(Error::invalid("--row", expected, format!("`{row}`")))
}

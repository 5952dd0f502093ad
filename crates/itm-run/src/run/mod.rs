//! A run: a target with its rows, its data as the rows read them, and the folder that keeps the trained models.
//!
//! | what | where |
//! |---|---|
//! | rows: their recipes, and what is known of them before there is a model | `rows` |
//! | models, and the closed form and ready vectors that they begin with | `models` |
//! | training into the folder, and reading back from it | here |

mod models;
mod rows;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use itm_core::data::{Features, WordVectors};
use itm_core::files::read_text;
use itm_core::{Error, Result};

use crate::checkpoint;
use crate::config::Config;
use crate::devices::device;
use crate::encoded::{self, Reading};
use crate::methods::{Facts, Recipe};
use crate::model::Model;
use crate::run_dir::{Identity, RunDir};
use crate::source::Source;
use crate::starts::Starts;
use crate::train::{Event, Progress, Training, chosen};

/// A target with its rows, its data and its folder.
pub(crate) struct Run {
    /// The target in use.
    pub(crate) config: Config,
    pub(crate) source: Source,
    rows: BTreeMap<String, (Box<dyn Recipe>, Facts)>,
    /// Of training, validation and test split.
    features: [Features; 3],
    /// The captions in each way in which a row reads them.
    pub(crate) readings: Vec<Reading>,
    /// Ready word vectors, if a row's words begin with them and the target's file exists.
    vectors: Option<WordVectors>,
    pub(crate) starts: Starts,
    /// Where it computes; the first has the models, the others parts of steps.
    pub(crate) devices: Vec<Device>,
    /// The folder; `None` before anything is written.
    pub(crate) dir: Option<RunDir>,
    /// Bytes that a training may use for states of pictures that no step changes.
    pub(crate) states: u64,
}

impl Run {
    /// Checks every row against the data, and prepares the data as the rows read them. The run has no folder yet.
    ///
    /// # Errors
    /// If a row's configuration is wrong, or captions cannot be read.
    pub(crate) fn new(config: Config, mut source: Source, devices: Vec<Device>) -> Result<Self> {
        let mut rows = BTreeMap::new();
        for row in config.rows() {
            rows.insert(row.to_owned(), rows::read(&config, row, &source)?);
        }
        let of_rows = || config.rows().map(|row| &rows[row].1);
        let features = encoded::features(&source.dataset, &config.target);
        let mut readings: Vec<Reading> = vec![];
        for Facts { captions, .. } in of_rows() {
            if !readings.iter().any(|reading| reading.captions == *captions) {
                readings.push(Reading::new(&source, &config.target, captions.clone())?);
            }
        }
        let note = readings.iter().find_map(|reading| reading.note(&source));
        source.notes.extend(note);
        let vectors = match of_rows().filter(|facts| facts.needs_vectors).last() {
            Some(facts) => models::ready_vectors(&mut source, rows::reading(&readings, facts))?,
            None => None,
        };
        let mut run = Self {
            config,
            source,
            rows,
            features,
            readings,
            vectors,
            starts: Starts::default(),
            devices,
            dir: None,
            states: 0,
        };
        if run.sees_only_regions() {
            let note = "CCA (closed form): the mean of an image's regions, stems";
            run.source.notes.push(note.into());
        }
        Ok(run)
    }

    /// Notes what these rows do not read of the captions.
    pub(crate) fn note_cuts(&mut self, rows: &[String]) {
        let facts: Vec<_> = rows.iter().map(|row| self.facts(row)).collect();
        let is_read = |reading: &&Reading| facts.iter().any(|f| f.captions == reading.captions);
        let read = self.readings.iter().filter(is_read);
        let mut cut: Vec<_> = read.flat_map(|reading| reading.cut(&self.source)).collect();
        for facts in facts {
            let reading = rows::reading(&self.readings, facts);
            cut.extend(facts.most_pieces.iter().flat_map(|&m| reading.cut_pieces(&self.source, m)));
        }
        for note in cut {
            if !self.source.notes.contains(&note) {
                self.source.notes.push(note);
            }
        }
    }

    /// Opens a finished run with its own copy of the configuration, its data (their folder and the backend are given), and its folder.
    /// `check` sees the configuration before the data are read; what it finds is returned too.
    ///
    /// # Errors
    /// If there is no such run, if the data have changed, or if `check` fails.
    pub(crate) fn open<T>(
        folder: &Path,
        (data, backend): (Option<&Path>, &str),
        configs: &Path,
        check: impl FnOnce(&Config) -> Result<T>,
    ) -> Result<(Self, T)> {
        let identity = Identity::read(folder)?;
        let path = folder.join("config.toml");
        let text = read_text(&path)?;
        let mut config = Config::parse(&identity.target, path, text)?;
        let found = check(&config)?;
        config.target.substitute = None; // a run on substitutes has their configuration
        let devices = vec![device(backend)?];
        let (config, source) = Source::open(&config, data, configs)?;
        let wanted = Identity {
            config_sha256: config.sha256.clone(),
            data_sha256: source.dataset.sha256.clone(),
            ..identity
        };
        let dir = RunDir::open(folder.to_path_buf(), wanted, &config.text)?;
        Ok((Self { dir: Some(dir), ..Self::new(config, source, devices)? }, found))
    }

    /// The folder.
    ///
    /// # Panics
    /// If the run has none yet.
    pub(crate) fn dir(&self) -> &RunDir {
        self.dir.as_ref().expect("nothing is trained or read before there is a folder")
    }

    /// Trains a row with one seed, or resumes its training.
    ///
    /// # Errors
    /// As [`Training::run`].
    pub(crate) fn train(
        &self,
        row: &str,
        seed: u64,
        watch: impl FnMut(Event),
    ) -> Result<(Model<'_>, Progress)> {
        let from = self.config.from(row).map(|from| self.chosen(from, seed)).transpose()?;
        let (log, checkpoints) = self.dir().row(row, seed)?;
        let mut model = self.model(row, seed)?;
        let (name, plan) = (&model.name(), &model.plan);
        let (method, inputs) = (&mut *model.method, &mut model.inputs);
        let (from, checkpoints) = (from.as_deref(), &checkpoints);
        let states = if self.facts(row).keeps_states { self.states } else { 0 };
        let training = Training { name, plan, method, inputs, checkpoints, from, states };
        let progress = training.run(&log, watch)?;
        Ok((model, progress))
    }

    /// The trained model of a row and seed, from the checkpoint that validation chose.
    ///
    /// # Errors
    /// If the row was not trained to its end, or its checkpoint is damaged or of another run.
    pub(crate) fn trained(&self, row: &str, seed: u64) -> Result<Model<'_>> {
        let folder = self.chosen(row, seed)?;
        let mut model = self.model(row, seed)?;
        model.method.load(&folder)?;
        Ok(model)
    }

    /// The folder of the checkpoint that validation chose for a row and seed.
    fn chosen(&self, row: &str, seed: u64) -> Result<PathBuf> {
        let folder = self.dir().folder(row, seed);
        Error::unless(folder.is_dir(), folder.display(), "a trained row", "nothing")?;
        let (_, checkpoints) = self.dir().row(row, seed)?;
        chosen(&self.plan(row, seed), &checkpoints, &folder)
    }

    /// SHA-256 of the manifest of the chosen checkpoint, which covers all its files.
    ///
    /// # Errors
    /// If the row was not trained to its end, or its checkpoint is damaged or of another run.
    pub(crate) fn hash_of_chosen(&self, row: &str, seed: u64) -> Result<String> {
        checkpoint::hash(&self.chosen(row, seed)?)
    }
}

#[cfg(test)]
mod tests;

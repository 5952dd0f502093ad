//! What models are trained with: a configuration, its data as the rows read them, and the device.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use burn::tensor::Device;
use itm_core::cca::{Cca, CcaOptions, StartInputs};
use itm_core::data::{Features, WordVectors};
use itm_core::learn::precision_of;
use itm_core::start::{InputStatistics, Start, TextForm, mean_regions};
use itm_core::{Error, Result};
use itm_kernels::Precision;
use tempfile::TempDir;

use crate::config::{Config, ImageFeatures};
use crate::disk::write_atomically;
use crate::encoded::{self, Captions, Reading};
use crate::inputs::Inputs;
use crate::methods::{self, Given, Recipe, Sees, Written};
use crate::model::Model;
use crate::sizes::Sizes;
use crate::source::Source;
use crate::split::{Split, Splits};
use crate::starts::{StartAsked, Starts};
use crate::train::{self, Plan};

/// What models are trained with: a configuration, its data, and the device.
pub(crate) struct Bench {
    /// The target in use.
    pub(crate) config: Config,
    pub(crate) source: Source,
    features: Splits<Features>,
    /// The captions in each way in which a row reads them.
    pub(crate) readings: Vec<Reading>,
    /// Ready word vectors, if a row's words begin with them and the target's file exists.
    vectors: Option<WordVectors>,
    pub(crate) starts: Starts,
    cca: Mutex<Option<Arc<Cca>>>,
    pub(crate) device: Device,
}

impl Bench {
    /// Checks every row against the data, and prepares the data as the rows read them.
    ///
    /// # Errors
    /// If a row's configuration is wrong, or captions cannot be read.
    pub(crate) fn new(config: Config, mut source: Source, device: Device) -> Result<Self> {
        for row in config.rows() {
            check(&config, row, &source)?;
        }
        let (features, mut readings) = (encoded::features(&source.dataset, &config.target), vec![]);
        for row in config.rows() {
            let captions = captions(&config, row)?;
            if !readings.iter().any(|reading: &Reading| reading.captions == captions) {
                readings.push(Reading::new(&source, &config.target, captions)?);
            }
        }
        let note = readings.iter().find_map(|reading| reading.note(&source));
        source.notes.extend(note);
        for note in readings.iter().flat_map(|reading| reading.cut(&source)).collect::<Vec<_>>() {
            if !source.notes.contains(&note) {
                source.notes.push(note);
            }
        }
        let vectors = ready_vectors(&config, &mut source, &readings)?;
        let (starts, cca) = (Starts::default(), Mutex::default());
        Ok(Self { config, source, features, readings, vectors, starts, cca, device })
    }

    /// The captions as a row reads them.
    pub(crate) fn reading(&self, row: &str) -> Result<&Reading> {
        let captions = captions(&self.config, row)?;
        let found = self.readings.iter().find(|reading| reading.captions == captions);
        Ok(found.expect("every row has a reading"))
    }

    /// Refuses a row that trains with the truth if there is none.
    ///
    /// # Errors
    /// If the row needs the truth and the data have none.
    pub(crate) fn check_truth(&self, row: &str) -> Result<()> {
        if methods::recipe(&self.config, row)?.needs_truth() && self.source.truth.is_none() {
            let place = self.config.place(&format!("row.{row}"));
            let title = &self.source.title;
            let expected =
                format!("a complete truth of {title}, because this row excludes all true pairs");
            return Err(Error::invalid(place, expected, "none"));
        }
        Ok(())
    }

    /// The precision of a row's products; `None` if the row has no blocks.
    ///
    /// # Errors
    /// If there is no such row.
    pub(crate) fn precision(&self, row: &str) -> Result<Option<Precision>> {
        Ok(methods::recipe(&self.config, row)?.precision())
    }

    /// Refuses a row whose precision the device does not have.
    ///
    /// # Errors
    /// If the precision is bf16, and the device is not the processor.
    pub(crate) fn check_precision(&self, row: &str) -> Result<()> {
        let precision = self.precision(row)?.unwrap_or_default();
        precision_of("train.precision", precision, &self.device)
            .map_err(self.config.inside(&format!("row.{row}")))
    }

    /// Refuses a row whose words begin with ready vectors if there are none.
    ///
    /// # Errors
    /// If the row needs them and the target names no file, or the data folder has no such file.
    pub(crate) fn check_vectors(&self, row: &str) -> Result<()> {
        if self.vectors.is_some() || !methods::recipe(&self.config, row)?.needs_vectors() {
            return Ok(());
        }
        let place = self.config.place(&format!("row.{row}"));
        let expected = match &self.config.target.word_vectors {
            Some(file) => {
                format!("word vectors in the file `{}` of the data folder", file.display())
            }
            None => "a file of word vectors, named by target.word_vectors".to_owned(),
        };
        Err(Error::invalid(place, expected, "none"))
    }

    /// A folder with untrained weights of the row that a row begins with, if any.
    ///
    /// # Errors
    /// As [`model`](Self::model), or if the folder cannot be written.
    pub(crate) fn weights_before(&self, row: &str) -> Result<Option<TempDir>> {
        let Some(from) = self.config.from(row) else { return Ok(None) };
        let folder = tempfile::tempdir().map_err(Error::io("a temporary folder"))?;
        self.model(from, 0, None)?
            .method
            .save(&mut |name, contents| write_atomically(&folder.path().join(name), contents))?;
        Ok(Some(folder))
    }

    /// A fresh model that begins with such weights.
    ///
    /// # Errors
    /// As [`model`](Self::model), or if the weights have other shapes than the row's.
    pub(crate) fn model_after(&self, row: &str, weights: Option<TempDir>) -> Result<Model<'_>> {
        let mut model = self.model(row, 0, None)?;
        let (Some(from), Some(folder)) = (self.config.from(row), weights) else { return Ok(model) };
        model.method.start_from(folder.path()).map_err(|error| {
            let place = self.config.place(&format!("row.{row}, from"));
            let error = error.to_string().replace(&format!("{}/", folder.path().display()), "");
            Error::invalid(place, "a row of the same shape", format!("`{from}`: {error}"))
        })?;
        Ok(model)
    }

    /// Steps of a row with one seed.
    ///
    /// # Errors
    /// If the row cannot be read.
    pub(crate) fn steps(&self, row: &str) -> Result<usize> {
        Ok(self.plan(row, 0)?.steps())
    }

    pub(crate) fn plan(&self, row: &str, seed: u64) -> Result<Plan> {
        let recipe = methods::recipe(&self.config, row)?;
        Ok(training_plan(&self.config, row, &*recipe, &self.source, seed))
    }

    fn sizes(&self, row: &str) -> Result<Sizes> {
        Ok(Sizes::of(&self.source, self.reading(row)?))
    }

    /// The closed-form baseline, solved once.
    ///
    /// # Errors
    /// As [`Cca::fit`].
    pub(crate) fn cca(&self) -> Result<Arc<Cca>> {
        let mut known = self.cca.lock().expect("no panic under this lock");
        if let Some(cca) = &*known {
            return Ok(cca.clone());
        }
        let cca = Arc::new(Cca::fit(&self.source.dataset, &CcaOptions::default())?);
        Ok(known.insert(cca).clone())
    }

    /// A fresh model of a row and seed; `folder`, if there is one, keeps the closed form that the model begins with.
    ///
    /// # Errors
    /// As [`Recipe::build`] and [`Starts::get`].
    pub(crate) fn model(&self, row: &str, seed: u64, folder: Option<&Path>) -> Result<Model<'_>> {
        let (mut recipe, place) = (methods::recipe(&self.config, row)?, format!("row.{row}"));
        recipe.set_seed(seed);
        self.check_vectors(row)?;
        let reading = self.reading(row)?;
        let inputs = Inputs::new(&self.source, &self.features, reading, recipe.sees())?;
        let start = self.start(&*recipe, reading, folder).map_err(self.config.inside(&place))?;
        let given = Given {
            sizes: &self.sizes(row)?,
            inputs: &InputStatistics::of(&self.features.train, reading.terms()),
            start: start.as_deref(),
            vectors: self.vectors.as_ref(),
            train: inputs.items(Split::Train),
            written: Written {
                captions: &self.source.dataset.train.captions,
                words: &|caption| reading.words(caption),
            },
            truth: inputs.truth().filter(|_| recipe.needs_truth()),
            device: &self.device,
        };
        let method = recipe.build(&given)?;
        let plan = training_plan(&self.config, row, &*recipe, &self.source, seed);
        let (row, source) = (row.to_owned(), &self.source);
        Ok(Model { row, seed, plan, method, inputs, source, reading })
    }
}

impl Bench {
    /// The closed form that a recipe begins with, if any.
    fn start(
        &self,
        recipe: &dyn Recipe,
        reading: &Reading,
        folder: Option<&Path>,
    ) -> Result<Option<Arc<Start>>> {
        let Some(asked) = recipe.start() else { return Ok(None) };
        let (data, config, sees) = (&self.source.dataset, &self.config, recipe.sees());
        let hashes = format!("{} {}", data.sha256, config.sha256);
        let of = format!("{hashes} {sees:?} {:?}", reading.captions);
        let solve = || self.solve(&asked, sees, reading);
        self.starts.get(&asked, &of, folder, solve).map(Some)
    }

    /// Solves a closed form between the training images as a row sees them and the stems of their captions. The regions of an
    /// image are replaced by their mean.
    fn solve(&self, asked: &StartAsked, sees: Sees, reading: &Reading) -> Result<Start> {
        let words = match (asked.form, reading.terms(), reading.words_by_number()) {
            (TextForm::Stems(_), Some(_), _) => vec![],
            (TextForm::Words, _, Some(words)) => words,
            (TextForm::Stems(_) | TextForm::Words, ..) => {
                let expected = "a text encoder of stems or words";
                return Err(Error::invalid("model.start", expected, "another"));
            }
        };
        let data = &self.source.dataset;
        let terms = match reading.terms() {
            Some(terms) => Cow::Borrowed(terms),
            None => Cow::Owned(encoded::stems(data)?),
        };
        let features = match (sees, &data.train.regions) {
            (Sees::Regions, Some(regions)) => Cow::Owned(mean_regions(regions)?),
            _ => Cow::Borrowed(&self.features.train),
        };
        let (captions, pairs) = (&data.train.captions, &data.train.pairs);
        asked.solve(&StartInputs { features: &features, captions, pairs, terms: &terms }, &words)
    }
}

/// The ready word vectors that rows of a target begin with, if the target has such rows and its file exists. The vectors of found words
/// are data: they change the hash, and a note of the report names the file.
fn ready_vectors(
    config: &Config,
    source: &mut Source,
    readings: &[Reading],
) -> Result<Option<WordVectors>> {
    let mut asking = None;
    for row in config.rows() {
        if methods::recipe(config, row)?.needs_vectors() {
            asking = Some(captions(config, row)?);
        }
    }
    let file = source.word_vectors.clone().filter(|file| file.is_file());
    let (Some(captions), Some(file)) = (asking, file) else { return Ok(None) };
    let reading = readings.iter().find(|reading| reading.captions == captions);
    let vectors = reading.expect("every row has a reading").vectors(&file)?;
    source.add_vectors(&file, &vectors);
    Ok(Some(vectors))
}

/// Refuses a row whose configuration is wrong or does not fit the data.
fn check(config: &Config, row: &str, source: &Source) -> Result<()> {
    let place = format!("row.{row}");
    let (recipe, inside) = (methods::recipe(config, row)?, || config.inside(&place));
    recipe.validate().map_err(inside())?;
    recipe.find_weights().map_err(inside())?;
    let (sees, features) = (recipe.sees(), config.target.features);
    let pictures = matches!(sees, Sees::Pictures(_));
    if pictures != (features == ImageFeatures::Pictures) {
        let wanted = match pictures {
            true => "\"pictures\", which the row's image encoder sees",
            false => "features, which the row's image encoder sees",
        };
        return Err(inside()(Error::invalid("target.features", wanted, format!("{features:?}"))));
    }
    if matches!(sees, Sees::Regions) && source.dataset.train.regions.is_none() {
        let wanted = "\"given\" or \"grid\": the row's image encoder sees regions";
        return Err(inside()(Error::invalid("target.regions", wanted, "none")));
    }
    training_plan(config, row, &*recipe, source, 0).check().map_err(inside())
}

fn training_plan(
    config: &Config,
    row: &str,
    recipe: &dyn Recipe,
    source: &Source,
    seed: u64,
) -> Plan {
    let (target, mut course) = (&config.target, recipe.course());
    if config.from(row).is_some() {
        course.start = train::Start::Ready;
    }
    Plan {
        course,
        captions: source.dataset.train.pairs.texts(),
        seed,
        checkpoint_steps: target.checkpoint_steps,
        log_steps: target.log_steps,
        observe_steps: if source.truth.is_some() { target.observe_steps } else { 0 },
    }
}

/// How a row reads captions, with the marks of its target.
fn captions(config: &Config, row: &str) -> Result<Captions> {
    let place = format!("row.{row}");
    let wanted = methods::recipe(config, row)?.captions().map_err(config.inside(&place))?;
    let marks = config.target.marks;
    wanted.marked(marks).ok_or_else(|| {
        let expected =
            "off: the text encoder of this row has marks of its own, or no order of words";
        Error::invalid(config.place("target.marks"), expected, format!("{marks:?}"))
    })
}

#[cfg(test)]
mod tests;

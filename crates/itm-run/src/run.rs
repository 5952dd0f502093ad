//! The models of a target: made, trained into a run directory, read back from it.

use std::path::PathBuf;

use burn::tensor::Device;
use itm_core::learn::{MatchProbability, Method, Word, WordMaps, WordPairs};
use itm_core::scored::Scored;
use itm_core::{Error, Result};

use crate::config::{Config, ImageFeatures};
use crate::encoded::Encoded;
use crate::inputs::Inputs;
use crate::methods::{self, Recipe};
use crate::plan::{self, Bytes, Sizes};
use crate::run_dir::RunDir;
use crate::source::Source;
use crate::split::Split;
use crate::train::{Event, Plan, Progress, Training, restore};

/// What there is to train on: a configuration, its data, and where it computes.
pub(crate) struct Bench {
    /// The target in use.
    pub(crate) config: Config,
    pub(crate) source: Source,
    pub(crate) encoded: Encoded,
    pub(crate) device: Device,
}

impl Bench {
    /// Checks every row against the data, and encodes the data as the rows read them.
    ///
    /// # Errors
    /// If a row's configuration is wrong, two rows read captions in different ways, or captions cannot be read.
    pub(crate) fn new(config: Config, source: Source, device: Device) -> Result<Self> {
        for row in config.rows() {
            check(&config, row, &source)?;
        }
        let encoded = encoded(&config, &source)?;
        Ok(Self { config, source, encoded, device })
    }

    /// Refuses a row that trains with the truth where there is none.
    ///
    /// # Errors
    /// If the row needs the truth and the data have none.
    pub(crate) fn check_truth(&self, row: &str) -> Result<()> {
        if methods::recipe(&self.config, row)?.needs_truth() && self.source.truth.is_none() {
            let place = self.config.place(&format!("row.{row}"));
            let title = &self.source.title;
            let expected =
                format!("a row that trains without the truth, which {title} does not have");
            return Err(Error::invalid(place, expected, "one that leaves true pairs out"));
        }
        Ok(())
    }

    /// What a row's training takes in memory.
    ///
    /// # Errors
    /// As [`Recipe::memory`].
    pub(crate) fn memory(&self, row: &str) -> Result<Bytes> {
        let Bytes { data, loaded, scores, .. } = plan::data(&self.source, &self.encoded);
        let plan = methods::recipe(&self.config, row)?.memory(&self.sizes())?;
        Ok(Bytes { data, loaded, scores, ..plan })
    }

    /// Steps of a row with one seed.
    ///
    /// # Errors
    /// If the row cannot be read.
    pub(crate) fn steps(&self, row: &str) -> Result<usize> {
        let recipe = methods::recipe(&self.config, row)?;
        Ok(training_plan(&self.config, &*recipe, &self.source, 0).steps())
    }

    fn sizes(&self) -> Sizes {
        Sizes::of(&self.source, &self.encoded)
    }

    /// A fresh model of a row and seed.
    ///
    /// # Errors
    /// As [`Recipe::build`].
    pub(crate) fn model(&self, row: &str, seed: u64) -> Result<Model<'_>> {
        let mut recipe = methods::recipe(&self.config, row)?;
        recipe.set_seed(seed);
        let inputs = Inputs::new(&self.source, &self.encoded, recipe.view())?;
        let method = recipe.build(&self.sizes(), inputs.truth(), &self.device)?;
        let plan = training_plan(&self.config, &*recipe, &self.source, seed);
        Ok(Model { row: row.to_owned(), seed, plan, method, inputs, bench: self })
    }
}

/// Refuses a row whose configuration is wrong by itself or for the data.
fn check(config: &Config, row: &str, source: &Source) -> Result<()> {
    let place = format!("row.{row}");
    let (recipe, inside) = (methods::recipe(config, row)?, || config.inside(&place));
    recipe.validate().map_err(inside())?;
    recipe.find_weights().map_err(inside())?;
    let (pictures, features) = (recipe.view().is_some(), config.target.features);
    if pictures != (features == ImageFeatures::Pictures) {
        let wanted = match pictures {
            true => "\"pictures\", which the row's image encoder sees",
            false => "features, which the row's image encoder sees",
        };
        return Err(inside()(Error::invalid("target.features", wanted, format!("{features:?}"))));
    }
    training_plan(config, &*recipe, source, 0).check().map_err(inside())
}

fn training_plan(config: &Config, recipe: &dyn Recipe, source: &Source, seed: u64) -> Plan {
    let target = &config.target;
    Plan {
        course: recipe.course(),
        captions: source.dataset.train.pairs.texts(),
        seed,
        checkpoint_steps: target.checkpoint_steps,
        log_steps: target.log_steps,
        observe_steps: if source.truth.is_some() { target.observe_steps } else { 0 },
    }
}

/// The splits as the rows of a target read them.
fn encoded(config: &Config, source: &Source) -> Result<Encoded> {
    let captions = |row: &str| {
        let place = format!("row.{row}");
        methods::recipe(config, row)?.captions().map_err(config.inside(&place))
    };
    let mut rows = config.rows();
    let first = rows.next().expect("a target has a row");
    let wanted = captions(first)?;
    for row in rows {
        let got = captions(row)?;
        if got != wanted {
            let place = config.place(&format!("row.{row}"));
            let expected = format!("captions read as in row.{first}, {wanted:?}");
            return Err(Error::invalid(place, expected, format!("{got:?}")));
        }
    }
    let marks = config.target.marks;
    let wanted = wanted.marked(marks).ok_or_else(|| {
        let expected = "off: the rows' text encoder has marks of its own";
        Error::invalid(config.place("target.marks"), expected, format!("{marks:?}"))
    })?;
    Encoded::new(&source.dataset, &config.target, &wanted)
}

/// A bench with a run directory: models are trained into it and read from it.
pub(crate) struct Run {
    pub(crate) bench: Bench,
    pub(crate) dir: RunDir,
}

impl Run {
    /// Trains a row with one seed, or goes on training it.
    ///
    /// # Errors
    /// As [`Training::run`].
    pub(crate) fn train(
        &self,
        row: &str,
        seed: u64,
        watch: impl FnMut(Event, &Plan),
    ) -> Result<(Model<'_>, Progress)> {
        let (log, checkpoints) = self.dir.row(row, seed)?;
        let mut model = self.bench.model(row, seed)?;
        let (name, plan, mut watch) = (model.name(), model.plan, watch);
        let (method, inputs) = (&mut *model.method, &mut model.inputs);
        let training =
            Training { name: &name, plan: &plan, method, inputs, checkpoints: &checkpoints };
        let progress = training.run(&log, |event| watch(event, &plan))?;
        Ok((model, progress))
    }

    /// A row and seed as their training left them, by the checkpoint that validation chose.
    ///
    /// # Errors
    /// If the row was not trained to its end, or its checkpoint is damaged or of another run.
    pub(crate) fn trained(&self, row: &str, seed: u64) -> Result<Model<'_>> {
        let folder = self.dir.folder(row, seed);
        if !folder.is_dir() {
            return Err(Error::invalid(folder.display(), "a trained row", "nothing"));
        }
        let mut model = self.bench.model(row, seed)?;
        restore(&mut *model.method, &model.plan, &self.dir.row(row, seed)?.1, &folder)?;
        Ok(model)
    }

    /// Where the log of a row and seed is.
    pub(crate) fn log(&self, row: &str, seed: u64) -> PathBuf {
        self.dir.folder(row, seed).join("log.jsonl")
    }
}

/// A model of a row and seed, with the data that it is asked about.
pub(crate) struct Model<'a> {
    pub(crate) row: String,
    pub(crate) seed: u64,
    pub(crate) plan: Plan,
    pub(crate) method: Box<dyn Method>,
    pub(crate) inputs: Inputs<'a>,
    bench: &'a Bench,
}

impl Model<'_> {
    /// Row and seed as lines name them.
    pub(crate) fn name(&self) -> String {
        format!("{}, seed {}", self.row, self.seed)
    }

    /// The scores of a split.
    ///
    /// # Errors
    /// If an item cannot be read.
    pub(crate) fn scored(&self, split: Split) -> Result<Box<dyn Scored + '_>> {
        self.method.scored(self.inputs.items(split))
    }

    /// P(match | similarity) as the method has learnt it; `None` if it learns none.
    pub(crate) fn posterior(&self) -> Option<MatchProbability> {
        self.method.posterior()
    }

    /// The prior of the posterior, also before the method has learnt it.
    pub(crate) fn prior(&self) -> Option<f64> {
        self.method.prior()
    }

    /// Maps of the words of pairs of a split; `None` if the method makes no maps.
    ///
    /// # Errors
    /// If an item cannot be read.
    pub(crate) fn word_maps(
        &self,
        split: Split,
        pairs: &[(usize, usize)],
    ) -> Result<Option<Vec<WordMaps>>> {
        let captions = &self.bench.source.part(split).0.captions;
        let words =
            |text: usize| -> Result<Vec<Word>> { self.bench.encoded.words(&captions[text]) };
        let items = self.inputs.items(split);
        self.method.word_maps(WordPairs { items, pairs, words: &words })
    }
}

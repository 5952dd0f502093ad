//! The models of a target: made, trained into a run directory, read back from it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn::tensor::Device;
use itm_core::cca::StartInputs;
use itm_core::data::{Features, Regions};
use itm_core::learn::{MatchProbability, Method, Word, WordMaps, WordPairs};
use itm_core::scored::Scored;
use itm_core::start::{InputStatistics, Start, TextForm, mean_regions};
use itm_core::{Error, Result};

use crate::checkpoint::Checkpoints;
use crate::config::{Config, ImageFeatures};
use crate::encoded::{self, Captions, Reading};
use crate::inputs::Inputs;
use crate::methods::{self, Given, Recipe, Sees};
use crate::plan::{self, Bytes, Sizes};
use crate::run_dir::RunDir;
use crate::source::Source;
use crate::split::{Split, Splits};
use crate::starts::{StartAsked, Starts};
use crate::train::{self, Event, Plan, Progress, Training, chosen, restore};

/// What there is to train on: a configuration, its data, and where it computes.
pub(crate) struct Bench {
    /// The target in use.
    pub(crate) config: Config,
    pub(crate) source: Source,
    features: Splits<Features>,
    /// The captions in each way in which a row reads them.
    pub(crate) readings: Vec<Reading>,
    starts: Starts,
    pub(crate) device: Device,
}

impl Bench {
    /// Checks every row against the data, and makes the data ready as the rows read them.
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
        Ok(Self { config, source, features, readings, starts: Starts::default(), device })
    }

    /// The captions as a row reads them.
    fn reading(&self, row: &str) -> Result<&Reading> {
        let captions = captions(&self.config, row)?;
        let found = self.readings.iter().find(|reading| reading.captions == captions);
        Ok(found.expect("each row's was made"))
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

    /// Refuses a row that begins with one whose weights are more or fewer. Others that do not fit show when they are read.
    ///
    /// # Errors
    /// If the weights differ in number.
    pub(crate) fn check_from(&self, row: &str) -> Result<()> {
        let Some(from) = self.config.from(row) else { return Ok(()) };
        let weights = |row: &str| -> Result<u64> {
            Ok(methods::recipe(&self.config, row)?.memory(&self.sizes(row)?)?.parameters / 4)
        };
        let (own, other) = (weights(row)?, weights(from)?);
        if own == other {
            return Ok(());
        }
        let place = self.config.place(&format!("row.{row}, from"));
        let expected = format!("a row of the same shape, {own} weights");
        Err(Error::invalid(place, expected, format!("`{from}` of {other}")))
    }

    /// What a row's training takes in memory.
    ///
    /// # Errors
    /// As [`Recipe::memory`].
    pub(crate) fn memory(&self, row: &str) -> Result<Bytes> {
        let Bytes { data, loaded, scores, .. } =
            plan::data(&self.source, &self.features, &self.readings);
        let recipe = methods::recipe(&self.config, row)?;
        let (plan, reading) = (recipe.memory(&self.sizes(row)?)?, self.reading(row)?);
        let held = [Split::Val, Split::Test].map(|split| {
            let regions = self.source.part(split).0.regions.as_ref();
            let words: Vec<usize> = reading.texts(split).iter().map(Vec::len).collect();
            recipe.evaluation(regions.map_or(&[], Regions::counts), &words)
        });
        let scores = scores + held.into_iter().max().unwrap_or(0);
        let closed_form = plan::closed_form(&self.source);
        Ok(Bytes { data, loaded, scores, closed_form, ..plan })
    }

    /// Steps of a row with one seed.
    ///
    /// # Errors
    /// If the row cannot be read.
    pub(crate) fn steps(&self, row: &str) -> Result<usize> {
        Ok(self.plan(row, 0)?.steps())
    }

    fn plan(&self, row: &str, seed: u64) -> Result<Plan> {
        let recipe = methods::recipe(&self.config, row)?;
        Ok(training_plan(&self.config, row, &*recipe, &self.source, seed))
    }

    fn sizes(&self, row: &str) -> Result<Sizes> {
        Ok(Sizes::of(&self.source, self.reading(row)?))
    }

    /// A fresh model of a row and seed; `folder` keeps the closed form that it begins with.
    ///
    /// # Errors
    /// As [`Recipe::build`] and [`Starts::get`].
    pub(crate) fn model(&self, row: &str, seed: u64, folder: &Path) -> Result<Model<'_>> {
        let (mut recipe, place) = (methods::recipe(&self.config, row)?, format!("row.{row}"));
        recipe.set_seed(seed);
        let reading = self.reading(row)?;
        let inputs = Inputs::new(&self.source, &self.features, reading, recipe.sees())?;
        let start = self.start(&*recipe, reading, folder).map_err(self.config.inside(&place))?;
        let given = Given {
            sizes: &self.sizes(row)?,
            inputs: &InputStatistics::of(&self.features.train, reading.terms()),
            start: start.as_deref(),
            truth: inputs.truth(),
            device: &self.device,
        };
        let method = recipe.build(&given)?;
        let plan = training_plan(&self.config, row, &*recipe, &self.source, seed);
        Ok(Model { row: row.to_owned(), seed, plan, method, inputs, bench: self })
    }
}

impl Bench {
    /// The closed form that a recipe begins with, if it does.
    fn start(
        &self,
        recipe: &dyn Recipe,
        reading: &Reading,
        folder: &Path,
    ) -> Result<Option<Arc<Start>>> {
        let Some(asked) = recipe.start() else { return Ok(None) };
        let (data, config, sees) = (&self.source.dataset, &self.config, recipe.sees());
        let hashes = format!("{} {}", data.sha256, config.sha256);
        let of = format!("{hashes} {sees:?} {:?}", reading.captions);
        let solve = || self.solve(&asked, sees, reading);
        self.starts.get(&asked, &of, folder, solve).map(Some)
    }

    /// Solves a closed form between what a row sees of the training images, of regions the mean, and the stems of their
    /// captions.
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

/// Refuses a row whose configuration is wrong by itself or for the data.
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

/// How a row reads captions, with the marks that its target asks for.
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
        let from = self.bench.config.from(row).map(|from| self.chosen(from, seed)).transpose()?;
        let (log, checkpoints) = self.dir.row(row, seed)?;
        let mut model = self.bench.model(row, seed, self.dir.path())?;
        let (name, plan, mut watch) = (model.name(), model.plan, watch);
        let (method, inputs) = (&mut *model.method, &mut model.inputs);
        let (from, checkpoints) = (from.as_deref(), &checkpoints);
        let training = Training { name: &name, plan: &plan, method, inputs, checkpoints, from };
        let progress = training.run(&log, |event| watch(event, &plan))?;
        Ok((model, progress))
    }

    /// A row and seed as their training left them, by the checkpoint that validation chose.
    ///
    /// # Errors
    /// If the row was not trained to its end, or its checkpoint is damaged or of another run.
    pub(crate) fn trained(&self, row: &str, seed: u64) -> Result<Model<'_>> {
        let (folder, checkpoints) = self.of_trained(row, seed)?;
        let mut model = self.bench.model(row, seed, self.dir.path())?;
        restore(&mut *model.method, &model.plan, &checkpoints, &folder)?;
        Ok(model)
    }

    /// The folder of the checkpoint that validation chose for a row and seed.
    fn chosen(&self, row: &str, seed: u64) -> Result<PathBuf> {
        let (folder, checkpoints) = self.of_trained(row, seed)?;
        chosen(&self.bench.plan(row, seed)?, &checkpoints, &folder)
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
        let reading = self.bench.reading(&self.row)?;
        let words = |text: usize| -> Result<Vec<Word>> { reading.words(&captions[text]) };
        let items = self.inputs.items(split);
        self.method.word_maps(WordPairs { items, pairs, words: &words })
    }
}

#[cfg(test)]
mod tests {
    use itm_core::start::{BagPooling, StartOptions};
    use itm_core::text::Marks;

    use super::*;
    use crate::testing;

    fn bench() -> Bench {
        let (config, source) = testing::small_scenes([120, 4, 4]); // a batch of each row
        Bench::new(config, source, Device::flex()).unwrap()
    }

    fn reading(bench: &Bench, captions: Captions) -> &Reading {
        bench.readings.iter().find(|reading| reading.captions == captions).unwrap()
    }

    fn asked(form: TextForm) -> StartAsked {
        let options =
            StartOptions { ridge_image: 1.0, ridge_text: 2.0, power: 0.5, dims: 8, fill: 0.0 };
        StartAsked { options, width: 8, form }
    }

    /// Rows of a vocabulary are those of the stems of its words; what is no word, and a form that the reading is not in.
    #[test]
    fn a_start_is_in_the_form_that_captions_are_read_in() {
        let bench = bench();
        let [stems, words] =
            [Captions::Stems, Captions::Words(Marks::Off)].map(|of| reading(&bench, of));
        let mean = TextForm::Stems(BagPooling::Mean);
        let pooled = bench.solve(&asked(mean), Sees::Features, stems).unwrap();
        let start = bench.solve(&asked(TextForm::Words), Sees::Features, words).unwrap();
        assert_eq!((&start.image, &start.text.bias), (&pooled.image, &pooled.text.bias));
        let (rows, terms) = (start.text.weight.chunks(8), stems.terms().unwrap());
        assert_eq!(rows.len(), words.vocabulary);
        let (mut known, mut zeros) = (0, 0);
        for (word, row) in words.words_by_number().unwrap().into_iter().zip(rows) {
            match terms.numbers(word)[..] {
                [stem] => {
                    assert_eq!(row, &pooled.text.weight[stem as usize * 8..][..8], "{word}");
                    known += 1;
                }
                _ => {
                    assert_eq!(row, [0.0; 8], "{word}");
                    zeros += 1;
                }
            }
        }
        assert!(known > 20 && zeros >= 2, "{known} words with a stem, {zeros} without");
        for (form, reading) in [(TextForm::Words, stems), (mean, words)] {
            let line = bench.solve(&asked(form), Sees::Features, reading).unwrap_err().to_string();
            assert_eq!(line, "model.start: expected a text encoder of stems or words, got another");
        }
    }

    /// Regions 0 and 2·x have the mean x: the map is the one of features x, here the first 20 of each image's own.
    #[test]
    fn an_image_map_of_regions_is_that_of_their_mean() {
        let mut bench = bench();
        let (all, images) = (bench.features.train.clone(), bench.features.train.rows());
        let cut = |by: f32| (0..images).map(move |i| (i, by));
        let rows = |(i, by): (usize, f32)| all.row(i)[..20].iter().map(move |x| by * x);
        let pairs = cut(0.0).zip(cut(2.0)).flat_map(|(a, b)| [a, b]);
        let regions = Regions::new(20, vec![2; images], pairs.flat_map(rows).collect()).unwrap();
        let means = Features { dim: 20, values: cut(1.0).flat_map(rows).collect() };
        bench.source.dataset.train.regions = Some(regions);
        let asked = asked(TextForm::Stems(BagPooling::TfIdf));
        let solve = |bench: &Bench, sees| {
            bench.solve(&asked, sees, reading(bench, Captions::Stems)).unwrap()
        };
        let of_regions = solve(&bench, Sees::Regions);
        assert_ne!(of_regions.image.weight.len(), solve(&bench, Sees::Features).image.weight.len());
        bench.features.train = means;
        assert_eq!(of_regions, solve(&bench, Sees::Features));
    }
}

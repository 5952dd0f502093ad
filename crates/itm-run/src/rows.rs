//! One row with one seed: builds the method, trains it, evaluates it on the test split.

use std::path::{Path, PathBuf};
use std::time::Instant;

use burn::tensor::Device;
use fne::FneConfig;
use hubness::training::{HalConfig, Similarity, score_matrix};
use itm_core::eval::{Evaluation, TiePolicy, evaluate};
use itm_core::tiles::{Embeddings, Tiles};
use itm_core::{Error, Pairs, Result, ScoreMatrix};

use crate::config::{Config, ImageFeatures, Method as MethodName};
use crate::encoded::{Captions, Encoded};
use crate::explain::{Queries, false_negatives};
use crate::log::Log;
use crate::method::{
    Course, Embedded, Inputs, MatchProbability, Method, Recipe, Sees, Split, WordMaps,
};
use crate::plan::{self, Bytes, Sizes};
use crate::reproduce::Job;
use crate::results::SeedRun;
use crate::run_dir::RunDir;
use crate::source::Source;
use crate::train::{Event, Plan, restore, train};
use crate::{figures, pointing, progress, results, word_maps};

/// Queries of each kind whose most probable false negatives a report shows.
const FALSE_NEGATIVES: usize = 3;
/// Captions whose maps a report shows.
const WORD_PATCHES: usize = 4;

/// What the runner does with a row, whatever its method.
pub(crate) struct Runner {
    /// Reads a row's configuration and checks it against the data, before anything is trained.
    pub(crate) check: fn(&Config, &str, &Source) -> Result<()>,
    /// Whether a row that is asked for has what it trains with: the truth, if it needs it.
    pub(crate) check_truth: fn(&Config, &str, &Source) -> Result<()>,
    /// How a row reads captions.
    captions: fn(&Config, &str) -> Result<Captions>,
    /// What a row's training takes in memory.
    pub(crate) memory: fn(&Config, &str, &Source, &Encoded) -> Result<Bytes>,
    /// Steps of a row with one seed.
    pub(crate) steps: fn(&Config, &str, &Source) -> Result<usize>,
    /// Trains a row with one seed; its scores on the test split.
    pub(crate) run: fn(&Job, &str, u64) -> Result<(SeedRun, ScoreMatrix)>,
    /// Embeds splits by a row that was trained; what it has learnt of matches.
    learnt: Ask,
    /// Maps of words by a row that was trained.
    word_maps: AskMaps,
}

/// A trained row and seed, its folder, and the pairs of a split.
type AskMaps =
    fn(&Trained, (&str, u64), &Path, (Split, &[(usize, usize)])) -> Result<Option<Vec<WordMaps>>>;

/// A trained row and seed, its folder, and the splits that are asked for.
type Ask = fn(&Trained, (&str, u64), &Path, &[Split]) -> Result<Learnt>;

impl Runner {
    /// That of a method.
    pub(crate) fn of(method: MethodName) -> Self {
        match method {
            MethodName::Fne => Self::with::<FneConfig>(),
            MethodName::Hal => Self::with::<HalConfig>(),
        }
    }

    fn with<R: Recipe>() -> Self {
        Self {
            check: check::<R>,
            check_truth: check_truth::<R>,
            captions: captions::<R>,
            memory: memory::<R>,
            steps: steps::<R>,
            run: run::<R>,
            learnt: learnt::<R>,
            word_maps: maps_of::<R>,
        }
    }
}

fn check<R: Recipe>(config: &Config, row: &str, source: &Source) -> Result<()> {
    let (values, place): (R, _) = (config.row(row)?, format!("row.{row}"));
    let inside = || config.inside(&place);
    values.validate().map_err(inside())?;
    let (sees, features) = (values.sees(), config.target.features);
    if (sees == Sees::Pictures) != (features == ImageFeatures::Pictures) {
        let wanted = match sees {
            Sees::Pictures => "\"pictures\", which the row's image encoder sees",
            Sees::Features => "features, which the row's image encoder sees",
        };
        return Err(inside()(Error::invalid("target.features", wanted, format!("{features:?}"))));
    }
    plan(config, values.course(), source, 0).check().map_err(inside())
}

fn check_truth<R: Recipe>(config: &Config, row: &str, source: &Source) -> Result<()> {
    if config.row::<R>(row)?.needs_truth() && source.truth.is_none() {
        let place = config.place(&format!("row.{row}"));
        let expected =
            format!("a row that trains without the truth, which {} does not have", source.title);
        return Err(Error::invalid(place, expected, "one that leaves true pairs out"));
    }
    Ok(())
}

/// A row and seed as lines name it.
fn named(row: &str, seed: u64) -> String {
    format!("{row}, seed {seed}")
}

fn plan(config: &Config, course: Course, source: &Source, seed: u64) -> Plan {
    let target = &config.target;
    Plan {
        course,
        captions: source.dataset.train.pairs.texts(),
        seed,
        checkpoint_steps: target.checkpoint_steps,
        log_steps: target.log_steps,
        observe_steps: if source.truth.is_some() { target.observe_steps } else { 0 },
    }
}

/// The splits as the rows of a target read them.
///
/// # Errors
/// If two rows read captions in different ways, or captions cannot be read.
pub(crate) fn encoded(config: &Config, source: &Source) -> Result<Encoded> {
    let captions = Runner::of(config.target.method).captions;
    let mut rows = config.rows();
    let first = rows.next().expect("a target has a row");
    let wanted = captions(config, first)?;
    for row in rows {
        let got = captions(config, row)?;
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

fn captions<R: Recipe>(config: &Config, row: &str) -> Result<Captions> {
    let place = format!("row.{row}");
    config.row::<R>(row)?.captions().map_err(config.inside(&place))
}

fn memory<R: Recipe>(
    config: &Config,
    row: &str,
    source: &Source,
    encoded: &Encoded,
) -> Result<Bytes> {
    let Bytes { data, loaded, scores, .. } = plan::data(source, encoded);
    let plan = config.row::<R>(row)?.memory(&Sizes::of(source, encoded))?;
    Ok(Bytes { data, loaded, scores, ..plan })
}

fn steps<R: Recipe>(config: &Config, row: &str, source: &Source) -> Result<usize> {
    Ok(plan(config, config.row::<R>(row)?.course(), source, 0).steps())
}

fn run<R: Recipe>(job: &Job, row: &str, seed: u64) -> Result<(SeedRun, ScoreMatrix)> {
    let started = Instant::now();
    let mut recipe: R = job.used.row(row)?;
    recipe.set_seed(seed);
    let plan = plan(&job.used, recipe.course(), &job.source, seed);
    let (log, checkpoints) = job.run.row(row, seed)?;
    let name = named(row, seed);
    let mut method = recipe.build(Inputs {
        name: name.clone(),
        source: &job.source,
        encoded: &job.encoded,
        truth: job.source.truth.as_ref().map(|truth| &truth.train),
        device: &job.device,
    })?;
    let validate = |embedded: &Embedded| evaluation(embedded, &job.source.dataset.val.pairs);
    let bar = progress::bar(&name, "steps");
    bar.set_length(plan.steps() as u64);
    let watch = |event: Event| match event {
        Event::Notice(line) => progress::say(line),
        Event::Step(at) => {
            bar.set_position(at.step as u64);
            if let Some(line) = job.estimate.step(plan.steps()) {
                progress::say(line);
            }
        }
    };
    let progress = train(&mut method, &plan, validate, &checkpoints, &log, watch)?;
    bar.finish_and_clear();

    let test = method.embed(Split::Test)?;
    let scores = scores(&test)?;
    let mut result = SeedRun::evaluate(job, seed, &scores)?;
    if let Some(rescoring) = &job.rescoring {
        let spinner = progress::spinner(&format!("{name}: re-scored"));
        let both = [method.embed(Split::Val)?, test.clone()];
        let folder = job.run.folder(row, seed).join("rescored");
        result.rescored = rescoring.measure(&folder, &both)?;
        spinner.finish_and_clear();
    }
    let log = Log::read(&log)?;
    result.curve = Some(figures::curve(row, seed, &log, plan.epoch_steps()));
    result.epochs = results::of_log(&log);
    let posterior = method.posterior();
    let of_test = figures::similarities(row, seed, &scores, &job.source, posterior.as_ref());
    result.similarities = Some(of_test);
    if let Some(posterior) = &posterior {
        let queries = Queries::spread(&job.source, Split::Test, FALSE_NEGATIVES);
        let asked = (Split::Test, &queries);
        result.false_negatives = false_negatives(row, &test, posterior, &job.source, asked);
    }
    result.prior = method.prior();
    result.pointing = pointing::measure(&method, &job.source)?;
    if seed == job.seeds[0] {
        let captions = word_maps::spread(&job.source, Split::Test, WORD_PATCHES);
        let pairs = word_maps::pairs(&job.source, Split::Test, &captions, None);
        if let Some(maps) = method.word_maps(Split::Test, &word_maps::numbers(&pairs))? {
            let (of, asked) = ((row, seed), (Split::Test, pairs.as_slice()));
            result.word_patches = word_maps::shown(of, &job.source, asked, maps, None);
        }
    }
    let best = progress.best.map_or(f64::NAN, |best| best.rsum);
    let seconds = started.elapsed().as_secs_f64();
    progress::say(format!(
        "{name}: rSum {:.1} on test, {best:.1} on validation ({})",
        result.evaluation.rsum,
        crate::summary::duration(seconds)
    ));
    result.progress = Some(progress);
    result.seconds = seconds;
    Ok((result, scores))
}

/// The models that a finished run has left.
pub(crate) struct Trained {
    pub(crate) config: Config,
    pub(crate) source: Source,
    pub(crate) encoded: Encoded,
    pub(crate) run: RunDir,
    pub(crate) device: Device,
}

impl Trained {
    /// A row's embeddings of the validation and the test split, by the checkpoint that validation chose.
    ///
    /// # Errors
    /// If the row was not trained to its end, or its checkpoint is damaged or of another run.
    pub(crate) fn embed(&self, row: &str, seed: u64) -> Result<[Embedded; 2]> {
        let (mut embedded, _) = self.ask(row, seed, &[Split::Val, Split::Test])?;
        let test = embedded.pop().expect("one a split");
        Ok([embedded.pop().expect("one a split"), test])
    }

    /// A row's embeddings of a split by the same checkpoint, and what it has learnt of matches.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub(crate) fn learnt(
        &self,
        row: &str,
        seed: u64,
        split: Split,
    ) -> Result<(Embedded, Option<MatchProbability>)> {
        let (mut embedded, posterior) = self.ask(row, seed, &[split])?;
        Ok((embedded.pop().expect("one a split"), posterior))
    }

    /// A row's maps of the words of pairs of a split; `None` if it has none such.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub(crate) fn word_maps(
        &self,
        row: &str,
        seed: u64,
        asked: (Split, &[(usize, usize)]),
    ) -> Result<Option<Vec<WordMaps>>> {
        let folder = self.folder(row, seed)?;
        (Runner::of(self.config.target.method).word_maps)(self, (row, seed), &folder, asked)
    }

    fn ask(&self, row: &str, seed: u64, splits: &[Split]) -> Result<Learnt> {
        let folder = self.folder(row, seed)?;
        (Runner::of(self.config.target.method).learnt)(self, (row, seed), &folder, splits)
    }

    fn folder(&self, row: &str, seed: u64) -> Result<PathBuf> {
        let folder = self.run.folder(row, seed);
        if !folder.is_dir() {
            return Err(Error::invalid(folder.display(), "a trained row", "nothing"));
        }
        Ok(folder)
    }
}

/// Embeddings of splits, and how probable a match is at a similarity.
type Learnt = (Vec<Embedded>, Option<MatchProbability>);

fn learnt<R: Recipe>(
    trained: &Trained,
    (row, seed): (&str, u64),
    folder: &Path,
    splits: &[Split],
) -> Result<Learnt> {
    let method = restored::<R>(trained, (row, seed), folder)?;
    let embedded = splits.iter().map(|&split| method.embed(split)).collect::<Result<_>>()?;
    Ok((embedded, method.posterior()))
}

fn maps_of<R: Recipe>(
    trained: &Trained,
    row: (&str, u64),
    folder: &Path,
    (split, pairs): (Split, &[(usize, usize)]),
) -> Result<Option<Vec<WordMaps>>> {
    restored::<R>(trained, row, folder)?.word_maps(split, pairs)
}

/// A row as its training left it.
fn restored<'a, R: Recipe>(
    trained: &'a Trained,
    (row, seed): (&str, u64),
    folder: &Path,
) -> Result<R::Method<'a>> {
    let Trained { config, source, encoded, run, device } = trained;
    let mut recipe: R = config.row(row)?;
    recipe.set_seed(seed);
    let name = named(row, seed);
    let mut method = recipe.build(Inputs { name, source, encoded, truth: None, device })?;
    let plan = plan(config, recipe.course(), source, seed);
    restore(&mut method, &plan, &run.row(row, seed)?.1, folder)?;
    Ok(method)
}

/// All scores of embedded images and texts.
pub(crate) fn scores(embedded: &Embedded) -> Result<ScoreMatrix> {
    let Embedded { dim, images, texts, similarity } = embedded;
    if *similarity == Similarity::Order {
        return score_matrix(*similarity, *dim, images, texts);
    }
    let images = Embeddings::new("image embeddings", images.len() / dim, *dim, images)?;
    let texts = Embeddings::new("text embeddings", texts.len() / dim, *dim, texts)?;
    Ok(Tiles::new(images, texts)?.scores())
}

/// Recalls of embedded images and texts.
pub(crate) fn evaluation(embedded: &Embedded, pairs: &Pairs) -> Result<Evaluation> {
    evaluate(&scores(embedded)?, pairs, itm_core::eval::Protocol::Full, TiePolicy::Index)
}

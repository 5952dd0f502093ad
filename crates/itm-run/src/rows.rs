//! One row with one seed: builds the method, trains it, evaluates it on the test split.

use std::time::Instant;

use burn::tensor::Device;
use fne::{FneConfig, ImageConfig, TextConfig};
use itm_core::eval::{Evaluation, TiePolicy, evaluate};
use itm_core::tiles::{Embeddings, Tiles};
use itm_core::{Error, Pairs, Result, ScoreMatrix};

use crate::config::{Config, Method as MethodName};
use crate::encoded::Encoded;
use crate::figures;
use crate::fne_method::FneMethod;
use crate::log::Log;
use crate::method::{Embedded, Method, Split};
use crate::plan::{Bytes, fne as memory};
use crate::progress;
use crate::reproduce::Job;
use crate::results::SeedRun;
use crate::run_dir::RunDir;
use crate::source::Source;
use crate::train::{Event, Plan, restore, train};

/// Reads a row's configuration and checks it against the data, before anything is trained.
pub(crate) fn check(config: &Config, row: &str, source: &Source) -> Result<()> {
    match config.target.method {
        MethodName::Fne => {
            let (values, place): (FneConfig, _) = (config.row(row)?, format!("row.{row}"));
            let inside = || config.inside(&place);
            values.validate().map_err(inside())?;
            given_features(&values).map_err(inside())?;
            plan(config, &values, source, 0).check().map_err(inside())
        }
    }
}

/// A row and seed as lines name it.
fn named(row: &str, seed: u64) -> String {
    format!("{row}, seed {seed}")
}

/// The runner hands out given features and words.
fn given_features(values: &FneConfig) -> Result<()> {
    match (&values.model.image, &values.model.text) {
        (ImageConfig::Features(_), TextConfig::Gru(_)) => Ok(()),
        (ImageConfig::Vit(_), _) => Err(Error::invalid("model.image.kind", "features", "vit")),
        (_, TextConfig::Bert(_)) => Err(Error::invalid("model.text.kind", "gru", "bert")),
    }
}

fn plan(config: &Config, row: &FneConfig, source: &Source, seed: u64) -> Plan {
    let target = &config.target;
    Plan {
        epochs: row.train.epochs,
        batch: row.train.batch,
        captions: source.dataset.train.pairs.texts(),
        seed,
        checkpoint_steps: target.checkpoint_steps,
        log_steps: target.log_steps,
        observe_steps: if source.truth.is_some() { target.observe_steps } else { 0 },
    }
}

/// What a row's training takes in memory.
pub(crate) fn memory(
    config: &Config,
    row: &str,
    source: &Source,
    encoded: &Encoded,
) -> Result<Bytes> {
    let Bytes { data, loaded, scores, .. } = memory::data(source, encoded);
    match config.target.method {
        MethodName::Fne => {
            let plan = memory::plan(&config.row(row)?, &memory::Sizes::of(source, encoded));
            Ok(Bytes { data, loaded, scores, ..plan })
        }
    }
}

/// Steps of all rows and seeds of a job.
pub(crate) fn steps(
    config: &Config,
    rows: &[String],
    seeds: usize,
    source: &Source,
) -> Result<usize> {
    rows.iter().map(|row| Ok(plan(config, &config.row(row)?, source, 0).steps() * seeds)).sum()
}

/// A trained row with one seed, and its scores on the test split.
pub(crate) fn run(job: &Job, row: &str, seed: u64) -> Result<(SeedRun, ScoreMatrix)> {
    let started = Instant::now();
    let mut config: FneConfig = job.used.row(row)?;
    config.train.seed = seed;
    let plan = plan(&job.used, &config, &job.source, seed);
    let (log, checkpoints) = job.run.row(row, seed)?;
    let truth = job.source.truth.as_ref().map(|truth| &truth.train);
    let name = named(row, seed);
    let (data, encoded) = (&job.source.dataset, &job.encoded);
    let mut method = FneMethod::new(name.clone(), &config, data, encoded, truth, &job.device)?;
    let validate = |embedded: &Embedded| evaluation(embedded, &job.source.dataset.val.pairs);
    let bar = progress::bar(&name, "steps");
    bar.set_length(plan.steps() as u64);
    let say = |line: &str| bar.suspend(|| progress::say(line)); // the bar would be torn apart
    let watch = |event: Event| match event {
        Event::Notice(line) => say(line),
        Event::Step(at) => {
            bar.set_position(at.step as u64);
            if let Some(line) = job.estimate.step(plan.steps()) {
                say(&line);
            }
        }
    };
    let progress = train(&mut method, &plan, validate, &checkpoints, &log, watch)?;
    bar.finish_and_clear();

    let scores = scores(&method.embed(Split::Test))?;
    let mut result = SeedRun::evaluate(job, seed, &scores)?;
    result.curve = Some(figures::curve(row, seed, &Log::read(&log)?, plan.epoch_steps()));
    let posterior = method.posterior();
    result.similarities = Some(figures::similarities(row, seed, &scores, &job.source, posterior));
    result.prior = Some(config.sampler.prior);
    let best = progress.best.map_or(f64::NAN, |best| best.rsum);
    let seconds = started.elapsed().as_secs_f64();
    progress::say(format!(
        "{name}: rSum {:.1} on test, {best:.1} on validation ({})",
        result.evaluation.rsum,
        crate::summary::duration(seconds)
    ));
    result.progress = Some(progress);
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
        let folder = self.run.folder(row, seed);
        if !folder.is_dir() {
            return Err(Error::invalid(folder.display(), "a trained row", "nothing"));
        }
        match self.config.target.method {
            MethodName::Fne => {
                let mut values: FneConfig = self.config.row(row)?;
                values.train.seed = seed;
                let (data, device) = (&self.source.dataset, &self.device);
                let mut method =
                    FneMethod::new(named(row, seed), &values, data, &self.encoded, None, device)?;
                let plan = plan(&self.config, &values, &self.source, seed);
                restore(&mut method, &plan, &self.run.row(row, seed)?.1, &folder)?;
                Ok([method.embed(Split::Val), method.embed(Split::Test)])
            }
        }
    }
}

/// All scores of embedded images and texts.
pub(crate) fn scores(embedded: &Embedded) -> Result<ScoreMatrix> {
    let Embedded { dim, images, texts } = embedded;
    let images = Embeddings::new("image embeddings", images.len() / dim, *dim, images)?;
    let texts = Embeddings::new("text embeddings", texts.len() / dim, *dim, texts)?;
    Ok(Tiles::new(images, texts)?.scores())
}

/// Recalls of embedded images and texts.
pub(crate) fn evaluation(embedded: &Embedded, pairs: &Pairs) -> Result<Evaluation> {
    evaluate(&scores(embedded)?, pairs, itm_core::eval::Protocol::Full, TiePolicy::Index)
}

//! Measures a trained model: recalls on the test split, the audit, re-scoring, and the figures of a report.

use std::time::Instant;

use itm_core::scored::Scored;
use itm_core::{Result, ScoreMatrix};

use crate::bench::Model;
use crate::explanations::queries::{Queries, false_negatives};
use crate::explanations::{pointing, word_maps};
use crate::job::Job;
use crate::log::Log;
use crate::report::Figures;
use crate::results::{SeedRun, Trained};
use crate::split::Split;
use crate::train::Progress;
use crate::{audit, edited, figures, progress, sentences};

/// Queries of each kind whose most probable false negatives a report shows.
const FALSE_NEGATIVES: usize = 3;
/// Captions whose maps a report shows.
const WORD_MAPS: usize = 4;

/// The measurements of a model.
pub(crate) struct Measured {
    pub(crate) run: SeedRun,
    pub(crate) figures: Figures,
    /// All test scores, if they are averaged with the scores of other models.
    pub(crate) scores: Option<ScoreMatrix>,
}

/// Measures a model on the test split; `started` is when its training began.
///
/// # Errors
/// If an item, the log or a file of the re-scoring cannot be read or written.
pub(crate) fn measure(
    job: &Job,
    model: &Model,
    progress: Progress,
    started: Instant,
) -> Result<Measured> {
    let scored = job.run.scores(model, Split::Test)?;
    let held;
    let test: &dyn Scored = match scored.rows() {
        Some(rows) => rows,
        None => {
            held = scored.matrix()?; // a model that reads image and text together scores each pair only once
            &held
        }
    };
    let mut run = SeedRun::evaluate(job, model.seed, test)?;
    if let Some(rescoring) = &job.rescoring {
        let spinner = progress::spinner(&format!("{}: re-scored", model.name()));
        let folder = job.run.dir.folder(&model.row, model.seed).join("rescored");
        run.rescored = rescoring.measure(&folder, &*job.run.scores(model, Split::Val)?, test)?;
        spinner.finish_and_clear();
    }
    let log = Log::read(&job.run.log(&model.row, model.seed))?;
    run.trained = Some(Trained {
        progress,
        epochs: audit::of_log(&log),
        prior: model.prior(),
        pointing: pointing::measure(&job.run.bench.source, test, |pairs| {
            model.word_maps(Split::Test, pairs)
        })?,
        sentences: sentences::measure(&job.run.bench.source, model)?,
        edited: edited::measure(&job.run.bench.source, model, job.asked.target.target.edits)?,
    });
    let mut drawn = Figures::default();
    drawn.curves.push(figures::curve(&model.row, model.seed, &log, model.plan.epoch_steps()));
    if model.seed == job.asked.seeds[0] {
        draw(job, model, test, &mut drawn)?;
    }
    run.seconds = started.elapsed().as_secs_f64();
    let view = &job.asked.view;
    let averaged = view.ensemble > 1 || view.together.contains(&model.row);
    let scores = averaged.then(|| test.matrix()).transpose()?;
    Ok(Measured { run, figures: drawn, scores })
}

/// Draws what a report shows only for the first seed.
fn draw(job: &Job, model: &Model, test: &dyn Scored, drawn: &mut Figures) -> Result<()> {
    let (row, source) = (&model.row[..], &job.run.bench.source);
    let posterior = model.posterior();
    let of_test = figures::similarities(row, model.seed, test, source, posterior.as_ref())?;
    drawn.similarities.push(of_test);
    if job.asked.view.rows.first().is_some_and(|first| first == row) {
        drawn.examples = figures::examples(row, test, source)?;
    }
    if let Some(posterior) = &posterior {
        let queries = Queries::spread(source, Split::Test, FALSE_NEGATIVES);
        let asked = (Split::Test, &queries);
        drawn.false_negatives = false_negatives(row, test, posterior, source, asked)?;
    }
    let captions = word_maps::spread(source, Split::Test, WORD_MAPS);
    let pairs = word_maps::pairs(source, Split::Test, &captions, None)?;
    if let Some(maps) = model.word_maps(Split::Test, &word_maps::numbers(&pairs))? {
        let asked = (Split::Test, pairs.as_slice());
        drawn.word_maps = word_maps::shown((row, model.seed), source, asked, maps, None);
    }
    Ok(())
}

//! `itm reproduce`: trains the rows of an experiment, evaluates them beside the baselines, and writes the reports.

use std::fs;
use std::path::Path;
use std::time::Instant;

use itm_core::{Error, Result, ScoreMatrix};
use itm_report::format::duration;

use crate::cli::{How, What};
use crate::config::Config;
use crate::estimate::Estimate;
use crate::experiment::Experiment;
use crate::measures::AllMeasures;
use crate::report::{CCA, Detail};
use crate::rescore::Rescoring;
use crate::results::{RowResult, SeedRun, measures};
use crate::train::Event;
use crate::{parallel, progress, report, results, stop};

/// Trains the rows that the command line names, and writes their reports into the run directory; or only says what it would train.
///
/// # Errors
/// If the command line, the configuration, the data, the memory or the disk is at fault. The error is one line.
pub(crate) fn reproduce(target: Config, what: &What, how: &How, configs: &Path) -> Result<()> {
    let started = Instant::now();
    let experiment = Experiment::new(target, what, how, configs)?;
    if how.plan {
        progress::say(experiment.lines(None));
        return Ok(());
    }
    let experiment = experiment.begin(how)?;
    let rescoring = Rescoring::new(&experiment)?;
    let measures = measures(&experiment, rescoring.as_ref());
    let mut rows = Vec::from_iter(cca(&experiment, &measures)?);
    let expected = results::expected(&experiment)?;
    stop::listen()?;
    rows.extend(train_rows(&experiment, &measures)?);
    let mut of_all =
        results::report(&experiment, expected, &rows, started.elapsed().as_secs_f64())?;
    let sections = measures.iter().map(|measure| Ok(measure.section(&mut of_all)?.filled()));
    let sections = sections.collect::<Result<Vec<_>>>()?;
    let folder = experiment.folder();
    fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
    report::write(&folder, &of_all, &sections)?;
    let palette = itm_report::terminal::Palette::of(&std::io::stdout());
    let detail = if how.verbose { Detail::Full } else { Detail::Short };
    progress::say_painted(&report::terminal(&of_all, &sections, detail, palette));
    if let Some(rescoring) = rescoring.as_ref().filter(|_| !experiment.view.rescore.is_empty()) {
        rescoring.write(&experiment, &of_all, &folder, started)?;
    }
    progress::say(format!("Report: {}", folder.join("report.html").display()));
    Ok(())
}

/// Trains and measures every row with every seed, row by row. A row that another row begins with is trained first.
fn train_rows(experiment: &Experiment, measures: &AllMeasures) -> Result<Vec<RowResult>> {
    let Experiment { seeds, jobs, .. } = experiment;
    let (rows, estimate) = (&experiment.view.rows, Estimate::new(experiment.steps(), *jobs));
    let mut all: Vec<_> = rows.iter().map(|row| RowResult::trained(row)).collect();
    for depth in 0.. {
        let now = |row: &usize| depth_of(&experiment.run.config, rows, &rows[*row]) == depth;
        let now: Vec<_> = (0..rows.len()).filter(now).collect();
        if now.is_empty() {
            break;
        }
        let task = |number: usize| (now[number / seeds.len()], seeds[number % seeds.len()]);
        let make = |number| {
            let (row, seed) = task(number);
            train_and_measure(experiment, measures, (&rows[row], seed), &estimate)
        };
        let take =
            |number, (run, scores)| all[task(number).0].add(experiment, measures, run, scores);
        parallel::in_order(now.len() * seeds.len(), *jobs, make, take)?;
    }
    let joined = RowResult::joined(experiment, measures, &mut all)?;
    let of_rows = all.into_iter().flat_map(|row| row.with_ensembles(experiment.view.ensemble));
    Ok(of_rows.chain(joined).collect())
}

/// How many of these rows must be trained, one after the other, before a row.
fn depth_of(config: &Config, rows: &[String], row: &str) -> usize {
    let from = config.from(row).filter(|from| rows.iter().any(|row| row == from));
    from.map_or(0, |from| 1 + depth_of(config, rows, from))
}

fn train_and_measure(
    experiment: &Experiment,
    measures: &AllMeasures,
    (row, seed): (&str, u64),
    estimate: &Estimate,
) -> Result<(SeedRun, Option<ScoreMatrix>)> {
    let started = Instant::now();
    let steps = experiment.run.plan(row, seed).steps();
    let bar = progress::bar(&format!("{row}, seed {seed}"), "steps", steps);
    let (model, progress) = experiment.run.train(row, seed, |event| match event {
        Event::Notice(line) => progress::say(line),
        Event::Step(at) => {
            bar.set_position(at.step as u64);
            if let Some(line) = estimate.step(steps) {
                progress::say(line);
            }
        }
    })?;
    bar.finish_and_clear();
    let best = progress.best.map_or(f64::NAN, |best| best.rsum);
    let (mut run, scores) = SeedRun::of_model(experiment, measures, &model, &progress)?;
    run.seconds = started.elapsed().as_secs_f64();
    say_reached(&model.name(), &run, best, run.seconds);
    Ok((run, scores))
}

/// Says what a model reaches, and how long it took.
fn say_reached(name: &str, run: &SeedRun, validation: f64, seconds: f64) {
    let (test, time) = (run.evaluation.rsum, duration(seconds));
    let line = format!("{name}: rSum {test:.1} on test, {validation:.1} on validation ({time})");
    progress::say(line);
}

/// The closed-form baseline, with parameters chosen on the validation split; `None` if images have neither features nor given rows.
fn cca(experiment: &Experiment, measures: &AllMeasures) -> Result<Option<RowResult>> {
    let train = &experiment.run.source.dataset.train;
    if train.features.dim + train.embeddings.images.dim == 0 {
        return Ok(None);
    }
    let started = Instant::now();
    let _spinner = progress::spinner("CCA (closed form)");
    let (cca, scores) = experiment.run.cca()?;
    let run = SeedRun::evaluate(experiment, measures, (CCA, 0), &scores, None)?;
    let seconds = started.elapsed().as_secs_f64();
    say_reached(CCA, &run, cca.validation_rsum, seconds);
    Ok(Some(RowResult::closed_form(run, &cca, seconds)))
}

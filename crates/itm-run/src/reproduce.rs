//! `itm reproduce`: resolves what was asked, trains the rows, evaluates them beside the baselines, writes the reports.

use std::path::{Path, PathBuf};
use std::time::Instant;

use itm_core::{Error, Result};

use crate::cli;
use crate::config::Config;
use crate::devices::device;
use crate::results::{Results, RowResult};
use crate::run_dir::{Identity, RunDir, new_path, newest_path};
use crate::source::Source;
use crate::{progress, report, rows, summary};

/// What a command line comes to, printed before anything is trained.
pub(crate) struct Job {
    /// The target that was asked for.
    pub(crate) asked: Config,
    /// The target in use: the same, or its substitute where the data are missing.
    pub(crate) used: Config,
    pub(crate) source: Source,
    pub(crate) backend: String,
    pub(crate) device: burn::tensor::Device,
    pub(crate) rows: Vec<String>,
    pub(crate) seeds: Vec<u64>,
    pub(crate) run: RunDir,
}

/// Runs a target and writes its reports into the run directory, which is returned.
///
/// # Errors
/// Whatever is wrong with the command line, the configuration, the data or the disk: one line.
pub fn reproduce(args: &cli::Reproduce, configs: &Path) -> Result<PathBuf> {
    let started = Instant::now();
    let job = resolve(args, configs)?;
    progress::say(summary::resolved(&job));
    let mut results = Results::baselines(&job)?;
    for row in &job.rows {
        let row_started = Instant::now();
        let mut result = RowResult::new(row);
        for &seed in &job.seeds {
            result.push(rows::run(&job, row, seed)?);
        }
        result.seconds = row_started.elapsed().as_secs_f64();
        results.push(result);
    }
    let input = results.report(&job, started.elapsed().as_secs_f64())?;
    report::write(job.run.path(), &input)?;
    progress::say(report::terminal(&input.report, report::Palette::of_stdout()));
    progress::say(format!("Report: {}", job.run.path().join("report.html").display()));
    Ok(job.run.path().to_path_buf())
}

fn resolve(args: &cli::Reproduce, configs: &Path) -> Result<Job> {
    let asked = Config::load(configs, &args.target)?;
    if let Some(table) = args.table.filter(|&t| t != asked.target.table) {
        let expected = format!("{}, the one table of {} so far", asked.target.table, asked.name);
        return Err(Error::invalid("--table", expected, table));
    }
    let count = args.seeds.unwrap_or(asked.target.seeds);
    if count == 0 {
        return Err(Error::invalid("--seeds", "at least 1", 0));
    }
    let device = device(&args.backend)?;
    let rows = rows(args, &asked)?;
    let (used, source) = Source::open(&asked, args.data.as_deref(), configs)?;
    for row in &rows {
        rows::check(&used, row, &source)?; // every row's configuration, before the first is trained
    }
    let identity = Identity {
        target: asked.name.clone(),
        config_sha256: used.sha256.clone(),
        data_sha256: source.dataset.sha256.clone(),
        backend: args.backend.clone(),
    };
    let run = if args.resume {
        let path = args.out.clone().or_else(|| newest_path(&asked.name));
        let none = || Error::invalid("--resume", format!("a run of {} below `runs`", asked.name), "none");
        RunDir::open(path.ok_or_else(none)?, identity)?
    } else {
        let path = args.out.clone().unwrap_or_else(|| new_path(&asked.name));
        RunDir::create(path, identity, &used.text)?
    };
    let seeds = (0..count).collect();
    Ok(Job { asked, used, source, backend: args.backend.clone(), device, rows, seeds, run })
}

fn rows(args: &cli::Reproduce, config: &Config) -> Result<Vec<String>> {
    let Some(wanted) = &args.rows else { return Ok(config.rows().map(str::to_owned).collect()) };
    let known: Vec<_> = config.rows().collect();
    for row in wanted {
        if !known.contains(&row.as_str()) {
            let expected = format!("some of {}", known.join(", "));
            return Err(Error::invalid("--rows", expected, format!("`{row}`")));
        }
    }
    let chosen = known.iter().filter(|row| wanted.iter().any(|w| w == *row));
    Ok(chosen.map(|row| (*row).to_owned()).collect())
}

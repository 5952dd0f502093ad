//! `itm reproduce`: resolves what was asked, trains the rows, evaluates them beside the baselines, writes the reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use itm_core::cca::{Cca, CcaOptions};
use itm_core::eval::Protocol;
use itm_core::{Error, Result};

use crate::config::{AnyConfig, Config, MOST_SEEDS, Method, Shown, View, within};
use crate::devices::device;
use crate::encoded::Encoded;
use crate::ensemble::Collected;
use crate::hubs::HubSettings;
use crate::hubs::rescore::{self, Rescoring};
use crate::plan::{Bytes, Limit, available};
use crate::report::{CCA, Figures};
use crate::results::{Results, RowResult, SeedRun};
use crate::rows::Runner;
use crate::run_dir::{Identity, RunDir, new_path, newest_path};
use crate::source::Source;
use crate::{cli, hubs, parallel, progress, report, summary};

/// What a command line comes to, before anything is written.
pub(crate) struct Planned {
    /// The target that was asked for.
    pub(crate) asked: Config,
    /// The target in use: the same, or its substitute where the data are missing.
    pub(crate) used: Config,
    pub(crate) source: Source,
    pub(crate) encoded: Encoded,
    pub(crate) backend: String,
    device: burn::tensor::Device,
    pub(crate) shown: Shown,
    /// What of the target is made; its rows are those that were asked for.
    pub(crate) view: View,
    pub(crate) seeds: Vec<u64>,
    /// Steps of all rows and seeds.
    pub(crate) steps: usize,
    /// What each row will take in memory.
    pub(crate) memory: Vec<Bytes>,
    rescore: Option<HubSettings>,
    /// Trainings at a time.
    pub(crate) jobs: usize,
    pub(crate) limit: Limit,
}

impl Planned {
    /// How the test split is evaluated: as the view says, where the data are those it was written for.
    pub(crate) fn protocol(&self) -> Protocol {
        protocol(&self.view, &self.used, &self.source)
    }
}

fn protocol(view: &View, used: &Config, source: &Source) -> Protocol {
    view.protocol.filter(|_| !source.substituted()).unwrap_or(used.target.protocol)
}

/// What is run: printed before anything is trained.
pub(crate) struct Job {
    /// The target that was asked for.
    pub(crate) asked: Config,
    /// The target in use: the same, or its substitute where the data are missing.
    pub(crate) used: Config,
    pub(crate) source: Source,
    pub(crate) encoded: Encoded,
    pub(crate) backend: String,
    pub(crate) device: burn::tensor::Device,
    pub(crate) shown: Shown,
    pub(crate) view: View,
    /// How the test split is evaluated.
    pub(crate) protocol: Protocol,
    pub(crate) seeds: Vec<u64>,
    pub(crate) run: RunDir,
    /// Corrections for hubs that were asked for.
    pub(crate) rescoring: Option<Rescoring>,
    /// The command line that repeats the run.
    pub(crate) command: String,
    /// Trainings at a time.
    jobs: usize,
    pub(crate) estimate: summary::Estimate,
}

impl Job {
    /// Makes or opens the run directory.
    fn start(planned: Planned, args: &cli::Reproduce) -> Result<Self> {
        let identity = Identity {
            target: planned.asked.name.clone(),
            config_sha256: planned.used.sha256.clone(),
            data_sha256: planned.source.dataset.sha256.clone(),
            backend: planned.backend.clone(),
        };
        let run = run_dir(args, identity, &planned.used.text)?;
        progress::say(summary::resolved(&planned, Some(run.path())));
        let command = command(args, planned.seeds.len() as u64);
        let estimate = summary::Estimate::new(planned.steps, planned.jobs);
        let protocol = planned.protocol();
        let Planned { asked, used, source, encoded, backend, device, .. } = planned;
        let Planned { shown, view, seeds, rescore, jobs, .. } = planned;
        let rescoring = rescore.map(|s| Rescoring::open(s, &source, protocol, &run)).transpose()?;
        Ok(Self {
            asked,
            used,
            source,
            encoded,
            backend,
            device,
            shown,
            view,
            protocol,
            seeds,
            run,
            rescoring,
            command,
            jobs,
            estimate,
        })
    }
}

impl Job {
    /// Whether the rows' hubs are counted: of a paper that is about them, and where a figure draws them.
    pub(crate) fn counts_hubs(&self) -> bool {
        self.used.target.method == Method::Hal || self.view.distribution().is_some()
    }

    /// Where the reports go: into the run's folder, or for another table or a figure into one of its own below it, so that
    /// rows are trained once and no report replaces another's.
    fn folder(&self) -> PathBuf {
        match self.shown {
            Shown::Table(n) if n == self.asked.target.table => self.run.path().to_path_buf(),
            Shown::Table(n) => self.run.path().join(format!("table-{n}")),
            Shown::Figure(n) => self.run.path().join(format!("figure-{n}")),
        }
    }
}

/// Runs a target and writes its reports into the run directory, which is returned: `None` where only the plan was asked
/// for.
///
/// # Errors
/// Whatever is wrong with the command line, the configuration, the data, the memory or the disk: one line.
pub fn reproduce(args: &cli::Reproduce, configs: &Path) -> Result<Option<PathBuf>> {
    match AnyConfig::load(configs, &args.target)? {
        AnyConfig::Trained(asked) => trained(args, *asked, configs),
        AnyConfig::Hubs(asked) => hubs::reproduce(args, &asked, configs),
    }
}

fn trained(args: &cli::Reproduce, asked: Config, configs: &Path) -> Result<Option<PathBuf>> {
    let started = Instant::now();
    let planned = plan(args, asked, configs)?;
    if args.plan {
        progress::say(summary::resolved(&planned, None));
        return Ok(None);
    }
    let job = Job::start(planned, args)?;
    let mut results = Results::new(&job, cca(&job)?);
    let mut figures = Figures::default();
    let runner = Runner::of(job.used.target.method);
    let (seeds, size) = (job.seeds.len(), job.view.ensemble);
    let task = |number: usize| (job.view.rows[number / seeds].as_str(), job.seeds[number % seeds]);
    let make = |number| {
        let (row, seed) = task(number);
        (runner.run)(&job, row, seed)
    };
    let mut row_of = Collected::new("", size);
    parallel::in_order(job.view.rows.len() * seeds, job.jobs, make, |number, (run, scores)| {
        let (row, seed) = task(number);
        if number % seeds == 0 {
            row_of = Collected::new(row, size);
        }
        row_of.take(&job, seed, run, scores, &mut figures)?;
        if number % seeds == seeds - 1 {
            std::mem::replace(&mut row_of, Collected::new("", size)).finish(&mut results);
        }
        Ok(())
    })?;
    let input = results.report(&job, figures, started.elapsed().as_secs_f64())?;
    let folder = job.folder();
    fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
    report::write(&folder, &input)?;
    let palette = report::Palette::of(&std::io::stdout());
    progress::say(report::terminal(&input.report, palette));
    progress::say(format!("Report: {}", folder.join("report.html").display()));
    Ok(Some(job.run.path().to_path_buf()))
}

/// The closed-form baseline, its parameters chosen on the validation split; none where there are no features.
fn cca(job: &Job) -> Result<Option<RowResult>> {
    if job.source.dataset.train.features.dim == 0 {
        return Ok(None);
    }
    let started = Instant::now();
    let spinner = progress::spinner("CCA (closed form)");
    let data = &job.source.dataset;
    let cca = Cca::fit(data, &CcaOptions::default())?;
    let run = SeedRun::evaluate(job, 0, &cca.scores(&data.test)?)?;
    spinner.finish_and_clear();
    let seconds = started.elapsed().as_secs_f64();
    progress::say(format!(
        "{CCA}: rSum {:.1} on test, {:.1} on validation ({})",
        run.evaluation.rsum,
        cca.validation_rsum(),
        summary::duration(seconds)
    ));
    Ok(Some(RowResult::baseline(CCA, run, cca.validation_rsum(), seconds)))
}

fn plan(args: &cli::Reproduce, asked: Config, configs: &Path) -> Result<Planned> {
    let (shown, mut view) = view(args, &asked)?;
    let count = match args.seeds {
        None => asked.target.seeds.next_multiple_of(view.ensemble),
        Some(_) => seeds(args, asked.target.seeds)?,
    };
    if !count.is_multiple_of(view.ensemble) {
        let expected = format!("a multiple of {}: {shown} is of ensembles", view.ensemble);
        return Err(Error::invalid("--seeds", expected, count));
    }
    let rescore = args.rescore.as_ref().map(|m| rescore::settings(m)).transpose()?;
    let device = device(&args.backend)?;
    view.rows = match args.table.is_none() && args.figure.is_none() && args.rows.is_some() {
        true => rows(args, &asked.rows().collect::<Vec<_>>())?, // without a table any row of the file
        false => rows(args, &view.rows.iter().map(String::as_str).collect::<Vec<_>>())?,
    };
    let (used, source) = Source::open(&asked, args.data.as_deref(), configs)?;
    let protocol = protocol(&view, &used, &source);
    protocol.folds(&source.dataset.test.pairs).map_err(used.inside("test split"))?;
    used.points(shown, &view)?;
    let runner = Runner::of(used.target.method);
    for row in used.rows() {
        (runner.check)(&used, row, &source)?; // every row's configuration, asked for or not
    }
    for row in &view.rows {
        (runner.check_truth)(&used, row, &source)?;
    }
    let encoded = crate::rows::encoded(&used, &source)?;
    let limit = limit(args);
    let jobs = parallel::jobs(args)?.min(view.rows.len() * count as usize);
    let memory = view.rows.iter().map(|row| (runner.memory)(&used, row, &source, &encoded));
    let memory = memory.collect::<Result<Vec<_>>>()?;
    for (row, bytes) in view.rows.iter().zip(&memory) {
        bytes.check(&format!("row.{row}"), jobs, limit)?;
    }
    let steps = view.rows.iter().map(|row| (runner.steps)(&used, row, &source));
    let steps = steps.sum::<Result<usize>>()? * count as usize;
    Ok(Planned {
        steps,
        seeds: (0..count).collect(),
        backend: args.backend.clone(),
        asked,
        used,
        source,
        encoded,
        device,
        shown,
        view,
        memory,
        rescore,
        jobs,
        limit,
    })
}

/// The table or figure that the command line names; the target's own table by default.
fn view(args: &cli::Reproduce, asked: &Config) -> Result<(Shown, View)> {
    let shown = match (args.table, args.figure) {
        (_, Some(n)) => Shown::Figure(n),
        (n, None) => Shown::Table(n.unwrap_or(asked.target.table)),
    };
    if let Some(view) = asked.view(shown) {
        return Ok((shown, view));
    }
    let mut known: Vec<_> = asked.shown().chain([Shown::Table(asked.target.table)]).collect();
    known.sort();
    known.dedup();
    let known: Vec<_> = known.iter().map(Shown::to_string).collect();
    let (place, got) = match shown {
        Shown::Table(n) => ("--table", n),
        Shown::Figure(n) => ("--figure", n),
    };
    Err(Error::invalid(place, format!("one of {}: {}", args.target, known.join(", ")), got))
}

/// The memory that counts: the machine's, where the backend computes in it.
fn limit(args: &cli::Reproduce) -> Limit {
    let of_the_machine = ["cpu", "tch"].contains(&args.backend.as_str());
    match args.memory_limit {
        Some(bytes) => Limit::Given(bytes),
        None if of_the_machine => available().map_or(Limit::Unknown, Limit::Available),
        None => Limit::Unknown,
    }
}

/// The run directory that the command line names: a new one, or with `--resume` one that is there.
pub(crate) fn run_dir(args: &cli::Reproduce, identity: Identity, config: &str) -> Result<RunDir> {
    let target = &args.target;
    if args.resume {
        let path = args.out.clone().or_else(|| newest_path(target));
        let none = || Error::invalid("--resume", format!("a run of {target} below `runs`"), "none");
        let path = path.ok_or_else(none)?;
        if !path.is_dir() {
            let expected = format!("a run in {}", path.display());
            return Err(Error::invalid("--resume", expected, "no such folder"));
        }
        return RunDir::open(path, identity, config);
    }
    RunDir::create(args.out.clone().unwrap_or_else(|| new_path(target)), identity, config)
}

/// Refuses another table than the target's, and figures, which need no run of their own.
pub(crate) fn check_table(args: &cli::Reproduce, table: u32) -> Result<()> {
    if let Some(figure) = args.figure {
        let expected = format!("none: Figures 3 and 4 stand in the report of {}", args.target);
        return Err(Error::invalid("--figure", expected, figure));
    }
    let Some(other) = args.table.filter(|&t| t != table) else { return Ok(()) };
    let expected = format!("{table}, the one table of {} so far", args.target);
    Err(Error::invalid("--table", expected, other))
}

/// Number of seeds: the command line's, else the target's.
pub(crate) fn seeds(args: &cli::Reproduce, default: u64) -> Result<u64> {
    let count = args.seeds.unwrap_or(default);
    within("--seeds".into(), count, 1..=MOST_SEEDS)?;
    Ok(count)
}

/// The command line again, without what only one machine has.
pub(crate) fn command(args: &cli::Reproduce, seeds: u64) -> String {
    let mut command = format!("cargo xtask reproduce {} --seeds {seeds}", args.target);
    for (option, number) in [("table", args.table), ("figure", args.figure)] {
        if let Some(number) = number {
            command += &format!(" --{option} {number}");
        }
    }
    if let Some(rows) = &args.rows {
        command += &format!(" --rows '{}'", rows.join(","));
    }
    if let Some(methods) = &args.rescore {
        command += &format!(" --rescore {}", methods.join(","));
    }
    if args.data.is_some() {
        command += " --data DIR"; // the folder is the reader's own
    }
    if args.backend != "cpu" {
        command += &format!(" --backend {}", args.backend);
    }
    command
}

/// The rows that the command line names, in the target's order; all without it.
pub(crate) fn rows(args: &cli::Reproduce, known: &[&str]) -> Result<Vec<String>> {
    let Some(wanted) = &args.rows else {
        return Ok(known.iter().map(|row| (*row).to_owned()).collect());
    };
    for row in wanted {
        if !known.contains(&row.as_str()) {
            let expected = format!("some of {}", known.join(", "));
            return Err(Error::invalid("--rows", expected, format!("`{row}`")));
        }
    }
    let chosen = known.iter().filter(|row| wanted.iter().any(|w| w == *row));
    Ok(chosen.map(|row| (*row).to_owned()).collect())
}

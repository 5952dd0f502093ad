//! `itm reproduce`: resolves the command line, trains the rows, evaluates them beside the baselines, and writes the reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use itm_core::{Error, Result, ScoreMatrix};
use itm_report::format;

use crate::bench::Bench;
use crate::collected::{self, Collected};
use crate::config::{Config, MOST_SEEDS, Shown, View, within};
use crate::devices::device;
use crate::job::{Asked, Job};
use crate::measures::AllMeasures;
use crate::methods::Kind;
use crate::paper::{Corrections, Paper};
use crate::plan::{self, Limit, Memory, Room, available};
use crate::report::{CCA, Detail};
use crate::rescore::{self, Rescoring};
use crate::results::{Results, RowResult, SeedRun, measures};
use crate::run::Run;
use crate::run_dir::{Identity, RunDir, new_path, newest_path, paths};
use crate::source::Source;
use crate::summary::Estimate;
use crate::train::Event;
use crate::{cli, hubs, methods, parallel, precision, progress, report, system};

/// The plan of a command line, before anything is written.
struct Planned {
    asked: Asked,
    bench: Bench,
    /// Steps of all rows and seeds.
    steps: usize,
    /// The memory of each row, if it can be measured.
    memory: Vec<Option<Memory>>,
    room: Room,
}

impl Planned {
    /// What will be trained, and with which resources; printed before the training starts.
    fn summary(&self, out: Option<&Path>) -> String {
        let (asked, source) = (&self.asked, &self.bench.source);
        let data = &source.dataset;
        let seeds: Vec<_> = asked.seeds.iter().map(u64::to_string).collect();
        let size = |part: &itm_core::data::Part| {
            format!("{} images, {} captions", part.pairs.images(), part.pairs.texts())
        };
        let target = &asked.target;
        let threads = system::threads();
        let products = precision::sentence(&self.bench, &asked.view.rows);
        let products = products.map_or(String::new(), |line| format!("; {line}"));
        let regions = plan::regions(source).map_or(String::new(), |line| format!("; {line}"));
        let lines = [
            ("target", format!("{} ({} of {})", target.name, asked.shown, target.target.paper)),
            ("config", self.config()),
            ("data", format!("{} (sha256 {}){regions}", source.title, &data.sha256[..12])),
            ("train", size(&data.train)),
            ("val", size(&data.val)),
            ("test", format!("{}, protocol {}", size(&data.test), asked.protocol.name())),
            ("backend", format!("{}, {threads} threads{products}", asked.backend)),
            ("jobs", format!("{} at a time", asked.jobs)),
            ("rows", self.rows()),
            ("seeds", seeds.join(" ")),
            ("steps", format!("{} in all", self.steps)),
            ("memory", self.memory_lines()),
            (
                "out",
                out.map_or("nothing: this is the plan".into(), |out| out.display().to_string()),
            ),
        ];
        let substitution = source.substitution.iter().map(|line| format!("{line}\n"));
        let lines = lines.iter().map(|(key, value)| format!("{key:>8}  {value}\n"));
        substitution.chain(lines).collect()
    }

    fn config(&self) -> String {
        let Config { path, set, .. } = &self.bench.config;
        let with = if set.is_empty() { String::new() } else { format!(" with {}", set.join(", ")) };
        format!("{}{with}", path.display())
    }

    /// The rows, each with the row that it begins with, if any.
    fn rows(&self) -> String {
        let name = |row: &String| match self.bench.config.from(row) {
            Some(from) => format!("{row} (from {from})"),
            None => row.clone(),
        };
        self.asked.view.rows.iter().map(name).collect::<Vec<_>>().join(" | ")
    }

    /// The memory that there is, and a line for each measured row.
    fn memory_lines(&self) -> String {
        let (jobs, mut lines) = (self.asked.jobs, vec![self.room.to_string()]);
        let rows = self.asked.view.rows.iter().zip(&self.memory);
        lines.extend(rows.filter_map(|(row, memory)| {
            let (memory, needed) = ((*memory)?, format::bytes((*memory)?.of(jobs)));
            let times = if jobs > 1 { format!(" for {jobs} at a time") } else { String::new() };
            Some(format!("{row}: {needed}{times}; {memory}"))
        }));
        lines.join("\n          ")
    }

    /// Makes or opens the run directory.
    fn start(self, how: &cli::How) -> Result<Job> {
        let Self { asked, bench, .. } = &self;
        let identity = Identity {
            target: asked.target.name.clone(),
            config_sha256: bench.config.sha256.clone(),
            data_sha256: bench.source.dataset.sha256.clone(),
            backend: asked.backend.clone(),
            set: bench.config.set.clone(),
        };
        let dir = match asked.view.rescore.is_empty() {
            true => run_dir(how, identity, &bench.config.text)?,
            false => run_dir(&on_trained_models(how, &identity), identity, &bench.config.text)?,
        };
        progress::say(self.summary(Some(dir.path())));
        Ok(Job { asked: self.asked, run: Run { bench: self.bench, dir } })
    }
}

/// Trains the rows that the command line names, writes their reports into the run directory, and returns the directory; `None` if the
/// command line wants only the plan.
///
/// # Errors
/// If the command line, the configuration, the data, the memory or the disk is at fault. The error is one line.
pub fn reproduce(
    target: Config,
    what: &cli::What,
    how: &cli::How,
    configs: &Path,
) -> Result<Option<PathBuf>> {
    let started = Instant::now();
    let planned = plan(target, what, how, configs)?;
    if how.plan {
        progress::say(planned.summary(None));
        return Ok(None);
    }
    let estimate = Estimate::new(planned.steps, planned.asked.jobs);
    let job = planned.start(how)?;
    let (asked, source) = (&job.asked, &job.run.bench.source);
    let rescoring = asked.rescore.clone().map(|s| Rescoring::new(s, source, asked.protocol));
    let rescoring = rescoring.transpose()?;
    let measures = measures(&job, rescoring.as_ref());
    let mut results = Results::new(&job, cca(&job, &measures)?)?;
    train_rows(&job, &measures, &estimate, &mut results)?;
    let of_all = results.report(&job, started.elapsed().as_secs_f64())?;
    let sections = measures.iter().map(|measure| measure.section(&of_all));
    let sections = sections.collect::<Result<Vec<_>>>()?;
    let folder = job.folder();
    fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
    report::write(&folder, &of_all, &sections)?;
    let palette = itm_report::terminal::Palette::of(&std::io::stdout());
    let detail = if how.verbose { Detail::Full } else { Detail::Short };
    progress::say(report::terminal(&of_all, &sections, detail, palette));
    if let Some(rescoring) = rescoring.as_ref().filter(|_| !asked.view.rescore.is_empty()) {
        hubs::write(&job, rescoring, &results, &folder, started)?;
    }
    progress::say(format!("Report: {}", folder.join("report.html").display()));
    Ok(Some(job.run.dir.path().to_path_buf()))
}

/// Trains and measures every row with every seed, row by row. A row that another row begins with is trained first.
fn train_rows(
    job: &Job,
    measures: &AllMeasures,
    estimate: &Estimate,
    results: &mut Results,
) -> Result<()> {
    let (rows, seeds) = (&job.asked.view.rows, &job.asked.seeds);
    let mut all: Vec<_> = rows.iter().map(|row| Collected::new(job, row)).collect();
    for depth in 0.. {
        let now = |row: &usize| depth_of(&job.run.bench.config, rows, &rows[*row]) == depth;
        let now: Vec<_> = (0..rows.len()).filter(now).collect();
        if now.is_empty() {
            break;
        }
        let task = |number: usize| (now[number / seeds.len()], seeds[number % seeds.len()]);
        let make = |number| {
            let (row, seed) = task(number);
            train_and_measure(job, measures, (&rows[row], seed), estimate)
        };
        let take = |number, measured| all[task(number).0].take(job, measures, measured);
        parallel::in_order(now.len() * seeds.len(), job.asked.jobs, make, take)?;
    }
    let joined = collected::joined(job, measures, &mut all)?;
    all.into_iter().for_each(|of_row| of_row.finish(results));
    if let Some(row) = joined {
        results.push(row);
    }
    Ok(())
}

/// How many of these rows must be trained, one after the other, before a row.
fn depth_of(config: &Config, rows: &[String], row: &str) -> usize {
    let from = config.from(row).filter(|from| rows.iter().any(|row| row == from));
    from.map_or(0, |from| 1 + depth_of(config, rows, from))
}

fn train_and_measure(
    job: &Job,
    measures: &AllMeasures,
    (row, seed): (&str, u64),
    estimate: &Estimate,
) -> Result<(SeedRun, Option<ScoreMatrix>)> {
    let started = Instant::now();
    let bar = progress::bar(&format!("{row}, seed {seed}"), "steps");
    let (model, progress) = job.run.train(row, seed, |event, plan| match event {
        Event::Notice(line) => progress::say(line),
        Event::Step(at) => {
            bar.set_length(plan.steps() as u64);
            bar.set_position(at.step as u64);
            if let Some(line) = estimate.step(plan.steps()) {
                progress::say(line);
            }
        }
    })?;
    bar.finish_and_clear();
    let best = progress.best.map_or(f64::NAN, |best| best.rsum);
    let (mut run, scores) = SeedRun::of_model(job, measures, &model, &progress)?;
    run.seconds = started.elapsed().as_secs_f64();
    progress::say(format!(
        "{}: rSum {:.1} on test, {best:.1} on validation ({})",
        model.name(),
        run.evaluation.rsum,
        format::duration(run.seconds)
    ));
    Ok((run, scores))
}

/// The closed-form baseline, with parameters chosen on the validation split; `None` without features.
fn cca(job: &Job, measures: &AllMeasures) -> Result<Option<RowResult>> {
    if job.run.bench.source.dataset.train.features.dim == 0 {
        return Ok(None);
    }
    let started = Instant::now();
    let spinner = progress::spinner("CCA (closed form)");
    let data = &job.run.bench.source.dataset;
    let cca = job.run.bench.cca()?;
    let run = SeedRun::evaluate(job, measures, (CCA, 0), &cca.scores(&data.test)?)?;
    spinner.finish_and_clear();
    let seconds = started.elapsed().as_secs_f64();
    progress::say(format!(
        "{CCA}: rSum {:.1} on test, {:.1} on validation ({})",
        run.evaluation.rsum,
        cca.validation_rsum(),
        itm_report::format::duration(seconds)
    ));
    Ok(Some(RowResult::baseline(CCA, run, cca.validation_rsum(), seconds)))
}

fn plan(target: Config, what: &cli::What, how: &cli::How, configs: &Path) -> Result<Planned> {
    let (kind, paper) = (Kind::of(&target)?, Paper::of(&target)?);
    let (shown, mut view) = view(what, &target)?;
    let (used, source) = Source::open(&target, how.data.as_deref(), configs)?;
    let count = match what.seeds {
        None => used.target.seeds.next_multiple_of(view.ensemble),
        Some(_) => seeds(what, used.target.seeds)?,
    };
    if !count.is_multiple_of(view.ensemble) {
        let expected = format!("a multiple of {}: {shown} has ensembles", view.ensemble);
        return Err(Error::invalid("--seeds", expected, count));
    }
    let rescore = match &what.rescore {
        Some(methods) => Some(rescore::study("--rescore", methods)?),
        None if view.rescore.is_empty() => None,
        None => Some(rescore::study(&target.place(&shown.key("rescore")), &view.rescore)?),
    };
    let device = device(&how.backend)?;
    if let Some(in_use) = used.view(&shown) {
        view.rows = in_use.rows; // a substitute's table has the substitute's rows, which may be more
    }
    view.rows = match what.table.is_none() && what.figure.is_none() && what.rows.is_some() {
        true => rows(what, &used.rows().collect::<Vec<_>>())?, // no table: any row of the file
        false => rows(what, &view.rows.iter().map(String::as_str).collect::<Vec<_>>())?,
    };
    if !view.together.iter().all(|row| view.rows.contains(row)) {
        view.together.clear(); // the command leaves some of these rows out
    }
    if !how.resume {
        check_sources(&used, &view.rows)?;
    }
    // The view's protocol is only for the target's data, not for a substitute's.
    let protocol = view.protocol.filter(|_| !source.substituted()).unwrap_or(used.target.protocol);
    protocol.folds(&source.dataset.test.pairs).map_err(used.inside("test split"))?;
    used.points(&shown, &view)?;
    let used = with_precision(used, &view.rows, how)?;
    let bench = Bench::new(used, source, device)?;
    let mut steps = 0;
    for row in &view.rows {
        bench.check_precision(row)?;
        bench.check_truth(row)?;
        bench.check_vectors(row)?;
        steps += bench.steps(row)? * count as usize;
    }
    let room = Room { resident: system::settled_memory_bytes(), limit: limit(how) };
    let test = &bench.source.dataset.test.pairs;
    let averaged = 4 * (test.images() * test.texts() * view.together.len()) as u64 * count;
    let memory = plan::memory(&bench, &view.rows, averaged, room)?;
    let fits = |jobs| memory.iter().flatten().all(|memory| room.fits(memory.of(jobs)));
    let jobs = parallel::jobs(how, view.rows.len() * count as usize, fits)?;
    for (row, memory) in view.rows.iter().zip(&memory) {
        memory.map_or(Ok(()), |memory| memory.check(&format!("row.{row}"), jobs, room))?;
    }
    let (backend, command) = (how.backend.clone(), command(&target.name, what, how, count));
    let seeds = (0..count).collect();
    let printed = Corrections::of(&target, &paper, &shown, &view)?;
    let asked = Asked {
        target,
        kind,
        paper,
        printed,
        backend,
        shown,
        view,
        protocol,
        seeds,
        jobs,
        command,
        rescore,
    };
    Ok(Planned { asked, bench, steps, memory, room })
}

/// The target with the precision of the command line.
///
/// # Errors
/// If the precision is bf16, and a row has no blocks.
fn with_precision(config: Config, rows: &[String], how: &cli::How) -> Result<Config> {
    let Some(precision) = how.precision else { return Ok(config) };
    let mut changed = vec![];
    for row in rows {
        match methods::recipe(&config, row)?.precision() {
            None if !precision.is_f32() => {
                let expected = "f32, because this row has neither ViT nor BERT nor UNITER";
                let place = config.place(&format!("row.{row}, --precision"));
                return Err(Error::invalid(place, expected, "bf16"));
            }
            Some(own) if own != precision => changed.push(row.clone()),
            _ => (),
        }
    }
    config.with_precision(&changed, precision)
}

/// Refuses a row that begins with a row outside this training. A resumed run may have trained that row before.
fn check_sources(config: &Config, rows: &[String]) -> Result<()> {
    for row in rows {
        let Some(from) = config.from(row).filter(|from| !rows.iter().any(|row| row == from)) else {
            continue;
        };
        let expected = format!("a row that is trained with it: {}", rows.join(", "));
        let place = config.place(&format!("row.{row}, from"));
        return Err(Error::invalid(place, expected, format!("`{from}`")));
    }
    Ok(())
}

/// The table or figure that the command line names; the target's own table by default.
fn view(what: &cli::What, asked: &Config) -> Result<(Shown, View)> {
    let shown = match (&what.table, what.figure) {
        (_, Some(n)) => Shown::Figure(n),
        (Some(name), None) => Shown::table(name),
        (None, None) => Shown::Table(asked.target.table),
    };
    if let Some(view) = asked.view(&shown) {
        return Ok((shown, view));
    }
    let known: Vec<_> = asked.shown().iter().map(Shown::to_string).collect();
    let (place, got) = match shown {
        Shown::Table(n) => ("--table", n.to_string()),
        Shown::Named(name) => ("--table", format!("`{name}`")),
        Shown::Figure(n) => ("--figure", n.to_string()),
    };
    Err(Error::invalid(place, format!("one of {}: {}", asked.name, known.join(", ")), got))
}

/// The memory limit: the command line's, or the machine's if the backend computes in its memory.
fn limit(how: &cli::How) -> Limit {
    let of_the_machine = ["cpu", "tch"].contains(&how.backend.as_str());
    match how.memory_limit {
        Some(bytes) => Limit::Given(bytes),
        None if of_the_machine => available().map_or(Limit::Unknown, Limit::Available),
        None => Limit::Unknown,
    }
}

/// The newest run of the same target, data and backend, if there is one and the command line names no other: a table of corrections needs no
/// models of its own.
fn on_trained_models(how: &cli::How, identity: &Identity) -> cli::How {
    let is_same = |path: &PathBuf| Identity::read(path).is_ok_and(|found| found == *identity);
    let found = paths(&identity.target).into_iter().find(is_same);
    match found.filter(|_| how.out.is_none() && !how.resume) {
        Some(path) => cli::How { resume: true, out: Some(path), ..how.clone() },
        None => how.clone(),
    }
}

/// The run directory that the command line names: a new one, or with `--resume` an existing one.
fn run_dir(how: &cli::How, identity: Identity, config: &str) -> Result<RunDir> {
    let target = &identity.target;
    if how.resume {
        let path = how.out.clone().or_else(|| newest_path(target));
        let none = || Error::invalid("--resume", format!("a run of {target} below `runs`"), "none");
        let path = path.ok_or_else(none)?;
        if !path.is_dir() {
            let expected = format!("a run in {}", path.display());
            return Err(Error::invalid("--resume", expected, "no such folder"));
        }
        return RunDir::open(path, identity, config);
    }
    RunDir::create(how.out.clone().unwrap_or_else(|| new_path(target)), identity, config)
}

/// Number of seeds: from the command line, or else from the target.
fn seeds(what: &cli::What, default: u64) -> Result<u64> {
    let count = what.seeds.unwrap_or(default);
    within("--seeds".into(), count, 1..=MOST_SEEDS)?;
    Ok(count)
}

/// The command line that repeats the run, without the options that fit only one machine.
fn command(target: &str, what: &cli::What, how: &cli::How, seeds: u64) -> String {
    let mut command = format!("cargo xtask reproduce {target} --seeds {seeds}");
    let figure = what.figure.map(|n| n.to_string());
    for (option, name) in [("table", &what.table), ("figure", &figure)] {
        if let Some(name) = name {
            command += &format!(" --{option} {name}");
        }
    }
    if let Some(rows) = &what.rows {
        command += &format!(" --rows '{}'", rows.join(","));
    }
    if let Some(methods) = &what.rescore {
        command += &format!(" --rescore {}", methods.join(","));
    }
    if how.data.is_some() {
        command += " --data DIR"; // the reader has another folder
    }
    if let Some(precision) = how.precision {
        command += if precision.is_f32() { " --precision f32" } else { " --precision bf16" };
    }
    if how.backend != "cpu" {
        command += &format!(" --backend {}", how.backend);
    }
    command
}

/// The rows that the command line names, in the target's order; by default all rows.
fn rows(what: &cli::What, known: &[&str]) -> Result<Vec<String>> {
    let Some(wanted) = &what.rows else {
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

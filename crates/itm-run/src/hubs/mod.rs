//! Targets that train nothing. They measure inferences that mitigate hubs, on models that another target has trained.

mod markdown;
mod orderings;
mod summary;
mod trained;

use std::path::{Path, PathBuf};
use std::time::Instant;

use itm_core::{Error, Result};

use crate::config::HubsConfig;
use crate::devices::device;
use crate::disk::write_atomically;
use crate::paper::Paper;
use crate::reproduce::{command, rows, run_dir, seeds};
use crate::rescore::Rescoring;
use crate::run_dir::Identity;
use crate::split::Split;
use crate::{cli, progress};
use summary::{Origin, RowReports, Summary};
use trained::Wanted;

/// Measures every row and seed of the source target and writes the reports. Returns the run directory.
///
/// # Errors
/// If the command line, a configuration, the data, the source's run or the disk is at fault: one line.
pub(crate) fn reproduce(
    hubs: &HubsConfig,
    what: &cli::What,
    how: &cli::How,
    configs: &Path,
) -> Result<Option<PathBuf>> {
    let started = Instant::now();
    check_table(hubs, what)?;
    if what.rescore.is_some() {
        let expected = format!("none: {} names its inferences in its file", hubs.name);
        return Err(Error::invalid("--rescore", expected, "a list"));
    }
    if how.precision.is_some() {
        let expected = format!("none: {} measures the models of another target", hubs.name);
        return Err(Error::invalid("--precision", expected, "one"));
    }
    let seeds = seeds(what, hubs.target.seeds)?;
    device(&how.backend)?;
    let known: Vec<_> = hubs.target.rows.iter().map(String::as_str).collect();
    let rows = rows(what, &known)?;
    let paper = Paper::of(&hubs.origin())?;
    let over = |model: Option<&String>| {
        let place = || hubs.place("target.printed");
        paper.inferences(hubs.target.table, model.map(String::as_str), place)
    };
    for model in hubs.target.printed.values() {
        over(Some(model))?; // checks the line of every row, also of rows that this run leaves out
    }
    let printed = |row: &String| over(hubs.target.printed.get(row));
    let printed = rows.iter().map(printed).collect::<Result<Vec<_>>>()?;
    let wanted = Wanted::open(hubs, how, configs, rows.clone(), seeds)?;
    let found = wanted.look(how)?;
    if how.plan {
        wanted.plan(found, how, configs)?;
        return Ok(None);
    }
    let identity = Identity {
        target: hubs.name.clone(),
        config_sha256: hubs.sha256.clone(),
        ..wanted.identity.clone()
    };
    let dir = run_dir(how, identity, &hubs.text)?;
    let models = wanted.models(found, how, configs)?;
    progress::say(format!("Models of {}", models.dir.path().display()));
    let (source, protocol) = (&models.bench.source, models.bench.config.target.protocol);
    let rescoring = Rescoring::new(hubs.study.clone(), source, protocol)?;
    let mut measured = Vec::with_capacity(rows.len());
    for (row, printed) in rows.into_iter().zip(printed) {
        let mut reports = Vec::new();
        for seed in 0..seeds {
            let (folder, model) = (dir.folder(&row, seed), models.trained(&row, seed)?);
            let [val, test] =
                [models.scores(&model, Split::Val)?, models.scores(&model, Split::Test)?];
            reports.extend(rescoring.measure(&folder, &*val, &*test)?);
            progress::say(format!("{row}, seed {seed}: {}", folder.join("report.html").display()));
        }
        let origin = Origin::read(models.dir.path(), &row, seeds)?;
        measured.push(RowReports { row, printed, reports, origin });
    }
    let command = command(&hubs.name, what, how, seeds);
    let summary = Summary::new(hubs, &models, measured, command, started);
    let text = serde_json::to_string_pretty(&summary).expect("names and numbers");
    write_atomically(&dir.path().join("summary.json"), (text + "\n").as_bytes())?;
    let page = markdown::render(&summary);
    write_atomically(&dir.path().join("report.md"), page.as_bytes())?;
    progress::say(&page);
    progress::say(format!("Report: {}", dir.path().join("report.md").display()));
    Ok(Some(dir.path().to_path_buf()))
}

/// Refuses every table except the target's, and every figure, because figures need no separate run.
fn check_table(hubs: &HubsConfig, what: &cli::What) -> Result<()> {
    let table = hubs.target.table;
    if let Some(figure) = what.figure {
        let expected = format!("none: Figures 3 and 4 are in the report of {}", hubs.name);
        return Err(Error::invalid("--figure", expected, figure));
    }
    let Some(other) = what.table.as_ref().filter(|name| **name != table.to_string()) else {
        return Ok(());
    };
    let expected = format!("{table}, the only table of {} so far", hubs.name);
    Err(Error::invalid("--table", expected, other))
}

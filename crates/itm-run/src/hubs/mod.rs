//! Targets that train nothing: inferences that mitigate hubs, over the embeddings of models another target has trained.

mod config;
mod files;
mod markdown;
mod measure;
mod orderings;
pub(crate) mod rescore;
mod summary;
mod trained;

use std::path::{Path, PathBuf};
use std::time::Instant;

use itm_core::Result;

pub use config::{Capacity, HubSettings, HubsConfig, HubsMethod, HubsTarget, Runs, Setting, Stop};

use crate::checkpoint::write_atomically;
use crate::devices::device;
use crate::reproduce::{check_table, command, rows, run_dir, seeds};
use crate::run_dir::Identity;
use crate::{cli, progress};
use rescore::Rescoring;
use summary::{Origin, RowReports, Summary};
use trained::Wanted;

/// Measures every row and seed of the source target and writes the reports into the run directory, which is returned.
///
/// # Errors
/// Whatever is wrong with the command line, the configurations, the data, the source's run or the disk: one line.
pub(crate) fn reproduce(
    args: &cli::Reproduce,
    hubs: &HubsConfig,
    configs: &Path,
) -> Result<Option<PathBuf>> {
    let started = Instant::now();
    check_table(args, hubs.target.table)?;
    if args.rescore.is_some() {
        let expected = format!("none: {} names its inferences in its file", args.target);
        return Err(itm_core::Error::invalid("--rescore", expected, "a list"));
    }
    let seeds = seeds(args, hubs.target.seeds)?;
    device(&args.backend)?;
    let known: Vec<_> = hubs.target.rows.iter().map(String::as_str).collect();
    let rows = rows(args, &known)?;
    let wanted = Wanted::open(args, hubs, configs, rows.clone(), seeds)?;
    let found = wanted.look(args)?;
    if args.plan {
        wanted.plan(found, args, configs)?;
        return Ok(None);
    }
    let identity = Identity {
        target: hubs.name.clone(),
        config_sha256: hubs.sha256.clone(),
        ..wanted.identity.clone()
    };
    let run = run_dir(args, identity, &hubs.text)?;
    let models = wanted.models(found, args, configs)?;
    progress::say(format!("Models of {}", models.run.path().display()));
    let protocol = models.config.target.protocol;
    let rescoring = Rescoring::open(hubs.settings.clone(), &models.source, protocol, &run)?;
    let mut measured = Vec::with_capacity(rows.len());
    for row in rows {
        let mut reports = Vec::new();
        for seed in 0..seeds {
            let folder = run.folder(&row, seed);
            reports.extend(rescoring.measure(&folder, &models.embed(&row, seed)?)?);
            progress::say(format!("{row}, seed {seed}: {}", folder.join("report.html").display()));
        }
        let origin = Origin::read(models.run.path(), &row, seeds)?;
        let printed = hubs.target.printed(&row).to_owned();
        measured.push(RowReports { row, printed, reports, origin });
    }
    let summary = Summary::new(hubs, &models, measured, command(args, seeds), started);
    let text = serde_json::to_string_pretty(&summary).expect("names and numbers");
    write_atomically(&run.path().join("summary.json"), (text + "\n").as_bytes())?;
    let page = markdown::render(&summary);
    write_atomically(&run.path().join("report.md"), page.as_bytes())?;
    progress::say(&page);
    progress::say(format!("Report: {}", run.path().join("report.md").display()));
    Ok(Some(run.path().to_path_buf()))
}

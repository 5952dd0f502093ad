#![doc = include_str!("../README.md")]

pub mod baselines;
pub mod checkpoint;
pub mod cli;
pub mod config;
pub mod devices;
pub mod disk;
pub mod hubs;
pub mod log;
pub mod method;
pub mod paper;
pub mod plan;
pub mod report;
pub mod reproduce;
pub mod run_dir;
pub mod train;

mod encoded;
mod ensemble;
mod explain;
mod features;
mod figures;
mod finite;
mod fne_method;
mod hal_method;
#[cfg(test)]
mod kills;
mod list;
mod parallel;
mod pictures;
mod pointing;
mod progress;
mod results;
mod rows;
mod scenes;
mod source;
mod summary;
mod system;
#[cfg(test)]
mod testing;
mod word_maps;

use std::path::Path;

use itm_core::data::{advice, check};
use itm_core::{Error, Result};

use cli::{Cli, Command, DataCommand};

/// Runs a command line.
///
/// # Errors
/// Whatever the user has to mend, as one line: the binary exits with 2.
pub fn run(cli: Cli) -> Result<()> {
    match cli.command {
        Command::List { data } => progress::say(list::list(&cli.configs, &data)?),
        Command::Reproduce(args) => _ = reproduce::reproduce(&args, &cli.configs)?,
        Command::Explain(args) => _ = explain::explain(&args, &cli.configs)?,
        Command::Data { command: None } => progress::say(advice::all()),
        Command::Data { command: Some(DataCommand::Check { dir }) } => data_check(&dir)?,
        Command::Scenes(args) => scenes::scenes(&args)?,
        Command::Features(args) => features::features(&args)?,
    }
    Ok(())
}

/// The report in any case; problems are an error too, so that a script notices them.
fn data_check(dir: &Path) -> Result<()> {
    let spinner = progress::spinner("reading and hashing");
    let report = check(dir)?;
    spinner.finish_and_clear();
    progress::say(&report);
    let count = report.problems.len();
    match report.problems.first() {
        None => Ok(()),
        Some(problem) if count == 1 => Err(Error::invalid(dir.display(), "no problem", problem)),
        Some(first) => {
            let got = format!("{count}, listed above; the first: {first}");
            Err(Error::invalid(dir.display(), "no problem", got))
        }
    }
}

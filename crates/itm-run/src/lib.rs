#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(all(feature = "methods", feature = "negatives")),
    allow(dead_code, unreachable_pub, unused_imports)
)] // what only absent methods use

mod checkpoint;
pub mod cli;
pub mod config;
pub mod devices;
mod disk;
pub mod log;
pub mod methods;
pub mod paper;
mod reproduce;
pub mod run_dir;
mod train;

mod audit;
#[cfg(feature = "published")]
mod embed;
mod encoded;
mod estimate;
mod experiment;
mod explain;
mod export;
mod inputs;
#[cfg(test)]
mod kills_tests;
mod list;
mod measures;
mod model;
#[cfg(feature = "negatives")]
mod negatives;
mod parallel;
mod pictures;
mod plan;
mod progress;
mod report;
mod rescore;
mod results;
mod run;
mod scenes;
#[cfg(all(feature = "search", feature = "cpu"))]
mod search;
mod source;
mod starts;
pub mod stop;
mod store;
mod system;
#[cfg(test)]
mod tests;

use std::path::Path;

use itm_core::data::{ADVICE, check};
use itm_core::{Error, Result};

use cli::{Cli, Command, DataCommand};
use config::Config;

/// Runs a command line.
///
/// # Errors
/// What the user must fix, as one line; the binary then exits with 2.
pub fn run(cli: Cli) -> Result<()> {
    match cli.command {
        Command::List { data } => progress::say(list::list(&cli.configs, &data)?),
        Command::Reproduce(args) => reproduce(&args, &cli.configs)?,
        Command::Explain(args) => _ = explain::explain(&args, &cli.configs)?,
        Command::Data { command: None } => progress::say(ADVICE),
        Command::Data { command: Some(DataCommand::Check { dir }) } => data_check(&dir)?,
        #[cfg(feature = "negatives")]
        Command::Negatives(args) => _ = negatives::negatives(&args, &cli.configs)?,
        Command::Scenes(args) => scenes::scenes(&args)?,
        #[cfg(feature = "published")]
        Command::Embed(args) => embed::embed(&args)?,
        #[cfg(not(feature = "published"))]
        Command::Embed(args) => {
            return Err(Error::Feature { place: args.model, feature: "published" });
        }
        Command::Export(args) => export::export(&args, &cli.configs)?,
        #[cfg(all(feature = "search", feature = "cpu"))]
        Command::Index(args) => search::index(&args, &cli.configs)?,
        #[cfg(all(feature = "search", feature = "cpu"))]
        Command::Search(args) => search::search(&args, &cli.configs)?,
        #[cfg(all(feature = "search", feature = "cpu"))]
        Command::Serve(args) => search::serve(&args, &cli.configs)?,
        #[cfg(not(all(feature = "search", feature = "cpu")))]
        Command::Index(_) | Command::Search(_) | Command::Serve(_) => {
            return Err(Error::Feature { place: "itm".into(), feature: "search" });
        }
    }
    progress::said()
}

fn reproduce(args: &cli::Reproduce, configs: &Path) -> Result<()> {
    let cli::Reproduce { target, what, how } = args;
    let (target, shown) = Config::find(configs, target)?;
    let mut what = what.clone();
    if let Some(shown) = shown {
        let own = Some(shown.name());
        let fits = what.figure.is_none() && (what.table.is_none() || what.table == own);
        let expected = format_args!("none: {} is {shown} of {}", args.target, target.name);
        Error::unless(fits, "--table, --figure", expected, "one")?;
        what.table = own;
    }
    reproduce::reproduce(target.with(&how.set)?, &what, how, configs)
}

/// Prints the report in any case. Problems are also an error, so that a script notices them.
fn data_check(dir: &Path) -> Result<()> {
    let report = progress::during("reading and hashing", || check(dir))?;
    progress::say(&report);
    let Some(first) = report.problems.first() else { return Ok(()) };
    let got = match report.problems.len() {
        1 => first.to_string(),
        count => format!("{count}, listed above; the first: {first}"),
    };
    Err(Error::invalid(dir.display(), "no problem", got))
}

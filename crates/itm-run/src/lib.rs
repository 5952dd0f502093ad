#![doc = include_str!("../README.md")]

pub mod baselines;
pub mod checkpoint;
pub mod cli;
pub mod config;
pub mod devices;
pub mod log;
pub mod method;
pub mod paper;
pub mod report;
pub mod reproduce;
pub mod run_dir;
pub mod train;

mod encoded;
mod figures;
mod fne_method;
mod list;
mod progress;
mod results;
mod rows;
mod scenes;
mod source;
mod summary;
mod system;

use itm_core::Result;
use itm_core::data::{advice, check};

use cli::{Cli, Command, DataCommand};

/// Runs a command line.
///
/// # Errors
/// Whatever the user has to mend, as one line: the binary exits with 2.
pub fn run(cli: Cli) -> Result<()> {
    match cli.command {
        Command::List { data } => progress::say(list::list(&cli.configs, &data)?),
        Command::Reproduce(args) => _ = reproduce::reproduce(&args, &cli.configs)?,
        Command::Data { command: None } => progress::say(advice::all()),
        Command::Data { command: Some(DataCommand::Check { dir }) } => progress::say(check(&dir)?),
        Command::Scenes(args) => scenes::scenes(&args)?,
    }
    Ok(())
}

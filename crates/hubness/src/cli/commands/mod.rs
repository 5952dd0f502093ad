//! What the commands do.

mod build;
mod export;
mod offer;
mod output;
mod report;
mod rescore;

use std::io::Write;

use itm_core::Result;

use super::args::{Cli, Command};

/// Runs a command; what it prints goes to `out`.
///
/// # Errors
/// Whatever is wrong with options or data, in one line.
pub fn run(cli: Cli, out: &mut impl Write) -> Result<()> {
    match cli.command {
        Command::Report(args) => report::run(*args, out),
        Command::Rescore(args) => rescore::run(args, out),
        Command::Export(args) => export::run(args, out),
    }
}

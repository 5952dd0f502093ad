//! The commands.

mod export;
mod export_about;
mod export_biases;
mod npy;
mod part_fit;
mod parts;
mod report;
mod rescore;
mod scan;

use std::io::Write;
use std::path::Path;

use itm_core::{Error, Result};

use super::args::{CommandLine, Task};

/// Runs a command. Its output goes to `out`.
///
/// # Errors
/// If options or data are wrong; the error is one line.
pub fn run(cli: CommandLine, out: &mut impl Write) -> Result<()> {
    match cli.command {
        Task::Report(args) => report::run(*args, out),
        Task::Rescore(args) => rescore::run(args, out),
        Task::Export(args) => export::run(&args, out),
        Task::Scan(args) => scan::run(&args, out),
        Task::Partial(args) => parts::partial(&args),
        Task::Merge(args) => parts::merge(&args),
        Task::Finish(args) => parts::finish(&args, out),
    }
}

/// Names the file of a part that does not fit.
fn at(path: &Path, error: Error) -> Error {
    match error {
        Error::Invalid { expected, got, .. } => Error::invalid(path.display(), expected, got),
        other => other,
    }
}

/// Names the option in an error that names the library's field: `csls_k` is `--csls-k`, `method csls` is `--method csls`.
fn option(error: Error) -> Error {
    match error {
        Error::Invalid { place, expected, got }
            if place.split(' ').next() == Some("method")
                || place.contains('_') && !place.contains(' ') =>
        {
            Error::Invalid { place: format!("--{}", place.replace('_', "-")), expected, got }
        }
        other => other,
    }
}

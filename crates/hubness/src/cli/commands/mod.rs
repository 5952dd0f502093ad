//! The commands.

mod export;
mod part_fit;
mod parts;
mod report;
mod rescore;
mod scan;

use std::io::Write;
use std::path::{Path, PathBuf};

use bytemuck::NoUninit;
use itm_core::data::npy_header;
use itm_core::{Error, Result, output};

use super::args::{CommandLine, Task};

/// Runs a command. Its output goes to `out`.
///
/// # Errors
/// If options or data are wrong; the error is one line.
pub fn run(cli: CommandLine, out: &mut impl Write) -> Result<()> {
    check_output(&cli.command)?;
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

/// Refuses an output that would replace what the command reads.
fn check_output(command: &Task) -> Result<()> {
    let (Some(out), read) = command.files() else { return Ok(()) };
    let whole_name = |path: &Path| path.canonicalize().ok();
    // A device is no file, and only an export replaces a folder.
    let is_replaced = |at: &PathBuf| match command {
        Task::Export(_) => at.is_dir(),
        _ => at.is_file(),
    };
    let Some(old) = whole_name(out).filter(is_replaced) else { return Ok(()) };
    // If an input is a folder, the command reads its files with these ends.
    let is_numbered = old.extension().is_some_and(|end| end == "npy" || end == "parquet");
    let holds = |folder: &Path| is_numbered && folder.is_dir() && old.parent() == Some(folder);
    let mut read = read.into_iter().filter_map(whole_name);
    let is_input = read.any(|at| at.starts_with(&old) || holds(&at));
    Error::unless(!is_input, out.display(), "an output that is no input", "an input")
}

/// Writes a text to a file, or to standard output if the file is `-`; `what` names standard output in an error.
fn put(text: &str, path: &Path, out: &mut impl Write, what: &str) -> Result<()> {
    if path == Path::new("-") {
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        return written.map_err(Error::io(what));
    }
    output::write_bytes(path, text.as_bytes())
}

/// Writes a `.npy` file of two dimensions; `kind` is NumPy's name of the numbers.
fn npy(path: &Path, kind: &str, width: usize, values: &[impl NoUninit]) -> Result<()> {
    output::write(path, |out| {
        let header = npy_header(kind, &[values.len() / width.max(1), width]);
        let written = out.write_all(&header);
        written.and_then(|()| out.write_all(bytemuck::cast_slice(values))).map_err(Error::io(path))
    })
}

/// The error with the place that `place_of` gives, if it gives one.
fn renamed(error: Error, place_of: impl FnOnce(&str) -> Option<String>) -> Error {
    match error {
        Error::Invalid { place, expected, got } => {
            Error::Invalid { place: place_of(&place).unwrap_or(place), expected, got }
        }
        other => other,
    }
}

/// Names the file of a part that does not fit.
fn at(path: &Path, error: Error) -> Error {
    renamed(error, |_| Some(path.display().to_string()))
}

/// Names the option in an error that names the library's field: `csls_k` is `--csls-k`, `method csls` is `--method csls`.
fn option(error: Error) -> Error {
    renamed(error, |place| {
        let is_field = place.contains('_') && !place.contains(' ');
        let is_ours = is_field || place.split(' ').next() == Some("method");
        is_ours.then(|| format!("--{}", place.replace('_', "-")))
    })
}

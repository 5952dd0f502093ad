//! The binary `hubness`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use hubness::cli::args::CommandLine;
use hubness::cli::commands;
use itm_report::format::clean;

fn main() -> ExitCode {
    let cli = match CommandLine::try_parse() {
        Ok(cli) => cli,
        Err(error) if is_help(error.kind()) => error.exit(),
        Err(error) => return refuse(&one_line(&error.to_string())),
    };
    if let Some(line) = itm_core::threads::cap() {
        eprintln!("{line}");
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done = commands::run(cli, &mut out)
        .and_then(|()| out.flush().map_err(itm_core::Error::io("standard output")));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS, // `hubness … | head` has closed the pipe
        Err(error) => refuse(&format!("error: {error}")),
    }
}

fn refuse(line: &str) -> ExitCode {
    eprintln!("{line}");
    ExitCode::from(2)
}

fn is_closed_pipe(error: &itm_core::Error) -> bool {
    let source = std::error::Error::source(error);
    let io = source.and_then(|source| source.downcast_ref::<io::Error>());
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn is_help(kind: ErrorKind) -> bool {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    matches!(kind, DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand)
}

/// The parser's message without its hints, which begin after an empty line.
fn one_line(message: &str) -> String {
    let reason = message.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
    let reason = reason.collect::<Vec<_>>().join(" ");
    format!("{} (`hubness --help` says what there is)", clean(&reason))
}

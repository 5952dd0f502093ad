//! The binary `hubness`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand as NoArguments;
use hubness::cli::args::CommandLine;
use hubness::cli::commands;
use itm_report::command::{end, one_line, refuse};

fn main() -> ExitCode {
    let cli = match CommandLine::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() || error.kind() == NoArguments => error.exit(),
        Err(error) => return refuse(&one_line("hubness", &error.to_string())),
    };
    if let Some(line) = itm_core::threads::cap() {
        eprintln!("{line}");
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done = commands::run(cli, &mut out)
        .and_then(|()| out.flush().map_err(itm_core::Error::io("standard output")));
    end(done)
}

//! `tags-dc`: see [`tags_dc::cli`].

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand as NoArguments;
use itm_report::command::{end, one_line, refuse};
use tags_dc::cli::{Cli, run};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() || error.kind() == NoArguments => error.exit(),
        Err(error) => return refuse(&one_line("tags-dc", &error.to_string())),
    };
    if let Some(line) = itm_core::threads::cap() {
        eprintln!("{line}");
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done = run(&cli, &mut out)
        .and_then(|()| out.flush().map_err(itm_core::Error::io("standard output")));
    end(done)
}

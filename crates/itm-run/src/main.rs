//! The binary `itm`.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match itm_run::run(itm_run::cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

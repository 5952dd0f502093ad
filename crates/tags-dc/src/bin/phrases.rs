//! `phrases`: see [`tags_dc::cli`].

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::Parser;
use itm_core::Error;
use tags_dc::cli::{Cli, run};

fn main() -> ExitCode {
    match run(&Cli::parse(), &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        // whoever reads has enough
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("phrases: {error}");
            ExitCode::from(2)
        }
    }
}

//! The tasks of this repository: `cargo xtask <command>`.
//!
//! xtask knows no method and no tensor. It builds the binary `itm` with the features of the backend and of the target's method, runs it and
//! passes its exit code on; `kills` does the same with the tests of `itm`. A command that xtask does not know is a
//! command of `itm`, or of a package in [`others`]. Only `tidy`, the check of the book's pages and
//! the search for a Python's libtorch are done here.

mod arrows;
mod book;
mod budget;
mod build_time;
mod circles;
#[cfg(test)]
mod commands_tests;
mod fuzz;
mod kills;
mod manifest;
mod modules;
mod options;
mod others;
mod pages;
mod reproduce;
mod rules;
mod seams;
mod targets;
mod tch;
mod tidy;
mod torch;
mod type_names;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Build `itm` for a backend and run it; check this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", after_help = OTHERS, disable_help_subcommand = true)]
enum Task {
    /// Backend `tch` with the libtorch of a Python's torch 2.9.0: `tch [--python P] -- test`, `-- run <target> …`.
    Tch {
        /// A Python that imports torch.
        #[arg(long, value_name = "PATH", default_value = "python3")]
        python: PathBuf,
        /// `test`: the contract test of the backends; `run`: as `reproduce`, with `--backend tch` unless it names another.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Kill a small training again and again, resume it, and compare its bits with an uninterrupted training.
    Kills(kills::Kills),
    /// Give the readers of files made-up bytes: every fuzz target for some seconds.
    Fuzz(fuzz::Fuzz),
    /// Type every command of the book's pages (`docs/<crate>.md`), in an empty folder, on a small world.
    Book(book::Book),
    /// Write the map of all options, `docs/options.md`, from the code.
    Options,
    /// Build the runner into an empty folder, and print the CPU seconds of each crate.
    BuildTime(build_time::BuildTime),
    /// Check what clippy does not: dependency arrows, circles of modules, paths, file lengths and sizes, unsafe code.
    Tidy,
    /// `phrases` and `benchmark`, of the package `tags-dc`; anything else goes to `itm`, word by word.
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// `itm --help` says what its commands do.
const OTHERS: &str = "Any other command is one of `itm`: list, reproduce, explain, data, scenes, embed, export, index, search, serve, ...\n\
`--backend cpu|wgpu[:i]|tch|tch-cuda[:i]|cuda[:i]` among its arguments also selects the build. `phrases` and `benchmark` are of `tags-dc`.";

fn main() -> ExitCode {
    let outcome = if let Some(log) = std::env::var_os(build_time::VARIABLE) {
        let args: Vec<_> = std::env::args_os().skip(1).collect();
        build_time::wrap(log.as_ref(), &args)
    } else {
        run(Task::parse())
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("{error:#}");
        ExitCode::from(2)
    })
}

fn run(task: Task) -> Result<ExitCode> {
    match task {
        Task::Tch { python, args } => tch::run(&python, args),
        Task::Kills(kills) => kills.run(),
        Task::Fuzz(fuzz) => fuzz.run(),
        Task::Book(book) => book.run(),
        Task::Options => options::run(),
        Task::BuildTime(build) => build.run(),
        Task::Tidy => tidy::run(),
        Task::Other(words) => others::run(words),
    }
}

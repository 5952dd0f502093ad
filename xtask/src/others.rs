//! Commands that are not xtask's own: binaries of other packages, which need no runner, and commands of `itm`.

use std::ffi::OsString;
use std::iter;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::Task;
use crate::manifest::CLI;
use crate::reproduce;

/// A command with the package whose binary has it. The binary has the package's name, and is built with the feature `cli`.
const BINARIES: [(&str, &str); 2] = [("benchmark", "tags-dc"), ("phrases", "tags-dc")];

/// Runs the command that the first word names with the words after it. `help COMMAND` is `COMMAND --help`.
pub(crate) fn run(words: Vec<OsString>) -> Result<ExitCode> {
    let mut words = words.into_iter();
    let command = words.next().unwrap_or_default().to_string_lossy().into_owned();
    match package(&command) {
        _ if command == "help" => crate::run(Task::parse_from(help(words))),
        None => reproduce::run(&command, words.collect()),
        Some(package) => {
            let mut cargo = reproduce::cargo();
            cargo.args(["run", "--quiet", "--package", package, "--features", CLI]);
            cargo.args(["--bin", package, "--", &command]).args(words);
            reproduce::pass_on(&mut cargo)
        }
    }
}

/// The line that asks the command of these words for its help.
fn help(command: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    iter::once("cargo xtask".into()).chain(command).chain(["--help".into()])
}

/// The package of a command that is none of `itm`.
pub(crate) fn package(command: &str) -> Option<&'static str> {
    BINARIES.iter().find(|(name, _)| *name == command).map(|(_, package)| *package)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `help` before a command asks that command, whoever knows it: clap's own `help` knows xtask's alone.
    #[test]
    fn help_of_any_command_asks_that_command() {
        let Task::Other(words) = Task::parse_from(["cargo xtask", "help", "search"]) else {
            panic!("a command of xtask")
        };
        let Task::Other(words) = Task::parse_from(help(words.into_iter().skip(1))) else {
            panic!("a command of xtask")
        };
        assert_eq!(words, ["search", "--help"].map(OsString::from));
        let own = Task::try_parse_from(help(["tidy".into()].into_iter())).unwrap_err();
        assert_eq!(own.kind(), clap::error::ErrorKind::DisplayHelp);
    }

    /// Every word of a command that xtask does not know is passed on, including flags.
    #[test]
    fn unknown_commands_are_handed_on() {
        let line = ["cargo xtask", "negatives", "--run", "DIR", "--help"];
        let Task::Other(words) = Task::parse_from(line) else { panic!("a command of xtask") };
        assert_eq!(words, line[1..].iter().map(OsString::from).collect::<Vec<_>>());
        assert!(matches!(Task::parse_from(["cargo xtask", "tidy"]), Task::Tidy));
        assert_eq!((package("phrases"), package("negatives")), (Some("tags-dc"), None));
    }
}

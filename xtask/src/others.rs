//! Commands that are not xtask's own: binaries of other packages, which need no runner, and commands of `itm`.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::manifest::CLI;
use crate::reproduce;

/// A command with the package whose binary has it. The binary has the package's name, and is built with the feature `cli`.
const BINARIES: [(&str, &str); 2] = [("benchmark", "tags-dc"), ("phrases", "tags-dc")];

/// Runs the command that the first word names with the words after it.
pub(crate) fn run(words: Vec<OsString>) -> Result<ExitCode> {
    let mut words = words.into_iter();
    let command = words.next().unwrap_or_default().to_string_lossy().into_owned();
    match package(&command) {
        None => reproduce::run(&command, words.collect()),
        Some(package) => {
            let mut cargo = reproduce::cargo();
            cargo.args(["run", "--quiet", "--package", package, "--features", CLI]);
            cargo.args(["--bin", package, "--", &command]).args(words);
            reproduce::pass_on(&mut cargo)
        }
    }
}

/// The package of a command that is none of `itm`.
pub(crate) fn package(command: &str) -> Option<&'static str> {
    BINARIES.iter().find(|(name, _)| *name == command).map(|(_, package)| *package)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Task;

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

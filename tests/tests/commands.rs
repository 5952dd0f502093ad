//! The programs can parse every command line of the documentation: `itm` behind `cargo xtask`, `hubness`, `tags-dc`.
//! A test of xtask parses the commands that xtask runs itself.

#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "../../xtask/src/pages.rs"]
mod pages;

use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};
use pages::{Step, steps};

/// Commands that xtask runs itself.
const OWN: [&str; 5] = ["tch", "kills", "options", "book", "tidy"];

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let list = |folder: &str| {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let mut pages = vec![root.join("README.md")];
    pages.extend(list("docs").into_iter().filter(|p| p.extension().is_some_and(|e| e == "md")));
    pages.extend(list("crates").into_iter().map(|p| p.join("README.md")).filter(|p| p.is_file()));
    pages
}

/// The program's answer to a line of its documentation; `None` for a line of another program.
fn parse(words: &[&str]) -> Option<Result<(), clap::Error>> {
    Some(match *words {
        ["cargo", "xtask", command, ..] if OWN.contains(&command) => return None,
        ["cargo", "xtask", "benchmark" | "phrases", ..] => {
            tags_dc::cli::Cli::try_parse_from(&words[1..]).map(drop)
        }
        ["cargo", "xtask", ..] => {
            let words = words[1..].iter().filter(|word| **word != "--release"); // xtask's own
            itm_run::cli::Cli::try_parse_from(words).map(drop)
        }
        ["itm", ..] => itm_run::cli::Cli::try_parse_from(words).map(drop),
        ["tags-dc", ..] => tags_dc::cli::Cli::try_parse_from(words).map(drop),
        ["hubness", ..] => hubness::cli::args::CommandLine::try_parse_from(words).map(drop),
        _ => return None,
    })
}

#[test]
fn every_line_of_the_documentation_is_parsed() {
    let mut parsed = 0;
    for page in pages() {
        for step in steps(&std::fs::read_to_string(&page).unwrap(), false) {
            let Step::Command { line, words } = step else { continue };
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let Some(answer) = parse(&words) else { continue };
            if let Err(error) = answer {
                panic!("{}:{line}: {error}", page.display());
            }
            parsed += 1;
        }
    }
    assert!(parsed > 20, "{parsed} lines");
}

/// The test can fail, and no name of xtask hides a command of `itm`.
#[test]
fn wrong_lines_are_refused() {
    for line in [
        "cargo xtask reproduce fne-scenes --sed 1",
        "cargo xtask reproduse fne-scenes",
        "cargo xtask phrases",
        "hubness report --image a.npy",
    ] {
        let words: Vec<_> = line.split(' ').collect();
        assert!(parse(&words).unwrap().is_err(), "{line}");
    }
    let itm = itm_run::cli::Cli::command();
    assert!(itm.get_subcommands().all(|command| !OWN.contains(&command.get_name())));
}

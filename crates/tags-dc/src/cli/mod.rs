//! The binary `tags-dc`: phrases of captions, negative captions by rules, benchmarks of compositional captions.

mod benchmark;
mod captions;
pub mod negatives;
mod phrases;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use itm_core::{Error, Result};

use self::benchmark::BenchmarkArgs;
pub use self::negatives::Negatives;
use self::phrases::Phrases;

/// Phrases of captions, and captions that are false of their images.
#[derive(Debug, Parser)]
#[command(name = "tags-dc")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

/// The commands of `tags-dc`.
#[derive(Debug, Subcommand)]
enum Command {
    /// Objects, attributes and relations of captions, with the positions of their words.
    Phrases(Phrases),
    /// Write negative captions: sentences that are false of their image, each made by one change of a true caption.
    Negatives(Negatives),
    /// SugarCrepe, ARO, VALSE and Winoground for your own model: what must be scored, and how many questions the scores answer.
    Benchmark(BenchmarkArgs),
}

/// Runs the command line, and prints to `out`.
///
/// # Errors
/// If a file cannot be read or written, or its contents are wrong. Nothing is written then.
pub fn run(cli: &Cli, out: &mut impl Write) -> Result<()> {
    match &cli.command {
        Command::Benchmark(benchmark) => benchmark.run(out),
        Command::Phrases(phrases) => phrases.run(out),
        Command::Negatives(negatives) => {
            let folder = negatives.out.clone().unwrap_or_else(|| free("negatives"));
            negatives.by_rules(&folder, "tags-dc negatives", out)
        }
    }
}

/// Refuses an output that would replace a file that the command reads; of a folder it reads the files.
fn no_input<'a>(out: &Path, read: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    let Some(old) = out.canonicalize().ok().filter(|old| old.is_file()) else { return Ok(()) };
    let is_old = |at: PathBuf| at == old || old.parent() == Some(&*at);
    let is_input = read.into_iter().filter_map(|path| path.canonicalize().ok()).any(is_old);
    Error::unless(!is_input, out.display(), "an output that is no input", "an input")
}

/// The path, or with `-2` and so on behind it if there is one.
fn free(path: &str) -> PathBuf {
    let numbered = (2..).map(|n| format!("{path}-{n}").into());
    let mut paths = std::iter::once(path.into()).chain(numbered);
    paths.find(|path: &PathBuf| !path.exists()).expect("a number that is free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_exists_is_not_the_default() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("negatives").display().to_string();
        for want in ["negatives", "negatives-2", "negatives-3"] {
            let found = free(&path);
            assert_eq!(found, dir.path().join(want));
            std::fs::create_dir(found).unwrap();
        }
    }
}

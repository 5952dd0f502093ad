//! `cargo xtask fuzz`: the targets of `fuzz`, one after the other.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::reproduce::{cargo, exit_code};

/// How long, and which targets.
#[derive(Debug, clap::Args)]
pub(crate) struct Fuzz {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Only these targets, separated by commas.
    #[arg(long, value_delimiter = ',')]
    targets: Vec<String>,
}

impl Fuzz {
    /// Changes the corpora without a fuzzer, so any compiler will do. `cargo +nightly fuzz run npy` follows the branches too.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no workspace")?;
        let mut known = vec![];
        for entry in std::fs::read_dir(root.join("fuzz/fuzz_targets")).context("fuzz")? {
            known.extend(entry?.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
        known.sort();
        if let Some(unknown) = self.targets.iter().find(|&name| !known.contains(name)) {
            bail!("--targets: expected some of {}, got `{unknown}`", known.join(", "));
        }
        let status = Command::new(cargo())
            .args(["test", "--package", "itm-tests", "--package", "hubness"])
            .args(["--features", "hubness/parquet", "--test", "fuzz", "--", "--nocapture"])
            .env("ITM_FUZZ_SECONDS", self.seconds.to_string())
            .env("ITM_FUZZ_TARGETS", self.targets.join(","))
            .current_dir(root)
            .status()
            .context("cargo")?;
        Ok(exit_code(status))
    }
}

//! `cargo xtask fuzz`: the targets of `fuzz`, one after the other.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

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
    /// Needs a nightly compiler and `cargo install cargo-fuzz`. New inputs go to `target`, so the committed corpora stay small.
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
        let asked = if self.targets.is_empty() { &known } else { &self.targets };
        let mut failed = vec![];
        for target in asked {
            let found = root.join("target/fuzz-corpus").join(target);
            std::fs::create_dir_all(&found).context("target/fuzz-corpus")?;
            let status = Command::new("rustup")
                .args(["run", "nightly", "cargo", "fuzz", "run", "--fuzz-dir", "fuzz", target])
                .args([found, root.join("fuzz/corpus").join(target)])
                .args(["--", "-rss_limit_mb=2048", "-timeout=20"])
                .arg(format!("-max_total_time={}", self.seconds))
                .current_dir(root)
                .status()
                .context("rustup")?;
            if !status.success() {
                failed.push(target.as_str());
            }
        }
        if failed.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        bail!(
            "a crash, a hang or too much memory: {} (the input is in fuzz/artifacts)",
            failed.join(", ")
        )
    }
}

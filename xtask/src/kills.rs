//! `cargo xtask kills`: the runner's test of killed trainings, with as many kills as one likes.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::reproduce::exit_code;

/// The test, by its path in the runner's library.
const TEST: &str = "kills::killed_runs_end_with_the_bits_of_an_uninterrupted_one";

/// How many, and which.
#[derive(Debug, clap::Args)]
pub(crate) struct Kills {
    /// Number of kills, half of them at named points, half at random moments.
    #[arg(long, default_value_t = 200)]
    count: u32,
    /// Chooses points and moments.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Kills trainings of this method alone, such as `tags-dc`; without it all methods share the kills.
    #[arg(long)]
    method: Option<String>,
}

impl Kills {
    /// Builds the test and runs it; its last line is the result.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let mut test = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        if let Some(method) = &self.method {
            test.env("ITM_KILLS_METHOD", method);
        }
        let status = test
            .args(["test", "--package", "itm-run", "--lib", "--", TEST, "--exact", "--nocapture"])
            .env("ITM_KILLS", self.count.to_string())
            .env("ITM_KILLS_SEED", self.seed.to_string())
            .status()
            .context("cargo")?;
        Ok(exit_code(status))
    }
}

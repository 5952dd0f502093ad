//! `cargo xtask kills`: the runner's test of killed trainings, with any number of kills.

use std::process::ExitCode;

use anyhow::Result;

use crate::reproduce::{cargo, pass_on};

/// The test, by its path in the runner's library.
const TEST: &str = "kills_tests::killed_runs_end_with_the_bits_of_an_uninterrupted_one";

/// The number of kills, and their choice.
#[derive(Debug, clap::Args)]
pub(crate) struct Kills {
    /// Number of kills, half of them at named points, half at random moments.
    #[arg(long, default_value_t = 200)]
    count: u32,
    /// Seed that chooses points and moments.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Kill only trainings of this method, such as `tags-dc`; by default all methods share the kills.
    #[arg(long)]
    method: Option<String>,
}

impl Kills {
    /// Builds the test and runs it; its last line is the result.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let mut test = cargo();
        if let Some(method) = &self.method {
            test.env("ITM_KILLS_METHOD", method);
        }
        test.args(["test", "--package", "itm-run", "--lib", "--", TEST, "--exact", "--nocapture"]);
        test.env("ITM_KILLS", self.count.to_string());
        test.env("ITM_KILLS_SEED", self.seed.to_string());
        pass_on(&mut test)
    }
}

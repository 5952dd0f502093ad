//! `cargo xtask options`: writes the map of all options, `docs/options.md`.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::reproduce::{cargo, exit_code};

/// Runs the test that compares the page with the code, and has it write the page. With the whole workspace's features: what
/// `cargo test --workspace` has built serves.
pub(crate) fn run() -> Result<ExitCode> {
    let status = Command::new(cargo())
        .args(["test", "--quiet", "--workspace", "--test", "options"])
        .args(["--", "the_page_is_what_the_code_says", "--exact"])
        .env("ITM_WRITE_OPTIONS", "1")
        .status()
        .context("cargo")?;
    Ok(exit_code(status))
}

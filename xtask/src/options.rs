//! `cargo xtask options`: writes the map of all options, `docs/options.md`.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::reproduce::{cargo, exit_code};

/// Runs the test that compares the page with the code, so that it writes the page. It uses the features of the whole workspace, so
/// the build of `cargo test --workspace` is reused.
pub(crate) fn run() -> Result<ExitCode> {
    let status = Command::new(cargo())
        .args(["test", "--quiet", "--workspace", "--test", "options"])
        .args(["--", "the_page_is_what_the_code_says", "--exact"])
        .env("ITM_WRITE_OPTIONS", "1")
        .status()
        .context("cargo")?;
    Ok(exit_code(status))
}

//! `cargo xtask options`: writes the JSON schemas of configurations, `docs/schema`, and from them the list of all options,
//! `docs/options.md`.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::reproduce::{cargo, exit_code};

/// Runs the tests that compare these files with the code, so that they write the files. They use the features of the whole workspace, so
/// that the build of `cargo test --workspace` is reused as far as it has no schemas.
pub(crate) fn run() -> Result<ExitCode> {
    let schema = ["--features", "itm-tests/schema", "--test", "schema"];
    for test in [&schema[..], &["--test", "options", "--", "the_page_is_what_the_code_says"]] {
        let status = cargo()
            .args(["test", "--quiet", "--workspace"])
            .args(test)
            .env("ITM_WRITE_OPTIONS", "1")
            .status()
            .context("cargo")?;
        if !status.success() {
            return Ok(exit_code(status));
        }
    }
    Ok(ExitCode::SUCCESS)
}

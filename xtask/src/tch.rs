//! `cargo xtask tch`: backend `tch` with the libtorch of a Python.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::reproduce;
use crate::torch::Torch;

/// `tch [--python P] -- test …` runs the contract test on libtorch, `-- run …` is `reproduce --backend tch …`.
pub(crate) fn run(python: &Path, args: Vec<OsString>) -> Result<ExitCode> {
    let torch = Torch::of(python)?;
    eprintln!("{torch}");
    let [task, rest @ ..] = args.as_slice() else {
        bail!("tch: expected `-- test` or `-- run <target>`, got nothing")
    };
    let mut rest = rest.to_vec();
    match task.to_str() {
        Some("test") => {
            let mut command = reproduce::cargo();
            command.args(["test", "--package", "itm-tests", "--features", "tch"]);
            command.args(["--test", "backends", "--", "--nocapture"]).args(rest);
            torch.apply(&mut command)?;
            reproduce::pass_on(&mut command)
        }
        Some("run") => {
            if reproduce::backend(&rest).is_none() {
                rest.splice(..0, ["--backend", "tch"].map(OsString::from));
            }
            reproduce::run_with("reproduce", rest, Some(torch))
        }
        other => bail!("tch: expected `test` or `run`, got `{}`", other.unwrap_or("other bytes")),
    }
}

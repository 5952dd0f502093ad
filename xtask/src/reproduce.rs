//! From a backend to a build, from a build to a run.

use std::ffi::OsString;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result, bail};

/// Builds `itm` with the features of the backend in `args` and runs `itm <command> <args>`.
///
/// Cargo's own output stays visible: a first build takes minutes. The exit code is that of `itm`: 2 for a user's mistake.
pub(crate) fn run(command: &str, args: Vec<OsString>) -> Result<ExitCode> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--release", "--package", "itm-run", "--no-default-features"])
        .args(["--features", features(&args)?, "--", command])
        .args(args)
        .status()
        .context("cargo")?;
    Ok(exit_code(status))
}

/// The features of `itm-run` that hold the last `--backend` of the arguments; `cpu` without one.
fn features(args: &[OsString]) -> Result<&'static str> {
    let ours = args.split(|arg| arg == "--").next().unwrap_or_default();
    let mut backend = None;
    for (k, arg) in ours.iter().enumerate() {
        let arg = arg.to_string_lossy();
        if let Some(value) = arg.strip_prefix("--backend=") {
            backend = Some(value.to_owned());
        } else if arg == "--backend" {
            let value = ours.get(k + 1).map(|value| value.to_string_lossy().into_owned());
            backend = Some(value.unwrap_or_else(|| "nothing".to_owned()));
        }
    }
    Ok(match backend.as_deref() {
        None | Some("cpu") => "cpu",
        Some("wgpu") => "wgpu",
        Some("tch" | "tch-cuda") => "tch",
        Some(other) => bail!("--backend: expected cpu, wgpu, tch or tch-cuda, got {other}"),
    })
}

/// The child's code; 128 + signal, as a shell says it, if it was killed.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return ExitCode::from(128 + signal as u8);
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features_of(line: &str) -> Result<&'static str> {
        features(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_backend_is_a_feature() {
        for (line, want) in [
            ("fne-flickr", "cpu"),
            ("fne-flickr --backend cpu --seeds 3", "cpu"),
            ("fne-flickr --backend=wgpu", "wgpu"),
            ("fne-flickr --seeds 3 --backend tch", "tch"),
            ("--backend tch-cuda fne-flickr", "tch"),
            ("--backend cpu --backend wgpu", "wgpu"),
            ("fne-flickr -- --backend nonsense", "cpu"),
        ] {
            assert_eq!(features_of(line).unwrap(), want, "{line}");
        }
    }

    #[test]
    fn another_backend_is_refused_in_one_line() {
        let want = "--backend: expected cpu, wgpu, tch or tch-cuda, got";
        assert_eq!(features_of("--backend cuda").unwrap_err().to_string(), format!("{want} cuda"));
        assert_eq!(features_of("--backend").unwrap_err().to_string(), format!("{want} nothing"));
    }
}

//! Builds the runner for a backend, and runs it.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result, bail};

use crate::targets;
use crate::torch::Torch;

/// The arguments of cargo that name the runner.
pub(crate) const RUNNER: [&str; 3] = ["--package", "itm-run", "--no-default-features"];

/// Builds `itm` with the features of the backend and of the methods in `args`, and runs `itm <command> <args>`.
///
/// For the CPU the build has the profile of the tests, which optimises what runs hot; for another backend, and with `--release` among
/// `args`, the profile `release`, which optimises everything. Cargo's output stays visible: a first build takes minutes. The exit code comes from `itm`: 2 for a user's mistake.
pub(crate) fn run(command: &str, args: Vec<OsString>) -> Result<ExitCode> {
    run_with(command, args, None)
}

/// [`run`] with the given libtorch.
pub(crate) fn run_with(
    command: &str,
    mut args: Vec<OsString>,
    torch: Option<Torch>,
) -> Result<ExitCode> {
    let release = take_release(&mut args);
    let backend = backend(&args).unwrap_or_else(|| "cpu".to_owned());
    let features = features(&backend)?;
    let release = release || features != "cpu";
    if !built(if release { "release" } else { "debug" }) {
        eprintln!("{FIRST_BUILD}");
    }
    let torch = match torch {
        None if features == "tch" && std::env::var_os("LIBTORCH").is_none() => {
            Some(Torch::of("python3".as_ref())?)
        }
        torch => torch,
    };
    if let Some(torch) = &torch {
        torch.check(&backend)?;
    }
    let run = |features: &str| -> Result<ExitStatus> {
        let mut build = cargo();
        build.arg("run").args(RUNNER).args(["--features", features]);
        if release {
            build.arg("--release");
        }
        if let Some(torch) = &torch {
            torch.apply(&mut build)?;
        }
        build.envs(commit().map(|commit| ("ITM_COMMIT", commit)));
        build.args(["--", command]).args(&args).status().context("cargo")
    };
    let ours = before_dashes(&args);
    let configs = option(ours, "--configs").unwrap_or_else(|| "configs".to_owned());
    let mut build = vec![features.to_owned()];
    build.extend(targets::needed(configs.as_ref(), ours));
    build.extend(first(command).map(str::to_owned));
    let mut status = run(&build.join(","))?;
    for (feature, why) in MORE {
        if status.code() != Some(ANOTHER_BUILD) {
            break;
        }
        if build.iter().any(|known| known == feature) {
            continue;
        }
        eprintln!("This command {why}, once.");
        build.push(feature.to_owned());
        status = run(&build.join(","))?;
    }
    Ok(exit_code(status))
}

/// The feature that a command needs in any case.
fn first(command: &str) -> Option<&'static str> {
    match command {
        "embed" | "export" => Some("published"),
        "index" | "search" | "serve" => Some("search"),
        "negatives" => Some("negatives"),
        _ => None,
    }
}

/// The exit code of a runner without a feature that the command needs, as only the runner can know.
const ANOTHER_BUILD: i32 = 3;

/// The features of the builds that follow then.
const MORE: [(&str, &str); 2] = [
    ("published", "reads published files: building what reads them"),
    ("methods", "names a method that was not foreseen: building all methods"),
];

/// Printed before the first build, because cargo's own lines do not say how long it takes.
const FIRST_BUILD: &str = "Building the runner `itm`. The first build takes some 5 minutes on two cores, with --release or for a GPU more; then `itm` runs.";

/// Removes `--release` from the arguments before `--`, and says whether it was there.
fn take_release(args: &mut Vec<OsString>) -> bool {
    let at = before_dashes(args).iter().position(|arg| arg == "--release");
    at.map(|at| args.remove(at)).is_some()
}

/// Whether there is a runner already. A build may still be needed then, but takes less time.
fn built(profile: &str) -> bool {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let name = format!("itm{}", std::env::consts::EXE_SUFFIX);
    Path::new(&target).join(profile).join(name).is_file()
}

/// A call of the cargo that runs this program.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Calls cargo, and passes its exit code on.
pub(crate) fn pass_on(cargo: &mut Command) -> Result<ExitCode> {
    Ok(exit_code(cargo.status().context("cargo")?))
}

/// The last `--backend` of the arguments.
pub(crate) fn backend(args: &[OsString]) -> Option<String> {
    option(before_dashes(args), "--backend")
}

/// The arguments before `--`.
fn before_dashes(args: &[OsString]) -> &[OsString] {
    args.split(|arg| arg == "--").next().unwrap_or_default()
}

/// The last value of an option.
fn option(args: &[OsString], name: &str) -> Option<String> {
    let mut last = None;
    for (k, arg) in args.iter().enumerate() {
        let arg = arg.to_string_lossy();
        if arg == name {
            let value = args.get(k + 1).map(|value| value.to_string_lossy().into_owned());
            last = Some(value.unwrap_or_else(|| "nothing".to_owned()));
        } else if let Some(value) = arg.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
            last = Some(value.to_owned());
        }
    }
    last
}

/// The feature of `itm-run` for a backend. `itm` itself reads the part after a colon.
fn features(backend: &str) -> Result<&'static str> {
    Ok(match backend.split(':').next().unwrap_or_default() {
        "cpu" => "cpu",
        "wgpu" => "wgpu",
        "tch" | "tch-cuda" => "tch",
        "cuda" => "cuda",
        _ => {
            bail!("--backend: expected cpu, wgpu[:i], tch, tch-cuda[:i] or cuda[:i], got {backend}")
        }
    })
}

/// The child's exit code; 128 + signal, as in a shell, if the child was killed.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return ExitCode::from(128 + signal as u8);
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// The commit of this workspace, with `+dirty` if tracked files are changed; `None` outside a repository.
fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let output = Command::new("git").arg("-C").arg(root).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { commit + "+dirty" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features_of(line: &str) -> Result<&'static str> {
        let args: Vec<_> = line.split_whitespace().map(OsString::from).collect();
        features(&backend(&args).unwrap_or_else(|| "cpu".to_owned()))
    }

    #[test]
    fn a_backend_is_a_feature() {
        for (line, want) in [
            ("fne-flickr", "cpu"),
            ("fne-flickr --backend cpu --seeds 3", "cpu"),
            ("fne-flickr --backend=wgpu", "wgpu"),
            ("fne-flickr --seeds 3 --backend tch", "tch"),
            ("--backend tch-cuda fne-flickr", "tch"),
            ("fne-flickr --backend tch-cuda:1", "tch"),
            ("fne-flickr --backend cuda", "cuda"),
            ("fne-flickr --backend=wgpu:0", "wgpu"),
            ("fne-flickr --backend=wgpu:0,wgpu:1", "wgpu"),
            ("--backend cpu --backend wgpu", "wgpu"),
            ("fne-flickr -- --backend nonsense", "cpu"),
        ] {
            assert_eq!(features_of(line).unwrap(), want, "{line}");
        }
    }

    #[test]
    fn release_is_an_argument_of_xtask() {
        let mut args = ["fne-scenes", "--release", "--seeds", "1"].map(OsString::from).to_vec();
        assert!(take_release(&mut args));
        assert_eq!(args, ["fne-scenes", "--seeds", "1"]);
        assert!(!take_release(&mut args));
        let mut words = ["--", "--release"].map(OsString::from).to_vec();
        assert!(!take_release(&mut words) && words.len() == 2);
    }

    #[test]
    fn another_backend_is_refused_in_one_line() {
        let want = "--backend: expected cpu, wgpu[:i], tch, tch-cuda[:i] or cuda[:i], got";
        assert_eq!(features_of("--backend gpu").unwrap_err().to_string(), format!("{want} gpu"));
        assert_eq!(features_of("--backend").unwrap_err().to_string(), format!("{want} nothing"));
    }
}

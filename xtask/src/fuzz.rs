//! `cargo xtask fuzz`: the targets of `fuzz` under libFuzzer, one after the other.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::reproduce::cargo;

/// Arguments of libFuzzer.
const LIMITS: [&str; 4] =
    ["-max_len=20000", "-timeout=25", "-rss_limit_mb=3000", "-print_final_stats=1"];

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
    /// Builds the targets, and runs them. What libFuzzer found stays in `target/fuzz`: inputs that reached something new, by which a later
    /// run goes on, its log, and the input of a failure.
    #[allow(clippy::print_stdout)] // the counts are the result
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no workspace")?;
        let fuzz = root.join("fuzz");
        let mut known = vec![];
        for entry in fs::read_dir(fuzz.join("fuzz_targets")).context("fuzz")? {
            known.extend(entry?.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
        known.sort();
        if let Some(unknown) = self.targets.iter().find(|&name| !known.contains(name)) {
            bail!("--targets: expected some of {}, got `{unknown}`", known.join(", "));
        }
        let asked = |name: &&String| self.targets.is_empty() || self.targets.contains(name);
        let mut build = cargo();
        build.current_dir(&fuzz).args(["build", "--release", "--features", "itm-run"]);
        for name in &self.targets {
            build.args(["--bin", name]);
        }
        ensure!(build.status().context("cargo")?.success(), "the targets do not compile");
        let host =
            Command::new("rustc").args(["--print", "host-tuple"]).output().context("rustc")?;
        let host = String::from_utf8_lossy(&host.stdout).trim().to_owned();
        let release = root.join("target/fuzz").join(host).join("release");
        let mut failed = false;
        for name in known.iter().filter(asked) {
            let made = root.join("target/fuzz").join(name);
            let found = made.join("corpus");
            fs::create_dir_all(&found).with_context(|| found.display().to_string())?;
            let log = made.join("log");
            let program = release.join(name);
            let status = Command::new(&program)
                .args([&found, &fuzz.join("corpus").join(name)])
                .arg(format!("-artifact_prefix={}/", made.display()))
                .arg(format!("-max_total_time={}", self.seconds))
                .args(LIMITS)
                .stderr(File::create(&log).with_context(|| log.display().to_string())?)
                .status()
                .with_context(|| program.display().to_string())?;
            let text = fs::read(&log).with_context(|| log.display().to_string())?;
            println!("{name}: {}", summary(&String::from_utf8_lossy(&text)));
            if !status.success() {
                println!("{name}: it failed; {} has the input and the log", made.display());
                failed = true;
            }
        }
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// The number of inputs, and of the branches that they reached, as libFuzzer's log has them.
fn summary(log: &str) -> String {
    let after = |mark: &str| {
        let rest = log.rsplit_once(mark).map_or("", |(_, rest)| rest);
        rest.split_whitespace().next().unwrap_or("?").to_owned()
    };
    let inputs = after("stat::number_of_executed_units:");
    format!("{inputs} inputs, {} branches", after(" cov:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_its_last_numbers() {
        let log = "#2\tINITED cov: 5 ft: 6\n#9\tDONE   cov: 20 ft: 41 corp: 8\nstat::number_of_executed_units: 4276\n";
        assert_eq!(summary(log), "4276 inputs, 20 branches");
        assert_eq!(summary("error: no such command"), "? inputs, ? branches");
    }
}

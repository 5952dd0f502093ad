//! `cargo xtask build-time`: CPU seconds of every crate of a cold build.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::reproduce::{RUNNER, cargo, exit_code};

/// Names the file that the compiler's wrapper appends to. If it is set, this program is that wrapper.
pub(crate) const VARIABLE: &str = "ITM_BUILD_TIME";

/// Ticks per second of `/proc`: 100 on every Linux.
const TICKS: f64 = 100.0;

/// What is built, into an empty folder.
#[derive(Debug, clap::Args)]
pub(crate) struct BuildTime {
    /// Crates shown.
    #[arg(long, default_value_t = 40)]
    top: usize,
    /// Arguments of cargo, such as `-- test --workspace --no-run`; the runner's build by default.
    #[arg(last = true)]
    args: Vec<OsString>,
}

impl BuildTime {
    /// Builds with this program around the compiler, and prints what each crate took.
    #[allow(clippy::print_stdout)] // the table is the result
    pub(crate) fn run(&self) -> Result<ExitCode> {
        if !Path::new(STATISTICS).exists() {
            bail!("build-time: expected {STATISTICS}, which Linux has; got none");
        }
        let folder = std::env::current_dir()?.join("target/build-time");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let log = folder.join("compilations");
        let mut build = cargo();
        match self.args.is_empty() {
            true => build.arg("build").args(RUNNER).args(["--features", "cpu,fne"]),
            false => build.args(&self.args),
        };
        build.env("CARGO_TARGET_DIR", &folder).env(VARIABLE, &log);
        build.env("RUSTC_WRAPPER", std::env::current_exe()?);
        let start = Instant::now();
        let status = build.status().context("cargo")?;
        let seconds = start.elapsed().as_secs_f64();
        if status.success() {
            let log = std::fs::read_to_string(&log).with_context(|| log.display().to_string())?;
            print!("{}", table(&log, self.top));
            println!("{seconds:.0} s of waiting");
        }
        Ok(exit_code(status))
    }
}

const STATISTICS: &str = "/proc/self/stat";

/// Runs the compiler that `args` name, and appends `crate level seconds` to the log.
pub(crate) fn wrap(log: &Path, args: &[OsString]) -> Result<ExitCode> {
    let [compiler, args @ ..] = args else { bail!("expected a compiler and its arguments") };
    let status = Command::new(compiler).args(args).status().context("rustc")?;
    if let Some((name, level)) = unit(args) {
        let line = format!("{name} {level} {:.2}\n", children()?);
        let mut log = std::fs::File::options().create(true).append(true).open(log)?;
        log.write_all(line.as_bytes())?;
    }
    Ok(exit_code(status))
}

/// The crate that a call of the compiler makes, and its level; none for a question about the compiler itself.
fn unit(args: &[OsString]) -> Option<(String, String)> {
    let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let after = |word: &str| args.iter().skip_while(|arg| *arg != word).nth(1);
    let name = after("--crate-name").filter(|name| *name != "___")?;
    let level = args.iter().find_map(|arg| arg.strip_prefix("opt-level=")).unwrap_or("0");
    let test = if args.iter().any(|arg| arg == "--test") { "(test)" } else { "" };
    Some((format!("{name}{test}"), level.to_owned()))
}

/// CPU seconds of all children that have ended.
fn children() -> Result<f64> {
    let text = std::fs::read_to_string(STATISTICS)?;
    // The name of the program stands in brackets and may hold spaces; then come the fields from the third on.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    Ok(ticks / TICKS)
}

/// The crates that took longest, and the sum of all.
fn table(log: &str, top: usize) -> String {
    let mut crates: BTreeMap<(&str, &str), (usize, f64)> = BTreeMap::new();
    for line in log.lines() {
        let [name, level, seconds] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let entry = crates.entry((name, level)).or_default();
        *entry = (entry.0 + 1, entry.1 + seconds.parse::<f64>().unwrap_or(0.0));
    }
    let mut rows: Vec<_> = crates.into_iter().collect();
    rows.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    let (units, sum) = rows.iter().fold((0, 0.0), |(n, sum), (_, row)| (n + row.0, sum + row.1));
    let mut text = format!("{:>8} {:>5} {:>5}  crate\n", "CPU s", "level", "calls");
    for ((name, level), (calls, seconds)) in rows.iter().take(top) {
        text += &format!("{seconds:>8.1} {level:>5} {calls:>5}  {name}\n");
    }
    text + &format!("{sum:>8.1} {:>5} {units:>5}  all\n", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<(String, String)> {
        unit(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_call_of_the_compiler_names_its_crate_and_level() {
        let some = |name: &str, level: &str| Some((name.to_owned(), level.to_owned()));
        assert_eq!(of("--crate-name fne src/lib.rs -C opt-level=3 -C x"), some("fne", "3"));
        assert_eq!(of("--crate-name fne src/lib.rs --test"), some("fne(test)", "0"));
        assert_eq!(of("-vV"), None);
        assert_eq!(of("- --crate-name ___ --print=file-names"), None);
    }

    #[test]
    fn crates_are_summed_and_sorted() {
        let table = table("b 0 1.00\na 3 2.00\nb 0 0.50\nc 0 0.25\n", 2);
        let words: Vec<_> = table.split_whitespace().collect();
        let want = "CPU s level calls crate 2.0 3 1 a 1.5 0 2 b 3.8 4 all";
        assert_eq!(words.join(" "), want);
    }
}

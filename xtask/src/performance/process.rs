//! One measurement: a fresh process of one side, and the line of JSON that it prints.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A side of the comparison: how its processes are started.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    first: Vec<OsString>,
    environment: Vec<(&'static str, String)>,
    threads: usize,
    limit: Duration,
}

impl Program {
    pub(super) fn ours(path: PathBuf, threads: usize, limit: u64) -> Self {
        Self::new(path, threads, limit)
    }

    pub(super) fn python(path: &Path, root: &Path, threads: usize, limit: u64) -> Self {
        let script = root.join("tests/reference/performance.py");
        Self { first: vec![script.into()], ..Self::new(path.to_owned(), threads, limit) }
    }

    fn new(path: PathBuf, threads: usize, limit: u64) -> Self {
        let environment = ["RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"]
            .map(|key| (key, threads.to_string()))
            .to_vec();
        Self { path, first: vec![], environment, threads, limit: Duration::from_secs(limit) }
    }

    /// Names of the rows, each with its variants.
    pub(super) fn rows(&self) -> Result<Vec<(String, Vec<String>)>> {
        let text = self.output(&["--list"]).map_err(|reason| {
            let place = self.path.display();
            anyhow::anyhow!("{place}: expected a program that lists its rows, got {reason}")
        })?;
        let rows = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            Some((words.next()?, words.collect()))
        });
        Ok(rows.collect())
    }

    /// The measurement of one process, or one line that says why there is no number.
    pub(super) fn measure(&self, row: &str, variant: &str, seconds: u32) -> Result<Value, String> {
        let (threads, seconds) = (self.threads.to_string(), seconds.to_string());
        let args = [row, variant, "--threads", &threads, "--seconds", &seconds];
        let line = parse(&self.output(&args)?)?;
        match line["threads"].as_u64() {
            Some(t) if t == self.threads as u64 => Ok(line),
            Some(other) => Err(format!("{other} threads instead of {threads}")),
            None => Err(format!("no number of threads, instead of {threads}")),
        }
    }

    /// The output of the process. If it fails, the last line of its errors; if it takes too long, a line that says so.
    fn output(&self, args: &[&str]) -> Result<String, String> {
        let mut child = Command::new(&self.path)
            .args(&self.first)
            .args(args)
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
        let start = Instant::now();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if start.elapsed() < self.limit => {
                    thread::sleep(Duration::from_millis(50));
                }
                Ok(None) => {
                    // The process may have ended in the meantime: then there is nothing to stop.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("not done after {} s", self.limit.as_secs()));
                }
                Err(error) => return Err(error.to_string()),
            }
        };
        let text = |thread: thread::JoinHandle<String>| thread.join().unwrap_or_default();
        let (out, err) = (text(out), text(err));
        if status.success() {
            return Ok(out);
        }
        let last = err.lines().rev().find(|line| !line.trim().is_empty());
        Err(last.map_or_else(|| status.to_string(), |line| line.trim().to_owned()))
    }
}

/// The measurement in a program's output: its last line that is JSON.
fn parse(output: &str) -> Result<Value, String> {
    let line = output.lines().rev().find(|line| line.starts_with('{')).ok_or("no measurement")?;
    let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    match line["error"].as_str() {
        Some(reason) => Err(reason.to_owned()),
        None if line["best"].as_f64().is_some_and(|best| best > 0.0) => Ok(line),
        None => Err("a measurement without a time".to_owned()),
    }
}

/// Reads to the end in a thread, because the process would block on a full pipe.
fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes); // after an error, the bytes before it are kept
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Builds the benchmarks as `itm` is built, and returns their paths.
pub(super) fn build_benches(root: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["build", "--release"])
        .args(["itm-core", "fne", "naaf", "tags-dc"].iter().flat_map(|name| ["--package", name]))
        .args(["--features", "itm-core/burn,itm-kernels/flex,tags-dc/flex"])
        .args(BENCHES.iter().flat_map(|name| ["--bench", name]))
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit()) // a first build takes minutes
        .output()
        .context("cargo")?;
    if !output.status.success() {
        bail!("the benchmarks do not build");
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let find = |name: &&str| {
        let built = messages.lines().filter_map(|line| executable(line, name)).next_back();
        built.with_context(|| format!("cargo names no executable of the benchmark {name}"))
    };
    BENCHES.iter().map(find).collect()
}

/// In the order of their rows: single encoders, FNE's whole step, NAAF's step and cross attention, a micro-step of TAGS-DC.
const BENCHES: [&str; 4] = ["encoders", "paper_step", "naaf_step", "tags_step"];

fn executable(message: &str, name: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_ours = message["target"]["name"] == name && message["target"]["kind"][0] == "bench";
    message["executable"].as_str().filter(|_| is_ours).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_json_counts() {
        let line = parse("warning\n{\"best\": 1}\n{\"best\": 0.5, \"row\": \"x\"}\n").unwrap();
        assert_eq!(line["best"], 0.5);
        assert_eq!(parse("").unwrap_err(), "no measurement");
        assert_eq!(parse("{\"error\": \"no compiler\"}").unwrap_err(), "no compiler");
        assert_eq!(parse("{\"row\": \"x\"}").unwrap_err(), "a measurement without a time");
    }

    #[test]
    fn the_benchmark_is_found_among_cargos_messages() {
        let message = |kind: &str| {
            format!(
                r#"{{"reason": "compiler-artifact", "target": {{"name": "encoders", "kind": ["{kind}"]}}, "executable": "e"}}"#
            )
        };
        assert_eq!(executable(&message("bench"), "encoders"), Some(PathBuf::from("e")));
        assert_eq!(executable(&message("bench"), "paper_step"), None);
        assert_eq!(executable(&message("bin"), "encoders"), None);
        assert_eq!(executable("no JSON", "encoders"), None);
    }

    /// The reason is the last line of a Python without torch, or that the program does not exist.
    #[cfg(unix)]
    #[test]
    fn a_failing_program_gives_one_line() {
        let shell = |script: &str, limit| Program {
            first: vec!["-c".into(), script.into()],
            ..Program::new("sh".into(), 1, limit)
        };
        let failing = shell("echo Traceback >&2; echo 'no module torch' >&2; exit 1", 9);
        assert_eq!(
            failing.rows().unwrap_err().to_string(),
            "sh: expected a program that lists its rows, got no module torch"
        );
        let absent = Program::new("no-such-program".into(), 1, 9);
        assert_eq!(absent.rows().unwrap_err().to_string().lines().count(), 1);
        let slow = shell("sleep 20", 1);
        assert_eq!(slow.measure("x", "y", 1).unwrap_err(), "not done after 1 s");
        let other = shell("echo '{\"best\": 1, \"threads\": 3}'", 9);
        assert_eq!(other.measure("x", "y", 1).unwrap_err(), "3 threads instead of 1");
    }
}

//! The binary as a user runs it: a run that is killed at every stage and resumed ends like an uninterrupted run.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{files, itm, run, set, small_configs, text};

#[test]
fn a_run_writes_its_reports_and_a_killed_one_ends_with_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let whole = dir.path().join("whole");
    let output = run(&configs, &arguments(&whole));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in ["chance", "CCA (closed form)", "Full", "w/o MMM", "whole/report.html"] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    for file in ["report.json", "report.md", "report.html", "config.toml", "run.json"] {
        assert!(whole.join(file).is_file(), "{file}");
    }
    // A program that reads the paths of a search gets each character, also one that turns a line.
    let out = dir.path().join("a\u{202e}b");
    let [run_at, out_at] = [&whole, &out].map(|path| path.to_str().unwrap());
    for (args, want) in [
        (["index", "--images", "scenes", "--run", run_at, "--out", out_at], "pictures in"),
        (["search", "red", "-f", "--top", "1", "--index", out_at], "/a\u{202e}b/pictures/"),
    ] {
        let output = run(&configs, &args);
        assert!(text(&output.stdout).contains(want), "{}", text(&output.stderr));
    }
    // An index of other pictures is refused before anything is drawn there.
    let manifest = out.join("index/index.json");
    let mut about: serde_json::Value =
        serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    about["folder"] = dir.path().to_str().into();
    fs::write(manifest, about.to_string()).unwrap();
    fs::remove_dir_all(out.join("pictures")).unwrap();
    let output = run(&configs, &["index", "--images", "scenes", "--run", run_at, "--out", out_at]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(!out.join("pictures").exists());

    let killed = dir.path().join("killed");
    let kills = KILLS.iter().filter(|kill| spawn_and_kill(&configs, &killed, &[], kill)).count();
    assert_eq!(kills, KILLS.len(), "the run ended before its last kill");
    let output = run(&configs, &arguments(&killed));
    assert!(output.status.success(), "{}", text(&output.stderr));

    let (want, got) = (files(&whole.join("rows")), files(&killed.join("rows")));
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&got), names(&want));
    for ((name, want), (_, got)) in want.iter().zip(&got) {
        assert!(want == got, "{name} differs after {kills} kills");
    }
    assert_eq!(
        fs::read(killed.join("config.toml")).unwrap(),
        fs::read(whole.join("config.toml")).unwrap()
    );
    assert_eq!(measured(&killed), measured(&whole));
}

#[test]
fn trainings_at_a_time_end_with_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let out = |name: &str| dir.path().join(name);
    let shown = |name: &str, more: &[&str]| {
        let path = out(name);
        let output = run(&configs, &[&arguments(&path), more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(shown("one", &["--jobs", "1"]).contains("jobs  1 at a time"));
    assert!(shown("two", &["--jobs", "2"]).contains("jobs  2 at a time"));
    // A run that is killed in the middle of two trainings resumes both.
    let two: Kill = |s| s.steps("full") >= 5 && s.steps("w-o-mmm") >= 5;
    assert!(spawn_and_kill(&configs, &out("killed"), &["--jobs", "2"], &two), "it ended too early");
    shown("killed", &["--jobs", "2"]);
    for other in ["two", "killed"] {
        assert!(files(&out("one").join("rows")) == files(&out(other).join("rows")), "{other}");
        assert_eq!(measured(&out("one")), measured(&out(other)), "{other}");
    }
}

/// Everything that a report measured, except the time.
fn measured(run: &Path) -> serde_json::Value {
    let text = fs::read_to_string(run.join("report.json")).unwrap();
    let mut report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = report["rows"].as_array_mut().unwrap();
    assert_eq!(rows.len(), 7, "chance, three oracles, CCA, two rows");
    for row in rows {
        row["measured"]["seconds"].take();
    }
    serde_json::json!([report["rows"], report["comparisons"]])
}

/// A run is killed as soon as this is true.
type Kill = fn(&Stage) -> bool;

const KILLS: [Kill; 9] = [
    |s| s.elapsed > Duration::from_millis(40), // while the world is made
    |s| s.exists("run.json"),                  // in CCA
    |s| s.exists("rows/full/seed-0/log.jsonl"), // before the first checkpoint
    |s| s.writing("full") || s.steps("full") >= 10,
    |s| s.writing("full") || s.steps("full") >= 15,
    |s| s.steps("full") >= 36 && s.writing("full") || s.steps("full") >= 40,
    |s| s.exists("rows/w-o-mmm/seed-0/log.jsonl"),
    |s| s.steps("w-o-mmm") >= 5 && s.writing("w-o-mmm") || s.steps("w-o-mmm") >= 15,
    |s| s.steps("w-o-mmm") >= LAST, // everything except the report is there
];

/// Steps of a row of the small target: 4 epochs of 300 / 16.
const LAST: u64 = 4 * 18;

/// A run as it looks from outside.
struct Stage<'a> {
    run: &'a Path,
    elapsed: Duration,
}

impl Stage<'_> {
    fn exists(&self, name: &str) -> bool {
        self.run.join(name).exists()
    }

    fn checkpoints(&self, row: &str) -> Vec<String> {
        let folder = self.run.join(format!("rows/{row}/seed-0/checkpoints"));
        let Ok(entries) = fs::read_dir(folder) else { return vec![] };
        entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect()
    }

    /// Whether a checkpoint is half written.
    fn writing(&self, row: &str) -> bool {
        self.checkpoints(row).iter().any(|name| name.ends_with(".tmp"))
    }

    /// The step of the newest whole checkpoint; 0 without one.
    fn steps(&self, row: &str) -> u64 {
        let step = |name: &String| name.strip_prefix("step-")?.parse().ok();
        self.checkpoints(row).iter().filter_map(step).max().unwrap_or(0)
    }
}

fn arguments(out: &Path) -> Vec<&str> {
    let mut arguments = vec!["reproduce", "small", "--rows", "Full,w/o MMM", "--seeds", "1"];
    arguments.extend(["--out", out.to_str().unwrap()]);
    if out.join("run.json").is_file() {
        arguments.push("--resume");
    }
    arguments
}

/// Starts a run and kills it; returns whether it still ran when it was killed.
fn spawn_and_kill(configs: &Path, out: &Path, more: &[&str], kill: &Kill) -> bool {
    let arguments = [&arguments(out), more].concat();
    let mut child =
        itm(configs, &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "a resumed run failed");
            return false;
        }
        if kill(&Stage { run: out, elapsed: start.elapsed() }) {
            child.kill().unwrap();
            return !child.wait().unwrap().success();
        }
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// A signal ends the step and saves it: the resumed run has the log of a run that nobody stopped.
#[cfg(unix)]
#[test]
fn a_stopped_run_goes_on_with_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let path = configs.join("small.toml");
    // No checkpoint comes before the signal.
    let text_of = set(&fs::read_to_string(&path).unwrap(), "checkpoint_steps", "100000");
    fs::write(&path, set(&text_of, "epochs", "40")).unwrap();
    let one_row = ["reproduce", "small", "--rows", "InfoNCE", "--seeds", "1", "--out"];
    let log = |name: &str| dir.path().join(name).join("rows/infonce/seed-0/log.jsonl");
    assert!(run(&configs, &[&one_row[..], &["whole"]].concat()).status.success());
    for (name, signal, code) in [("int", "-INT", 130), ("term", "-TERM", 143)] {
        let mut child = itm(&configs, &[&one_row[..], &[name]].concat());
        let child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        while !fs::metadata(log(name)).is_ok_and(|log| log.len() > 0) {
            assert!(begun.elapsed() < Duration::from_secs(120), "no log");
            std::thread::sleep(Duration::from_millis(1));
        }
        let kill = format!("kill {signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.starts_with("stopped: InfoNCE, seed 0, step "), "{said}");
        assert!(said.ends_with("all is saved, and `--resume` goes on\n"), "{said}");
        assert!(run(&configs, &[&one_row[..], &[name, "--resume"]].concat()).status.success());
        assert!(fs::read(log(name)).unwrap() == fs::read(log("whole")).unwrap(), "{signal}");
    }
}

//! The binary as a user meets it: a run, a kill and a resume, bad input.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// `fne-scenes` made small: seconds instead of minutes.
fn small_configs(dir: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let folder = dir.join("configs");
    fs::create_dir(&folder).unwrap();
    let mut text = fs::read_to_string(root.join("fne-scenes.toml")).unwrap();
    for (key, value) in [
        ("train", "60"),
        ("val", "20"),
        ("test", "30"),
        ("pixels", "48"),
        ("protocol", "\"full\""),
        ("embed_dim", "16"),
        ("word_dim", "8"),
        ("batch", "16"),
        ("epochs", "4"),
        ("decay_epochs", "[2]"),
        ("bank_size", "64"),
        ("warmup_epochs", "1"),
        ("min_count", "10"),
        ("checkpoint_steps", "5"),
        ("log_steps", "3"),
        ("observe_steps", "4"),
    ] {
        text = set(&text, key, value);
    }
    fs::write(folder.join("small.toml"), text).unwrap();
    folder
}

/// Replaces the value of the first line `key = …`, which must be there.
fn set(text: &str, key: &str, value: &str) -> String {
    let mut found = false;
    let lines = text.lines().map(|line| {
        let is_key = line.split('=').next().is_some_and(|k| k.trim() == key);
        if is_key && !found {
            found = true;
            return format!("{key} = {value}");
        }
        line.to_owned()
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    assert!(found, "no line `{key} = …`");
    text
}

fn itm(configs: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_itm"));
    command.arg("--configs").arg(configs).args(args).current_dir(configs.parent().unwrap());
    command
}

fn run(configs: &Path, args: &[&str]) -> Output {
    itm(configs, args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every file below a folder by name, with its bytes.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = vec![];
    let mut folders = vec![folder.to_path_buf()];
    while let Some(dir) = folders.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_run_writes_its_reports_and_a_killed_one_ends_with_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let args = ["reproduce", "small", "--rows", "Full,w/o MMM", "--seeds", "1", "--out", "whole"];
    let output = run(&configs, &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in ["chance", "CCA (closed form)", "Full", "w/o MMM", "whole/report.html"] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    let whole = dir.path().join("whole");
    for file in ["report.json", "report.md", "report.html", "config.toml", "run.json"] {
        assert!(whole.join(file).is_file(), "{file}");
    }

    // Killed again and again, after some checkpoint is there; each resume goes on from it.
    let killed = dir.path().join("killed");
    let mut kills = 0;
    for round in 0u32..60 {
        let mut args =
            vec!["reproduce", "small", "--rows", "Full,w/o MMM", "--seeds", "1", "--out", "killed"];
        if killed.join("run.json").is_file() {
            args.push("--resume");
        }
        let mut child =
            itm(&configs, &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let patience = Duration::from_millis(300 + 150 * u64::from(round));
        let start = Instant::now();
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if start.elapsed() > patience {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
                break None;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        if let Some(status) = ended {
            assert!(status.success());
            break;
        }
    }
    assert!(kills > 0, "the run ended before its first kill");
    let (want, got) = (files(&whole.join("rows")), files(&killed.join("rows")));
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&got), names(&want));
    for ((name, want), (_, got)) in want.iter().zip(&got) {
        assert!(want == got, "{name} differs after {kills} kills");
    }
}

#[test]
fn bad_input_is_one_line_and_exit_code_2_and_nothing_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    fs::create_dir(dir.path().join("taken")).unwrap();
    fs::write(dir.path().join("taken/mine.txt"), "mine").unwrap();
    let broken = fs::read_to_string(configs.join("small.toml")).unwrap();
    fs::write(configs.join("unknown.toml"), set(&broken, "momentum", "0.9\ncolour = 1")).unwrap();
    fs::write(configs.join("missing.toml"), broken.replace("tau = ", "# tau = ")).unwrap();
    for (args, parts) in [
        (vec!["reproduce", "small", "--seeds", "0"], vec!["--seeds", "at least 1"]),
        (vec!["reproduce", "nothing"], vec!["target", "small", "`nothing`"]),
        (vec!["reproduce", "small", "--rows", "Ful"], vec!["--rows", "Full", "`Ful`"]),
        (vec!["reproduce", "small", "--table", "9"], vec!["--table", "got 9"]),
        (vec!["reproduce", "small", "--backend", "gpu"], vec!["backend", "wgpu", "`gpu`"]),
        (vec!["reproduce", "small", "--out", "taken"], vec!["taken", "new or empty"]),
        (vec!["reproduce", "small", "--out", "absent", "--resume"], vec!["absent", "run.json"]),
        (vec!["reproduce", "unknown"], vec!["unknown.toml", "colour"]),
        (vec!["reproduce", "missing"], vec!["missing.toml", "tau"]),
        (vec!["data", "check", "absent"], vec!["absent"]),
        (vec!["scenes"], vec!["--out", "--sheet"]),
    ] {
        let output = run(&configs, &args);
        let line = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{args:?}: {line}");
        for part in parts {
            assert!(line.contains(part), "{args:?}: no {part:?} in {line}");
        }
    }
    assert_eq!(files(&dir.path().join("taken")), [("mine.txt".into(), b"mine".into())]);
    assert!(!dir.path().join("runs").exists(), "a refused run left a folder");
}

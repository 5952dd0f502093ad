//! Checkpoints that are cut, lost or of other runs, full disks, too little memory, and numbers that are not finite: each gives
//! one line, and good files stay.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;
#[path = "common/refused.rs"]
mod refused;

use std::fs;
use std::path::{Path, PathBuf};

use common::{files, run, set, small_configs, text};
use itm_core::data::sha256_hex;
use refused::{change, copy, holds, refused};

/// The checkpoints of a run, the newest first.
fn checkpoints(run: &Path) -> Vec<PathBuf> {
    let folder = run.join("rows/full/seed-0/checkpoints");
    let step = |p: &PathBuf| -> u64 {
        p.file_name().unwrap().to_str().unwrap().trim_start_matches("step-").parse().unwrap()
    };
    let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    found.sort_by_key(|path| std::cmp::Reverse(step(path)));
    found
}

/// Changes the manifests of some checkpoints as a forger would: the hashes are right.
fn forge(checkpoints: &[PathBuf], from: &str, to: &str) {
    for folder in checkpoints {
        let path = folder.join("manifest.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "no {from} in {text}");
        let text = text.replace(from, to);
        let hash = format!("{}  manifest.json\n", sha256_hex(text.as_bytes()));
        fs::write(path, text).unwrap();
        fs::write(folder.join("manifest.sha256"), hash).unwrap();
    }
}

fn half(bytes: Vec<u8>) -> Vec<u8> {
    bytes[..bytes.len() / 2].to_vec()
}

const SMALL: [&str; 6] = ["reproduce", "small", "--rows", "Full", "--seeds", "1"];
const FILES: [&str; 4] =
    ["model.safetensors", "state.safetensors", "manifest.json", "manifest.sha256"];

/// A finished run, and the folder of its configuration.
fn finished(dir: &Path) -> (PathBuf, PathBuf) {
    let configs = small_configs(dir);
    let output = run(&configs, &[&SMALL[..], &["--out", "whole"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    (configs, dir.join("whole"))
}

#[test]
fn a_damaged_newest_checkpoint_falls_back_and_ends_with_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let (configs, whole) = finished(dir.path());
    let broken = dir.path().join("broken");
    let rows = |run: &Path| files(&run.join("rows"));
    type Break = fn(&Path);
    let cut: Break = |path| change(path, half);
    let turned: Break = |path| {
        change(path, |mut bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
            bytes
        });
    };
    let gone: Break = |path| fs::remove_file(path).unwrap();
    let cases = [
        (FILES[0], cut, "damaged"),
        (FILES[1], turned, "damaged"),
        (FILES[2], turned, "damaged"),
        (FILES[3], gone, "No such file"),
    ];
    for (file, spoil, why) in cases {
        copy(&whole, &broken);
        let [newest, older] = [0, 1].map(|k| checkpoints(&broken)[k].clone());
        spoil(&newest.join(file));
        let output = run(&configs, &[&SMALL[..], &["--out", "broken", "--resume"]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let shown = text(&output.stdout);
        let line = shown.lines().find(|line| line.contains("going on from")).unwrap();
        let below = |path: &Path| path.strip_prefix(dir.path()).unwrap().display().to_string();
        holds(line, &[&below(&newest), why, &below(&older)]);
        assert!(rows(&broken) == rows(&whole), "other bits after {file}");
    }
}

#[test]
fn checkpoints_that_are_all_damaged_or_of_other_runs() {
    let dir = tempfile::tempdir().unwrap();
    let (configs, whole) = finished(dir.path());
    let broken = dir.path().join("broken");
    let check = |spoil: &dyn Fn(&Path), parts: &[&str]| {
        copy(&whole, &broken);
        spoil(&broken);
        // A start for another configuration may be added to the existing files.
        let kept = || {
            let mut files = files(&broken);
            files.retain(|(name, _)| !name.starts_with("start-"));
            files
        };
        let before = kept();
        let line = refused(&configs, &[&SMALL[..], &["--out", "broken", "--resume"]].concat());
        holds(&line, parts);
        assert!(kept() == before, "something was overwritten: {line}");
    };
    for file in FILES {
        let each = |d: &Path, spoil: &dyn Fn(&Path)| {
            checkpoints(d).iter().for_each(|folder| spoil(&folder.join(file)));
        };
        let newest = checkpoints(&whole)[0].file_name().unwrap().to_owned();
        let place = format!("broken/rows/full/seed-0/checkpoints/{}/", newest.to_str().unwrap());
        let gone = format!("{place}{file}: No such file");
        check(&|d| each(d, &|path| fs::remove_file(path).unwrap()), &[&gone]);
        check(&|d| each(d, &|path| change(path, half)), &[&place, "SHA-256", "damaged"]);
    }
    check(&|d| fs::remove_file(d.join("run.json")).unwrap(), &["run.json: No such file"]);
    check(
        &|d| change(&d.join("rows/full/seed-0/log.jsonl"), half),
        &["log.jsonl", "at least", "got"],
    );
    let other_row = |d: &Path| forge(&checkpoints(d)[..1], "Full, seed", "w/o MMM, seed");
    check(&other_row, &["manifest.json", "expected a checkpoint of `Full, seed 0", "got `w/o MMM"]);
    let other_backend = |d: &Path| forge(&checkpoints(d)[..1], ", cpu\"", ", wgpu\"");
    check(&other_backend, &["manifest.json", ", cpu`", ", wgpu`"]);
    for key in ["config_sha256", "data_sha256", "backend", "target"] {
        let other = |d: &Path| {
            change(&d.join("run.json"), |b| {
                let mut json: serde_json::Value = serde_json::from_slice(&b).unwrap();
                json[key] = "other".into();
                json.to_string().into_bytes()
            });
        };
        check(&other, &["broken/run.json", key, "got `other`"]);
    }

    // Another model under correct manifests: the method itself refuses its shapes.
    let small = fs::read_to_string(configs.join("small.toml")).unwrap();
    fs::write(configs.join("small.toml"), set(&small, "embed_dim", "24")).unwrap();
    let line = refused(&configs, &[&SMALL[..], &["--out", "whole", "--resume"]].concat());
    holds(&line, &["whole/run.json", "config_sha256"]);
    let wide: String = line.split("expected `").nth(1).unwrap().chars().take(64).collect();
    let narrow: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(whole.join("run.json")).unwrap()).unwrap();
    let narrow = narrow["config_sha256"].as_str().unwrap().to_owned();
    let other_model = |d: &Path| {
        change(&d.join("run.json"), |b| {
            String::from_utf8(b).unwrap().replace(&narrow, &wide).into_bytes()
        });
        forge(&checkpoints(d), &narrow[..12], &wide[..12]);
    };
    check(&other_model, &["model.safetensors", "[704, 24]", "[704, 16]"]);
}

/// The learning rate is so large that numbers are not finite: the run stops at that step and keeps nothing of it.
#[test]
fn an_absurd_learning_rate() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let small = fs::read_to_string(configs.join("small.toml")).unwrap();
    // At 1e37 a product of finite weights overflows; at 1e39, more than f32 holds, the weights do.
    for (rate, tensor) in [("1e37", ""), ("1e39", ", first in online.image.linear.weight")] {
        fs::write(configs.join("absurd.toml"), set(&small, "learning_rate", rate)).unwrap();
        let args = ["reproduce", "absurd", "--rows", "w/o MMM", "--seeds", "1", "--out", rate];
        let line = refused(&configs, &args);
        holds(
            &line,
            &["w/o MMM, seed 0, epoch 0, step ", "expected a finite loss, got NaN", tensor],
        );
        assert_eq!(line.ends_with("NaN"), tensor.is_empty(), "{line}");
        // Only checkpoints from before the failed step may be left: a checkpoint is due every five steps.
        let number = |text: &str, before: &str| -> Option<u64> {
            let digits = text.split(before).nth(1)?.chars().take_while(char::is_ascii_digit);
            digits.collect::<String>().parse().ok()
        };
        let failed = number(&line, "step ").unwrap();
        let left = files(&dir.path().join(rate));
        let kept = left.iter().filter_map(|(name, _)| number(name, "step-"));
        assert!(kept.into_iter().all(|step| step <= failed), "{line}");
    }
}

/// A run's memory is printed before anything is written, and refused if it is too much.
#[test]
fn plans_and_too_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let output = run(&configs, &[&SMALL[..], &["--plan", "--memory-limit", "4000000000"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in ["limit 3.73 GiB", "Full: ", "a step on ", "weights and moments", "nothing"] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    assert!(!shown.contains(" captions 0 B"), "a step takes memory:\n{shown}");
    let with = |rest: &[&'static str]| [&SMALL[..], rest].concat();
    let line = refused(&configs, &with(&["--memory-limit", "1000000", "--out", "out"]));
    holds(&line, &["memory, row.Full", "1000000 bytes given", "a step on ", "train.micro_batch"]);
    let line = refused(&configs, &with(&["--plan", "--memory-limit", "0"]));
    holds(&line, &["memory, row.Full", "the 0 bytes given"]);
    holds(&refused(&configs, &with(&["--memory-limit", "much"])), &["--memory-limit", "'much'"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the configurations");
}

/// A limit on the size of files simulates a full disk: writes fail, but the signal does not end the program.
#[cfg(unix)]
#[test]
fn full_disks() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let limited = |blocks: u32, args: &[&str]| {
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\""), "sh"])
            .arg(env!("CARGO_BIN_EXE_itm"))
            .args(args)
            .current_dir(dir.path())
            .env_remove("RAYON_NUM_THREADS")
            .output()
            .unwrap();
        let line = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {line}");
        assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
        line
    };
    let run_args = |out: &'static str| [&SMALL[..], &["--out", out]].concat();
    assert!(run(&configs, &run_args("whole")).status.success());
    let rows = |run: &str| files(&dir.path().join(run).join("rows"));

    // The disk is full at the first file, at the closed form, or at the first checkpoint. A resumed run then ends as usual.
    holds(&limited(0, &run_args("none")), &["none/run.json", "File too large"]);
    let left = files(&dir.path().join("none"));
    assert!(left.iter().all(|(name, bytes)| name == "run.lock" && bytes.is_empty()));
    holds(&limited(40, &run_args("begun")), &["begun/start-", "File too large"]);
    let begun = files(&dir.path().join("begun"));
    assert!(begun.iter().all(|(name, _)| !name.ends_with(".safetensors")), "half a start");
    holds(
        &limited(400, &run_args("full")),
        &["full/rows/full/seed-0/checkpoints/", "File too large"],
    );
    assert!(rows("full").iter().all(|(name, _)| name.ends_with("log.jsonl")), "half a checkpoint");
    let output = run(&configs, &[&run_args("full")[..], &["--resume"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(rows("full") == rows("whole"));

    // The disk is full at the report: the old report stays as a whole.
    let page = |run: &str| fs::read(dir.path().join(run).join("report.html")).unwrap();
    let before = page("full");
    let line = limited(40, &[&run_args("full")[..], &["--resume"]].concat());
    holds(&line, &["full/report.", "File too large"]);
    assert!(page("full") == before && rows("full") == rows("whole"));

    holds(
        &limited(4, &["scenes", "--out", "world", "--test", "1", "--train", "1", "--val", "1"]),
        &["world.tmp/", "File too large"],
    );
    let is_there = |name: &str| dir.path().join(name).exists();
    assert!(!is_there("world") && !is_there("world.tmp"), "nothing is left");
    holds(&limited(4, &["scenes", "--sheet", "sheet.png", "--test", "1"]), &["sheet.png"]);
    assert!(!dir.path().join("sheet.png").exists() && !dir.path().join("sheet.png.tmp").exists());
}

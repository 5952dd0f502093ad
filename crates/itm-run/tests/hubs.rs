//! A target that trains nothing, as a user meets it: it trains its source once, then measures what is there.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{files, run, set, small_configs, text};

/// `hubness-scenes` over the small target.
fn hubs_configs(dir: &Path) -> PathBuf {
    let configs = small_configs(dir);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let mut hubs = fs::read_to_string(root.join("hubness-scenes.toml")).unwrap();
    for (key, value) in [("source", "\"small\""), ("rows", "[\"Full\"]"), ("resamples", "200")] {
        hubs = set(&hubs, key, value);
    }
    fs::write(configs.join("hubs.toml"), hubs).unwrap();
    configs
}

#[test]
fn the_source_is_trained_once_and_never_touched() {
    let dir = tempfile::tempdir().unwrap();
    let configs = hubs_configs(dir.path());
    let reproduce = |rest: &[&'static str]| {
        run(&configs, &[&["reproduce", "hubs", "--seeds", "1"], rest].concat())
    };
    let output = reproduce(&["--out", "first"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in
        ["No finished run of small with Full", "orderings of the paper's Table 3", "CSLS+RGM"]
    {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    let at = |name: &str| dir.path().join(name);
    for file in ["run.json", "config.toml", "summary.json", "report.md", "data/truth.json"] {
        assert!(at("first").join(file).is_file(), "{file}");
    }
    let seed = at("first/rows/full/seed-0");
    for file in ["report.html", "report.json", "test_images.npy", "val_texts.npy"] {
        assert!(seed.join(file).is_file(), "{file}");
    }
    let read = |path: &Path| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    // The embeddings are those the source reported on: nearest neighbours have its rSum.
    let source = read(&at("runs/small/report.json"));
    let row = source["rows"].as_array().unwrap().iter().find(|r| r["name"] == "Full").unwrap();
    let report = read(&seed.join("report.json"));
    let close = |a: &serde_json::Value, b: &serde_json::Value| {
        (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-6
    };
    assert!(close(&report["rows"][0]["rsum"], &row["measured"]["rsum"]), "{report}");
    assert_eq!(report["rows"][2]["chosen"], "validation", "λ of RGM");

    let before = files(&at("runs"));
    let again = reproduce(&["--out", "second"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(text(&again.stdout).contains("Models of runs/small"), "{}", text(&again.stdout));
    assert_eq!(files(&at("runs")), before, "the source's run was touched");
    let rows = |run: &str| read(&at(run).join("summary.json"))["rows"].clone();
    assert_eq!(rows("second"), rows("first"));

    let refused = |rest: &[&'static str], part: &str| {
        let output = reproduce(rest);
        let line = text(&output.stderr);
        assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        assert!(line.contains(part), "no {part:?} in {line}");
    };
    refused(&["--out", "first"], "new or empty");
    refused(&["--rows", "w/o MMM"], "--rows: expected some of Full");
    refused(&["--table", "4"], "--table: expected 3");
    refused(&["--figure", "4"], "--figure: expected none");
    refused(&["--rescore", "csls"], "--rescore: expected none");
    let checkpoint = before.iter().rfind(|(name, _)| name.ends_with("manifest.json")).unwrap();
    let manifest = at("runs").join(&checkpoint.0);
    fs::write(&manifest, &checkpoint.1[..20]).unwrap();
    refused(&["--out", "third"], "manifest.json");
    fs::write(&manifest, &checkpoint.1).unwrap();
    fs::remove_file(at("runs/small/report.json")).unwrap();
    refused(&["--out", "fourth"], "runs/small: expected a finished run");
}

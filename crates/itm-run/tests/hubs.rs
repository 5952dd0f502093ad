//! A target that trains nothing itself, as a user runs it: it trains its source once, and then measures the trained models.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{files, run, set, small_configs, small_hal_config, text};

/// `hubness-scenes-fne` over the small target.
fn hubs_configs(dir: &Path) -> PathBuf {
    let configs = small_configs(dir);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let mut hubs = fs::read_to_string(root.join("hubness-scenes-fne.toml")).unwrap();
    for (key, value) in [("source", "\"small\""), ("rows", "[\"Full\"]")] {
        hubs = set(&hubs, key, value);
    }
    fs::write(configs.join("hubs.toml"), hubs + "\n[hubness]\nresamples = 200\n").unwrap();
    fs::copy(root.join("hubness-scenes.toml"), configs.join("hubness-scenes.toml")).unwrap();
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
    for file in ["run.json", "config.toml", "summary.json", "report.md"] {
        assert!(at("first").join(file).is_file(), "{file}");
    }
    let seed = at("first/rows/full/seed-0");
    for file in ["report.html", "report.json"] {
        assert!(seed.join(file).is_file(), "{file}");
    }
    let read = |path: &Path| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    // The embeddings are the ones that the source reported on, so nearest neighbours have its rSum.
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

/// Figure 2 of HAL, then Table 3 over the same models: a run that has only the report of a figure is enough.
#[test]
fn hubs_of_hal_are_counted_drawn_and_mitigated() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    small_hal_config(&configs);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let mut hubs = fs::read_to_string(root.join("hubness-scenes.toml")).unwrap();
    for (key, value) in [("source", "\"small-hal\""), ("resamples", "200")] {
        hubs = set(&hubs, key, value);
    }
    fs::write(configs.join("hubs.toml"), &hubs).unwrap();
    let at = |name: &str| dir.path().join(name);
    let read = |path: PathBuf| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let names = |list: &serde_json::Value, key: &str| -> Vec<String> {
        let all = list.as_array().unwrap().iter();
        all.map(|of| of[key].as_str().unwrap().to_owned()).collect()
    };

    let output =
        run(&configs, &["reproduce", "small-hal", "--figure", "2", "--seeds", "2", "--verbose"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in ["Hubs: skewness", "HAL − SUM", "HAL − MAX", "skewness of N_1 t2i"] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    let report = read(at("runs/small-hal/figure-2/report.json"));
    let drawn = &report["distribution"];
    assert_eq!(
        (&drawn["number"], &drawn["direction"], &drawn["k"]),
        (&2.into(), &"t2i".into(), &1.into())
    );
    assert_eq!(names(&drawn["rows"], "row"), ["SUM", "MAX", "HAL"]);
    for row in drawn["rows"].as_array().unwrap() {
        let histogram = &row["histogram"];
        assert_eq!(histogram["items"], 2 * 30, "both seeds' images");
        let bars = histogram["bars"].as_array().unwrap().iter();
        let lists = bars.map(|b| b["count"].as_u64().unwrap() * b["items"].as_u64().unwrap());
        assert_eq!(lists.sum::<u64>(), 2 * 150, "every caption has one nearest image");
    }
    assert_eq!(names(&report["hubs"], "row"), ["CCA (closed form)", "SUM", "MAX", "HAL"]);
    assert!(report["hubs"][0]["hs_sum"]["sd"].is_null(), "one run of the baseline");
    assert!(report["hubs"][3]["hs_sum"]["sd"].is_f64());
    let hal = report["hubs"][3]["hs_sum"]["mean"].as_f64().unwrap();
    let sum = report["hubs"][1]["hs_sum"]["mean"].as_f64().unwrap();
    let difference = report["hub_differences"][0]["hs_sum"].as_f64().unwrap();
    assert!((difference - (hal - sum)).abs() < 1e-9);
    assert!(report["figure"].is_null() && report["rows"][2]["paper"].is_null());
    let page = fs::read_to_string(at("runs/small-hal/figure-2/report.html")).unwrap();
    assert!(page.contains("Figure 2: distribution of N_1, text → image"));

    let before = files(&at("runs"));
    let reproduce = |rest: &[&'static str]| {
        run(&configs, &[&["reproduce", "hubs", "--seeds", "1"], rest].concat())
    };
    let output = reproduce(&["--rows", "HAL,SUM", "--out", "first"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in ["Models of runs/small-hal\n", "Figure 3: N_10 of the images", "Figure 4: R@10"] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    assert_eq!(files(&at("runs")), before, "the source's run was touched");
    let summary = read(at("first/summary.json"));
    assert_eq!(names(&summary["rows"], "printed"), ["1.3", "2.1"]);
    let sum = &summary["rows"][1];
    assert_eq!(
        (&sum["printed_on"], &sum["methods"][0]["paper"]),
        (&"mscoco".into(), &411.5.into())
    );
    let rows = report["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "SUM").unwrap();
    let rsum = row["measured"]["per_seed"][0]["rsum"].as_f64().unwrap();
    assert!((sum["methods"][0]["rsum"].as_f64().unwrap() - rsum).abs() < 1e-6, "SUM, seed 0");
    let shares = sum["counts"][0]["shares"].as_array().unwrap();
    let all: f64 = shares.iter().map(|s| s[1].as_f64().unwrap()).sum();
    assert!((all - 1.0).abs() < 1e-9, "zeros are counted: {shares:?}");

    // A row that the run does not have is trained in a new run.
    let output = reproduce(&["--rows", "MAX+HAL", "--out", "second"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in ["expected a model of MAX+HAL, seed 0", "Models of runs/small-hal-2"] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    // Order embeddings do not score by inner products, so the scores themselves are corrected.
    let order = set(&set(&hubs, "rows", "[\"Order SUM\"]"), "printed", "{}");
    fs::write(configs.join("hubs.toml"), order).unwrap();
    let output = reproduce(&["--out", "third"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let source = read(at("runs/small-hal-3/report.json"));
    let rows = source["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "Order SUM").unwrap();
    let rsum = row["measured"]["rsum"].as_f64().unwrap();
    let nns = &read(at("third/summary.json"))["rows"][0]["methods"][0];
    assert!((nns["rsum"].as_f64().unwrap() - rsum).abs() < 1e-6, "nearest neighbours: {nns}");
}

//! A table of corrections, as a user runs it: its rows are trained once, and then measured under each correction.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{files, run, set, small_configs, small_hal_config, text};

#[test]
fn models_are_trained_once() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let reproduce = |name: &str, rest: &[&'static str]| {
        let what = ["reproduce", name, "--rows", "Full", "--seeds", "1"];
        run(&configs, &[&what[..], rest].concat())
    };
    let at = |name: &str| dir.path().join(name);
    let read = |path: &Path| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let output = reproduce("hubness-scenes-fne", &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in ["table hubs of", "orderings of the paper's Table 3", "CSLS+RGM"] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    let table = at("runs/small/table-hubs");
    for file in ["report.json", "report.html", "report.md", "summary.json", "summary.md"] {
        assert!(table.join(file).is_file(), "{file}");
    }
    let rescored = at("runs/small/rows/full/seed-0/rescored");
    assert!(rescored.join("report.html").is_file());
    // The corrected scores are the reported ones, so nearest neighbours have the row's rSum.
    let report = read(&table.join("report.json"));
    let row = report["rows"].as_array().unwrap().iter().find(|r| r["name"] == "Full").unwrap();
    let of_model = read(&rescored.join("report.json"));
    let close = |a: &serde_json::Value, b: &serde_json::Value| {
        (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-6
    };
    assert!(close(&of_model["rows"][0]["rsum"], &row["measured"]["rsum"]), "{of_model}");
    assert_eq!(of_model["rows"][2]["chosen"], "validation", "λ of RGM");
    let printed = &read(&table.join("summary.json"))["rows"][0];
    assert_eq!((&printed["printed"], &printed["printed_on"]), (&"1.3".into(), &"flickr30k".into()));

    // The table goes on with the newest run of the same configuration: nothing is trained again.
    let checkpoints = || -> Vec<_> {
        let all = files(&at("runs")).into_iter();
        all.filter(|(name, _)| name.contains("checkpoints")).collect()
    };
    let before = checkpoints();
    let rows = || read(&table.join("summary.json"))["rows"].clone();
    let first = rows();
    for name in ["hubness-scenes-fne", "small"] {
        let again = reproduce(name, &["--table", "hubs"]);
        assert!(again.status.success(), "{}", text(&again.stderr));
        assert!(text(&again.stdout).contains("out  runs/small\n"), "{}", text(&again.stdout));
        assert!(checkpoints() == before && rows() == first);
    }
    let other = set(&fs::read_to_string(configs.join("small.toml")).unwrap(), "max_words", "29");
    fs::write(configs.join("small.toml"), other).unwrap();
    let planned = reproduce("hubness-scenes-fne", &[]);
    assert!(planned.status.success() && at("runs/small-2").is_dir(), "another configuration");

    for (rest, part) in [
        (["--table", "4"], "--table, --figure: expected none: hubness-scenes-fne is table hubs of"),
        (["--figure", "4"], "--table, --figure: expected none"),
        (["--rescore", "cslz"], "--rescore: expected names of"),
    ] {
        let output = reproduce("hubness-scenes-fne", &rest);
        let line = text(&output.stderr);
        assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        assert!(line.contains(part), "no {part:?} in {line}");
    }
}

/// Figure 2 of HAL, then Table 3 over the same models: a run that has only the report of a figure is enough.
#[test]
fn hubs_of_hal_are_counted_drawn_and_mitigated() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    small_hal_config(&configs);
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

    let reproduce = |rest: &[&'static str]| {
        run(&configs, &[&["reproduce", "hubness-scenes", "--seeds", "1"], rest].concat())
    };
    let output = reproduce(&["--rows", "HAL,SUM"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in ["out  runs/small-hal\n", "Figure 3, N₁₀ of the images", "Figure 4, R@10"] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    let summary = read(at("runs/small-hal/table-3/summary.json"));
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

    // Order embeddings do not score by inner products, so the scores themselves are corrected.
    let file = configs.join("small-hal.toml");
    let order = fs::read_to_string(&file).unwrap();
    let rows = "rows = [\"HAL\", \"SUM\", \"MAX+HAL\"]";
    assert!(order.contains(rows));
    fs::write(&file, order.replace(rows, "rows = [\"Order SUM\", \"HAL\", \"SUM\", \"MAX+HAL\"]"))
        .unwrap();
    let output = reproduce(&["--rows", "Order SUM", "--out", "third"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let source = read(at("third/table-3/report.json"));
    let rows = source["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "Order SUM").unwrap();
    let rsum = row["measured"]["rsum"].as_f64().unwrap();
    let nns = &read(at("third/table-3/summary.json"))["rows"][0]["methods"][0];
    assert!((nns["rsum"].as_f64().unwrap() - rsum).abs() < 1e-6, "nearest neighbours: {nns}");
}

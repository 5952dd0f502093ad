//! Tables and figures of the paper, ensembles and re-scoring, as a user runs them: rows are trained only once.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::path::Path;

use common::{files, run, set, small_configs, text, with_values};
use serde_json::Value;

fn reproduce(configs: &Path, rest: &[&str]) -> String {
    let output = run(configs, &[&["reproduce", "small", "--out", "out"], rest].concat());
    assert!(output.status.success(), "{rest:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn report(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path.join("report.json")).unwrap()).unwrap()
}

fn names(report: &Value) -> Vec<&str> {
    report["rows"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect()
}

#[test]
fn tables_and_figures_share_their_rows() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let file = configs.join("small.toml");
    let small = fs::read_to_string(&file).unwrap();
    // A few steps learn little. With random weights, a larger learning rate and statistics that are never reset, there is a
    // posterior at every epoch's end.
    let mut learning = small;
    for (key, value) in [
        ("start", "\"random\""),
        ("train.learning_rate", "1e-2"),
        ("sampler.warmup_epochs", "0"),
        ("reset", "\"never\""),
        ("min_count", "0"),
    ] {
        learning = set(&learning, key, value);
    }
    fs::write(&file, learning).unwrap();
    let out = dir.path().join("out");

    // Table 1 has an ensemble of two seeds beside the paper's ensemble, and re-scored rows beside nearest neighbours.
    let shown = reproduce(
        &configs,
        &["--table", "1", "--seeds", "2", "--rescore", "csls,rgm", "--verbose"],
    );
    for part in ["table 1 of", "Full, 2 together", "Re-scored for hubs", "transductive"] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    let table = report(&out.join("table-1"));
    let oracles = ["oracle, random ties", "oracle, specific first", "oracle, Bayes"];
    let trained = ["CCA (closed form)", "Full, 2 together", "Full"];
    assert_eq!(names(&table), [&["chance"][..], &oracles, &trained].concat());
    let bayes = &table["rows"][3]["measured"]["rsum"];
    assert!(bayes.as_f64() > table["rows"][2]["measured"]["rsum"].as_f64(), "{bayes}");
    let together = &table["rows"][5]["measured"];
    assert_eq!(together["per_seed"].as_array().unwrap().len(), 1, "one group of two seeds");
    let singles: Vec<&Value> =
        table["rows"][6]["measured"]["per_seed"].as_array().unwrap().iter().collect();
    assert_eq!(singles.len(), 2);
    assert_eq!(table["claim"]["row"], "Full, 2 together");
    let paper = &table["paper_reference"]["rows"];
    assert_eq!(
        (&paper[0]["name"], &paper[0]["numbers"]["i2t"]["r1"]),
        (&Value::from("Full, 2 together"), &Value::from(85.4))
    );
    assert!(
        table["rows"].as_array().unwrap().iter().all(|row| row["paper"].is_null()),
        "of other data"
    );
    let rescored = table["rescored"].as_array().unwrap();
    let seen: Vec<_> = rescored
        .iter()
        .map(|r| (r["method"].as_str().unwrap(), r["transductive"].as_bool().unwrap()))
        .collect();
    assert_eq!(seen, [("nns", false), ("csls", true), ("rgm", true)]);
    let close = |a: &Value, b: &Value| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-6;
    assert!(
        close(&rescored[0]["rsum"], &table["rows"][6]["measured"]["rsum"]),
        "nearest neighbours are the row"
    );
    assert!(rescored[2]["lambda"].as_str().unwrap().contains("i2t"), "chosen on validation");

    // The audit has every epoch.
    let truth = &table["rows"][6]["truth"];
    assert_eq!(truth["epochs"].as_array().unwrap().len(), 4, "{truth}");
    for name in ["FNE official", "FNE paper"] {
        let share = truth["other_true_shares"][name].as_f64().unwrap();
        assert!((0.0..1.0).contains(&share), "{name}: {share}");
    }
    assert_eq!(truth["detection"].as_array().unwrap().len(), 2 * 5);

    // Figure 5 in the same run: Full is not trained again.
    let full = files(&out.join("rows/full/seed-0"));
    let shown = reproduce(&configs, &["--figure", "5", "--seeds", "1", "--resume"]);
    assert!(shown.contains("figure 5 of"), "{shown}");
    assert_eq!(files(&out.join("rows/full/seed-0")), full, "it was touched");
    let figure = report(&out.join("figure-5"));
    let points = figure["figure"]["points"].as_array().unwrap();
    let x: Vec<_> = points.iter().map(|p| p["x"].as_f64().unwrap()).collect();
    assert_eq!(x, [16.0, 32.0, 48.0, 64.0], "ascending");
    assert_eq!(figure["figure"]["x"], "sampler.bank_size");
    let page = fs::read_to_string(out.join("figure-5/report.html")).unwrap();
    assert!(page.contains("Figure 5: rSum over") && page.contains("negatives that are false"));
    assert!(!out.join("report.json").exists(), "the command does not name the target's own table");

    // The unannotated pairs that the row takes for matches, of both splits; then wrong options.
    let explain =
        |rest: &[&str]| run(&configs, &[&["explain", "fne", "--run", "out"], rest].concat());
    for (split, name) in [("test", "test_"), ("train", "train_")] {
        let output = explain(&["--split", split, "--images", "3", "--captions", "0,7"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let shown = text(&output.stdout);
        assert_eq!(shown.lines().filter(|l| l.starts_with("  0.")).count(), 15, "{shown}");
        let folder = out.join("rows/full/seed-0/explain").join(split);
        let page = fs::read_to_string(folder.join("false-negatives.html")).unwrap();
        assert_eq!(page.matches("<article").count(), 3);
        assert!(shown.contains(
            "No word-patches.html: it needs ViT and BERT with means as pools, which `Full` has not."
        ));
        assert!(!folder.join("word-patches.html").exists());
        let pictures = files(&folder.join("pictures"));
        assert!(pictures.len() > 1, "the query's and answers'");
        assert!(
            pictures
                .iter()
                .all(|(file, bytes)| file.starts_with(name) && bytes.starts_with(b"\x89PNG"))
        );
    }
    for (rest, part) in [
        (&["--row", "Fool"][..], "--row: expected one of Full"),
        (&["--row", "w/o MMM+FNE"], "w-o-mmm-fne/seed-0: expected a trained row, got nothing"),
        (&["--seed", "7"], "seed-7: expected a trained row"),
        (&["--images", "30"], "--images: expected numbers below 30, got 30"),
        (&["--queries", "0"], "--queries: expected at least 1, got 0"),
        (&["--backend", "gpu"], "backend"),
    ] {
        let output = explain(rest);
        let line = text(&output.stderr);
        assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        assert!(line.contains(part), "no {part:?} in {line}");
    }
    let output = run(&configs, &["explain", "fne", "--run", "nowhere"]);
    assert!(text(&output.stderr).contains("nowhere/run.json: No such file"));
}

/// Without its data, a target runs the rows that its substitute has for the table: here one row more.
#[test]
fn a_substitute_runs_its_own_rows() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let asked = with_values("fne-flickr", &[("substitute", "\"small\"")]);
    fs::write(configs.join("asked.toml"), asked).unwrap();
    let planned = |rest: &[&str]| {
        let output = run(&configs, &[&["reproduce", "asked", "--plan"], rest].concat());
        assert!(output.status.success(), "{rest:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let own = planned(&[]);
    assert!(own.contains("rows  Full | w/o FNE | w/o MMM | w/o MMM+FNE | InfoNCE\n"), "{own}");
    assert!(own.contains("Its table runs on Scenes instead, as in small."), "{own}");
    for (rest, rows) in [
        (["--table", "4"], "rows  Full | p = 1/1000 | p = 1/5000 | p = 1/50000 | p = 1/100000\n"),
        (["--rows", "InfoNCE"], "rows  InfoNCE\n"),
    ] {
        let plan = planned(&rest);
        assert!(plan.contains(rows), "{plan}");
    }
}

/// Rows that are not of the run neither refuse it nor speak in its notes.
#[test]
fn other_rows_of_a_target_do_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let planned = |row: &str| {
        let set = ["--set", "target.max_words=1", "--set", "row.InfoNCE.train.batch=60000"];
        run(&configs, &[&["reproduce", "small", "--plan", "--rows", row], &set[..]].concat())
    };
    for (row, cut) in [("Full", false), ("Full, scratch", true)] {
        let output = planned(row);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let shown = text(&output.stdout);
        assert_eq!(shown.contains("cut to their first 1 words"), cut, "{shown}");
    }
    let line = text(&planned("InfoNCE").stderr);
    assert!(line.contains("training split: expected at least one batch of 60000"), "{line}");
}

/// `Again` is `Full` without a further step, and `More` trains on. The table shows both before the rows that they begin with.
const BEGUN: &str = r#"
[row.Again]
extends = "Full"
from = "Full"
train.epochs = 0
[row.More]
extends = "Full"
from = "Again"
train.epochs = 1
[row.Wide]
extends = "Full"
from = "Full"
model.embed_dim = 12
[table.on]
rows = ["More", "Again", "Full", "w/o MMM"]
together = ["Full", "w/o MMM"]
claim = { row = "Full + w/o MMM", against = ["Full"] }
[table.same]
rows = ["Full", "Again"]
together = ["Full", "Again"]
[table.wide]
rows = ["Full", "Wide"]
"#;

#[test]
fn rows_begin_with_rows_and_answer_together() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let file = configs.join("small.toml");
    let small = fs::read_to_string(&file).unwrap();
    fs::write(&file, small + BEGUN).unwrap();
    let out = dir.path().join("out");

    let shown = reproduce(&configs, &["--table", "on", "--seeds", "2", "--jobs", "2"]);
    assert!(shown.contains("More (from Again) | Again (from Full) | Full |"), "{shown}");
    let table = report(&out.join("table-on"));
    assert_eq!(names(&table)[5..], ["More", "Again", "Full", "w/o MMM", "Full + w/o MMM"]);
    assert_eq!(table["claim"]["row"], "Full + w/o MMM");
    let measured = |table: &Value, row: usize| {
        let mut measured = table["rows"][row]["measured"].clone();
        measured["seconds"].take();
        measured
    };
    let [again, full, without, joined] = [6, 7, 8, 9].map(|row| measured(&table, row));
    for part in ["i2t", "t2i", "rsum", "ci95", "validation_rsum"] {
        assert_eq!(again[part], full[part], "nothing was learnt: {part}");
    }
    let seeds: Vec<_> = joined["per_seed"].as_array().unwrap().iter().map(|s| &s["seed"]).collect();
    assert_eq!(seeds, [0, 1]);
    assert_eq!(again["per_seed"][1]["best_epoch"], 0);
    assert!(joined["rsum"] != full["rsum"] && joined["rsum"] != without["rsum"]);
    assert!(out.join("rows/more/seed-1/checkpoints/step-18").is_dir(), "an epoch of its own");

    // Another table of the same rows: nothing is trained twice.
    let rows = files(&out.join("rows"));
    reproduce(&configs, &["--table", "same", "--seeds", "2", "--resume"]);
    assert!(files(&out.join("rows")) == rows, "something was trained");
    let table = report(&out.join("table-same"));
    assert_eq!(names(&table)[5..], ["Full", "Again", "Full + Again"]);
    let [full, joined] = [5, 7].map(|row| measured(&table, row));
    for part in ["i2t", "t2i", "rsum", "ci95"] {
        assert_eq!(joined[part], full[part], "the mean of equal scores: {part}");
    }
    // If the command leaves rows out, no row averages them. A row may begin with a row that was trained before.
    reproduce(&configs, &["--table", "on", "--rows", "Again", "--seeds", "2", "--resume"]);
    assert_eq!(names(&report(&out.join("table-on")))[5..], ["Again"]);

    for (rest, parts) in [
        (
            &["--table", "on", "--rows", "More"][..],
            &[
                "small.toml, row.More, from: expected a row that is trained with it: More, got `Again`",
            ][..],
        ),
        (
            &["--out", "out", "--resume", "--table", "on", "--rows", "Again", "--seeds", "3"],
            &["full/seed-2: expected a trained row, got nothing"],
        ),
        (
            &["--out", "out", "--resume", "--table", "wide", "--seeds", "1"],
            &["small.toml, row.Wide, from: expected a row of the same shape, ", "got `Full`: "],
        ),
    ] {
        let output = run(&configs, &[&["reproduce", "small"], rest].concat());
        let line = text(&output.stderr);
        assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        parts.iter().for_each(|part| assert!(line.contains(part), "no {part:?} in {line}"));
    }
}

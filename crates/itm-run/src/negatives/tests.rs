use std::fs;

use clap::Parser;
use itm_report::command::quoted;

use super::*;
use crate::cli::{Cli, Command};
use crate::tests;

/// A finished run of the first row of a small target.
fn run(target: &str, folder: &Path) -> String {
    let run = tests::small_run_in(target, &[], folder);
    run.train(run.config.rows().next().unwrap(), 0, |_| {}).unwrap();
    folder.display().to_string()
}

/// Runs the command; returns the folder.
fn asked(line: &[&str]) -> Result<PathBuf> {
    let line = [&["itm", "negatives"], line].concat();
    match Cli::try_parse_from(line).unwrap().command {
        Command::Negatives(args) => negatives(&args, &tests::configs()),
        _ => unreachable!("another command"),
    }
}

#[test]
fn a_trained_model_fills_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let run = run("tags-dc-scenes", &dir.path().join("run"));
    let captions = dir.path().join("captions.tsv");
    let text = "test_000000.png\tA red dog runs near a small tree.\ntest_000000.png\tA dog.\nnowhere.png\tA cat.\n";
    fs::write(&captions, text).unwrap();
    let captions = captions.display().to_string();
    let ask = |out: &str, more: &[&str]| {
        let out = dir.path().join(out).display().to_string();
        let line = ["--captions", &captions, "--run", &run, "--out", &out, "--per-caption", "3"];
        let folder = asked(&[&line[..], more].concat()).unwrap();
        ["negatives.jsonl", "negatives.json", "negatives.html"]
            .map(|name| fs::read_to_string(folder.join(name)).unwrap())
    };
    let [lines, json, page] = ask("a", &[]);
    assert_eq!(ask("b", &[]), [lines.clone(), json.clone(), page.clone()], "the seed decides");
    assert_ne!(ask("c", &["--seed", "1"])[0].replace("\"seed\":1", "\"seed\":0"), lines);
    let of_row = ["--maskings", "4", "--refills", "4", "--temperature", "1.5"];
    assert_eq!(ask("d", &of_row)[0], lines, "the row's settings are the default");
    assert_ne!(ask("e", &["--temperature", "0.2"])[0], lines);
    assert_ne!(ask("f", &["--maskings", "1", "--refills", "3"])[0], lines);

    let records = tags_dc_records(&dir.path().join("a"));
    assert_eq!(records.len(), 6, "three of each caption");
    for record in &records {
        assert_eq!(record["kind"], "refill");
        let score = record["score"].as_f64().unwrap();
        assert!(score > 0.0 && score < 1.0, "{record}");
        assert_ne!(record["text"], "A red dog runs near a small tree.");
        assert!(
            !record["text"].as_str().unwrap().contains("  "),
            "{record}: a word without letters"
        );
        let changed = record["positions"].as_array().unwrap().len();
        assert_eq!(record["new"].as_array().unwrap().len(), changed);
    }
    // Words of another caption of the file make no sentence false.
    let new: Vec<_> =
        records[0]["new"].as_array().unwrap().iter().flat_map(|w| w.as_str()).collect();
    fs::write(&captions, format!("{text}test_000000.png\t{}\n", new.join(" "))).unwrap();
    ask("g", &[]);
    let others = tags_dc_records(&dir.path().join("g"));
    assert!(others.iter().all(|other| other["text"] != records[0]["text"]), "{}", records[0]);

    let scores: Vec<f64> = records[..3].iter().map(|r| r["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "the best first: {scores:?}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let configs = quoted(tests::configs().display());
    let again = format!("cargo xtask negatives --configs {configs} --captions ");
    assert!(json["command"].as_str().unwrap().starts_with(&again), "{json}");
    assert_eq!(json["model"]["images_not_in_the_run"], 1);
    assert_eq!((&json["model"]["maskings"], &json["read"]), (&4.into(), &2.into()));
    assert!(page.contains("words of a model") && page.contains("4 × 4"), "{page}");
}

fn tags_dc_records(folder: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(folder.join("negatives.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The built-in world judges what the model wrote.
#[test]
fn the_world_judges_a_model() {
    let dir = tempfile::tempdir().unwrap();
    let run = run("tags-dc-scenes", &dir.path().join("run"));
    let out = dir.path().join("out").display().to_string();
    let line =
        ["--captions", "scenes", "--run", &run, "--out", &out, "--images", "5", "--maskings", "2"];
    let folder = asked(&line).unwrap();
    let text = fs::read_to_string(folder.join("negatives.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let (written, truth) = (&json["kinds"]["refill"]["written"], &json["kinds"]["refill"]["truth"]);
    let judged = ["falsehoods", "truths", "unparsed"].map(|name| truth[name].as_u64().unwrap());
    assert_eq!(Some(judged.iter().sum::<u64>()), written.as_u64());
    assert_eq!(json["model"]["images_not_in_the_run"], 1, "the run has three of four pictures");
}

#[test]
fn bad_runs_are_one_line_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("captions.tsv").display().to_string();
    fs::write(&file, "nowhere.png\tA cat.\n").unwrap();
    let out = dir.path().join("out");
    let refused = |run: &str, more: &[&str]| {
        let line = ["--captions", &file, "--run", run, "--out", &out.display().to_string()];
        let error = asked(&[&line[..], more].concat()).unwrap_err().to_string();
        assert!(!out.exists() && error.lines().count() == 1, "{error}");
        error
    };
    assert!(refused("/nowhere", &[]).starts_with("/nowhere/"));
    let own = run("tags-dc-scenes", &dir.path().join("run"));
    assert!(refused(&own, &[]).contains("expected an image of the run's data, got `nowhere.png`"));
    assert!(refused(&own, &["--row", "none"]).starts_with("--row: expected one of "));
    assert!(refused(&own, &["--row-seed", "7"]).contains("expected a trained row"));
    fs::write(&file, "test_000000.png\tA cat.\n").unwrap();
    assert!(refused(&own, &["--temperature", "0"]).contains("refill.temperature"));
    for clash in [["--kinds", "noun"], ["--train", "x"]] {
        let line = [&["itm", "negatives", "--captions", &file, "--run", &own], &clash[..]].concat();
        assert!(Cli::try_parse_from(line).is_err(), "{clash:?}");
    }
    assert!(Cli::try_parse_from(["itm", "negatives", "--captions", &file, "--row", "x"]).is_err());
}

/// The model of another method cannot fill in words.
#[test]
fn the_run_of_another_method_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let run = run("naaf-scenes", &dir.path().join("run"));
    let out = dir.path().join("out").display().to_string();
    let line = asked(&["--captions", "scenes", "--run", &run, "--out", &out]).unwrap_err();
    let line = line.to_string();
    assert!(line.starts_with("--run: expected a run whose model fills in words, got "), "{line}");
    assert!(!Path::new(&out).exists());
}

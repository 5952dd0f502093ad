//! ViT and BERT from scratch on Scenes: where words are in pictures, in the report and by `itm explain`.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{itm, run, set, text};
use serde_json::Value;

/// `fne-scenes-vit` made small: seconds instead of minutes.
fn prepare(dir: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let folder = dir.join("configs");
    fs::create_dir(&folder).unwrap();
    let mut small = fs::read_to_string(root.join("fne-scenes-vit.toml")).unwrap();
    for (key, value) in [
        ("train", "30"),
        ("val", "10"),
        ("test", "20"),
        ("pixels", "48"),
        ("protocol", "\"full\""),
        ("embed_dim", "16"),
        ("image_size", "32"),
        ("batch", "16"),
        ("micro_batch", "16"),
        ("epochs", "2"),
        ("decay_epochs", "[]"),
        ("warmup_epochs", "1"),
        ("bank_size", "32"),
    ] {
        small = set(&small, key, value);
    }
    for (from, to) in [
        ("image = [96, 96], patch = 12", "image = [32, 32], patch = 8"),
        (
            "width = 64, layers = 3, heads = 4, mlp = 128",
            "width = 16, layers = 1, heads = 2, mlp = 24",
        ),
        (
            "width = 64, layers = 2, heads = 4, mlp = 128",
            "width = 16, layers = 1, heads = 2, mlp = 24",
        ),
    ] {
        assert!(small.contains(from), "no `{from}`");
        small = small.replace(from, to);
    }
    fs::write(folder.join("small.toml"), small).unwrap();
    folder
}

fn reproduce(configs: &Path, rest: &[&str]) {
    let arguments = ["reproduce", "small", "--seeds", "1", "--out", "out"];
    let output = run(configs, &[&arguments[..], rest].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn words_are_shown_on_pictures_by_both_rows_and_measured() {
    let dir = tempfile::tempdir().unwrap();
    let configs = prepare(dir.path());
    let out = dir.path().join("out");
    let explain = |rest: &[&str]| {
        let asked = ["explain", "fne", "--run", "out", "--queries", "2"];
        itm(&configs, &[&asked[..], rest].concat()).output().unwrap()
    };
    let page = out.join("rows/full/seed-0/explain/test/word-patches.html");

    // One row alone; nobody asks for another.
    reproduce(&configs, &["--rows", "Full"]);
    let output = explain(&[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let alone = fs::read_to_string(&page).unwrap();
    assert!(alone.contains("<th scope=\"row\">Full, seed 0</th>") && !alone.contains("w/o FNE"));

    reproduce(&configs, &["--resume"]);
    let output = explain(&[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("word-patches.html"), "{}", text(&output.stdout));
    let both = fs::read_to_string(&page).unwrap();
    for row in ["Full, seed 0", "w/o FNE, seed 0"] {
        let lines = both.matches(&format!("<th scope=\"row\">{row}</th>")).count();
        assert_eq!(lines, 4, "{row}: two captions, an image and a false negative each");
    }
    assert_eq!(both.matches("data:image/png;base64,").count(), 4);
    assert_eq!(both.matches("false negative: true, not annotated").count(), 2);
    assert!(both.contains("class=\"box\"") && both.contains("class=\"peak\""));

    // The words that are asked for, and ones that are not there.
    let output = explain(&["--captions", "0,3", "--words", "a,THE"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let chosen = fs::read_to_string(&page).unwrap();
    let heads: Vec<_> = chosen.split("<th scope=\"col\">").skip(1).collect();
    assert!(
        !heads.is_empty() && heads.iter().all(|h| h.starts_with("a<") || h.starts_with("the<"))
    );
    let output = explain(&["--words", "zebra"]);
    let line = text(&output.stderr);
    assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
    assert!(line.contains("--words: expected words of the captions that are shown, got `zebra`"));

    // The same in the report, with a number to it.
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("<h2>Words and patches</h2>"));
    for row in ["Full, seed 0", "w/o FNE, seed 0"] {
        assert!(report.contains(&format!("<th scope=\"row\">{row}</th>")), "{row}");
    }
    let numbers: Value =
        serde_json::from_str(&fs::read_to_string(out.join("report.json")).unwrap()).unwrap();
    let rows = numbers["rows"].as_array().unwrap();
    let pointing = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        row["truth"]["pointing"].clone()
    };
    assert!(pointing("CCA (closed form)").is_null());
    for row in ["Full", "w/o FNE"] {
        for pairs in ["annotated", "false_negatives"] {
            let pointed = &pointing(row)[pairs];
            let value = |key: &str| pointed[key].as_f64().unwrap();
            let [lo, hi] = [0, 1].map(|k| pointed["ci95"][k].as_f64().unwrap());
            assert!(lo <= value("share") && value("share") <= hi, "{row}, {pairs}: {pointed}");
            assert!((0.02..0.5).contains(&value("chance")), "{row}, {pairs}: {pointed}");
            assert!(value("words") > 50.0, "{row}, {pairs}: {pointed}");
        }
    }
    let chance = |row: &str| pointing(row)["annotated"]["chance"].as_f64().unwrap();
    assert_eq!(chance("Full"), chance("w/o FNE"), "the same words in the same pictures");
    assert!(
        fs::read_to_string(out.join("report.md"))
            .unwrap()
            .contains("Words that point at what they name")
    );
}

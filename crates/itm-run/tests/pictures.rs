//! ViT and BERT on pictures: from a folder of files and published weights to a report, with a kill between; and from scratch on
//! Scenes to maps of words.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use itm_kernels::Precision;

use common::{files, itm, run, set, small_configs, text, with_values};
use serde_json::Value;

/// Two layers of width 16 each, saved by `transformers`; the files are among the tests of `fne`.
const WEIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fne/tests/golden/training");

const MODEL: &str = r#"
[model]
embed_dim = 16
start = "random"

[model.image]
kind = "vit"
weights = "some-org/vit"
image_size = 32
pixels = "clip"
augment = "saturating"
pool = "all"
projection = "none"
gradient_checkpointing = false

[model.text]
kind = "bert"
weights = "some-org/bert"
max_length = 10
train_truncate = "on"
pool = "masked"
projection = "none"
gradient_checkpointing = true
"#;

/// Writes a target on pictures, a folder of pictures and the weights; returns the folder of configurations.
fn prepare(dir: &Path) -> PathBuf {
    let configs = small_configs(dir);
    let small = fs::read_to_string(configs.join("small.toml")).unwrap();
    let mut pictures = small.clone();
    for (key, value) in [
        ("dataset", "\"flickr8k\""),
        ("features", "\"pictures\""),
        ("epochs", "6"),
        ("log_steps", "1"),
        ("micro_batch", "5"),
        ("dropout", "0.0"),
    ] {
        pictures = set(&pictures, key, value);
    }
    let (first, last) = (pictures.find("[model]").unwrap(), pictures.find("[train]").unwrap());
    pictures.replace_range(first..last, &format!("{}\n", MODEL.trim_start()));
    let rows = pictures.find("[row.").unwrap();
    pictures.replace_range(rows.., "[row.Full]\n");
    fs::write(configs.join("pictures.toml"), pictures).unwrap();

    let sizes = ["--train", "8", "--val", "4", "--test", "4", "--pixels", "32"];
    let output = run(&configs, &[&["scenes", "--out", "scenes"][..], &sizes].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    fs::remove_dir_all(dir.join("scenes/precomp")).unwrap(); // no features: only pictures and captions

    for name in ["vit", "bert"] {
        let (from, to) = (Path::new(WEIGHTS).join(name), dir.join("weights").join(name));
        fs::create_dir_all(&to).unwrap();
        for (file, bytes) in files(&from) {
            fs::write(to.join(file), bytes).unwrap();
        }
    }
    let words =
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "red", "blue", "ball", "tree", "two", "on"];
    fs::write(dir.join("weights/bert/vocab.txt"), words.join("\n") + "\n").unwrap();
    configs
}

fn arguments(out: &Path) -> Vec<&str> {
    let mut arguments = vec!["reproduce", "pictures", "--data", "scenes", "--rows", "Full"];
    arguments.extend(["--seeds", "1", "--out", out.to_str().unwrap()]);
    if out.join("run.json").is_file() {
        arguments.push("--resume");
    }
    arguments
}

#[test]
fn a_folder_of_pictures_is_planned_trained_resumed_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let configs = prepare(dir.path());
    let whole = dir.path().join("whole");
    let plan = run(&configs, &[&arguments(&whole)[..], &["--plan"]].concat());
    assert!(plan.status.success(), "{}", text(&plan.stderr));
    let note = "no features: the closed-form CCA row is left out";
    for part in ["a step on 5 captions", note] {
        assert!(text(&plan.stdout).contains(part), "no {part:?} in\n{}", text(&plan.stdout));
    }
    assert!(!whole.exists());

    let output = run(&configs, &arguments(&whole));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in ["chance", "Full", "report.html"] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    let report = fs::read_to_string(whole.join("report.md")).unwrap();
    assert!(report.contains(note) && !report.contains("CCA (closed form) |"), "{report}");

    // A run that is killed in the second epoch resumes with the pictures of the next step.
    let killed = dir.path().join("killed");
    let mut child = itm(&configs, &arguments(&killed));
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let log = killed.join("rows/full/seed-0/log.jsonl");
    let second = || fs::read_to_string(&log).is_ok_and(|text| text.contains("\"epoch\":1"));
    while !second() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::sleep(std::time::Duration::from_micros(300));
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it ended before it was killed");
    let output = run(&configs, &arguments(&killed));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (want, got) = (files(&whole.join("rows")), files(&killed.join("rows")));
    assert_eq!(want.len(), got.len());
    for ((name, want), (other, got)) in want.iter().zip(&got) {
        assert!(name == other && want == got, "{name} differs");
    }
}

/// `--precision bf16` is in the plan, the report, its row, the run's configuration and the command that repeats the run.
#[test]
fn a_run_in_bf16_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let configs = prepare(dir.path());
    let bf16 = |out: &Path| -> Vec<String> {
        let arguments = arguments(out).into_iter().chain(["--precision", "bf16"]);
        arguments.map(str::to_owned).collect()
    };
    let run = |arguments: &[String]| {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let output = run(&configs, &arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let [plain, rounded] = ["plain", "rounded"].map(|name| dir.path().join(name));
    let plan = run(&[&bf16(&rounded)[..], &["--plan".into()]].concat());
    let line = match Precision::Bf16.here() {
        Precision::Bf16 => "Full: products in blocks have bf16 operands and f32 sums.",
        Precision::F32 => "this processor has no AVX512-BF16.",
    };
    assert!(plan.contains(line), "{plan}");
    run(&bf16(&rounded));
    run(&arguments(&plain).iter().map(|&a| a.to_owned()).collect::<Vec<_>>());
    let read = |out: &Path, file: &str| fs::read_to_string(out.join(file)).unwrap();
    let report: Value = serde_json::from_str(&read(&rounded, "report.json")).unwrap();
    let row = report["rows"].as_array().unwrap().iter().find(|row| row["name"] == "Full").unwrap();
    let has = Precision::Bf16.here() == Precision::Bf16;
    assert_eq!(row["precision"] == "bf16", has, "{row}");
    assert!(
        report["command"].as_str().unwrap().ends_with("--data DIR --precision bf16"),
        "{report}"
    );
    assert!(
        read(&rounded, "report.md").contains(line) && read(&rounded, "report.html").contains(line)
    );
    assert!(read(&rounded, "config.toml").contains("precision = \"bf16\""));
    assert!(
        !read(&plain, "config.toml").contains("precision")
            && !read(&plain, "report.md").contains("bf16")
    );
    // The manifests differ on every processor, because the configurations differ.
    let weights = |out: &Path| {
        let mut files = files(&out.join("rows"));
        files.retain(|(name, _)| name.ends_with(".safetensors"));
        assert!(!files.is_empty(), "no weights in {}", out.display());
        files
    };
    assert_eq!(weights(&plain) != weights(&rounded), has);

    // A resume without the option is refused, because it is another run.
    let refused = common::run(&configs, &arguments(&rounded));
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("config"), "{}", text(&refused.stderr));
}

/// A missing file gives one line, before anything is written.
#[test]
fn missing_pictures_weights_and_pieces_are_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let configs = prepare(dir.path());
    let out = dir.path().join("out");
    let line = || {
        let mut command = itm(&configs, &arguments(&out));
        let cache = dir.path().join("no-cache");
        let output =
            command.env("HF_HUB_OFFLINE", "1").env("HF_HUB_CACHE", cache).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        assert!(!out.exists());
        let line = text(&output.stderr);
        assert_eq!(line.lines().count(), 1, "{line}");
        line
    };
    let away = |name: &str| fs::rename(dir.path().join(name), dir.path().join("away")).unwrap();
    let back = |name: &str| fs::rename(dir.path().join("away"), dir.path().join(name)).unwrap();

    away("weights/bert/vocab.txt");
    assert!(line().contains("vocab.txt"), "{}", line());
    back("weights/bert/vocab.txt");
    away("weights/vit");
    assert!(line().contains("some-org/vit@main"), "{}", line());
    back("weights/vit");
    let pictures = files(&dir.path().join("scenes/images"));
    away(&format!("scenes/images/{}", pictures[0].0));
    assert!(line().contains("1 fewer, the first"), "{}", line());
    back(&format!("scenes/images/{}", pictures[0].0));

    let config = fs::read_to_string(configs.join("pictures.toml")).unwrap();
    fs::write(configs.join("pictures.toml"), set(&config, "features", "\"given\"")).unwrap();
    fs::create_dir(dir.path().join("scenes/precomp")).unwrap();
    assert!(line().contains("scenes"), "{}", line()); // there are no features
    fs::write(configs.join("pictures.toml"), set(&config, "embed_dim", "24")).unwrap();
    assert!(line().contains("model.embed_dim: expected 16"), "{}", line());
}

/// A small `fne-scenes-vit`, which takes seconds instead of minutes.
fn vit_from_scratch(dir: &Path) -> PathBuf {
    let folder = dir.join("configs");
    fs::create_dir(&folder).unwrap();
    let values = [
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
        ("milestones", "[]"),
        ("warmup_epochs", "1"),
        ("bank_size", "32"),
    ];
    let mut small = with_values("fne-scenes-vit", &values);
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
    let configs = vit_from_scratch(dir.path());
    let out = dir.path().join("out");
    let explain = |rest: &[&str]| {
        let asked = ["explain", "fne", "--run", "out", "--queries", "2"];
        itm(&configs, &[&asked[..], rest].concat()).output().unwrap()
    };
    let page = out.join("rows/full/seed-0/explain/test/word-patches.html");

    // Only one row.
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

    // Named words, and a word that no caption has.
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

    // The report has the same maps, and numbers for them.
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
            assert!(value("words") > 20.0, "{row}, {pairs}: {pointed}");
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

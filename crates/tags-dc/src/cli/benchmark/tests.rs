use std::fs;

use clap::Parser;
use itm_core::data::npy_header;
use itm_core::significance::Share;
use tempfile::TempDir;

use super::*;
use crate::cli::{Cli, run};

const FILE: &str = r#"{
    "0": {"filename": "b.jpg", "caption": "a dog runs", "negative_caption": "a cat runs"},
    "1": {"filename": "a.jpg", "caption": "a cat sleeps", "negative_caption": "a dog sleeps"}
}"#;

/// A folder with the benchmark.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("replace_obj.json"), FILE).unwrap();
    dir
}

/// Runs the command in the folder, where `@` stands for the folder; gives what it prints.
fn benchmark(dir: &TempDir, line: &str) -> Result<String, String> {
    let line = format!("tags-dc benchmark --format sugarcrepe --file @replace_obj.json {line}");
    let folder = format!("{}/", dir.path().display());
    let words = line.split_whitespace().map(|word| word.replace('@', &folder));
    let cli = Cli::try_parse_from(words).map_err(|e| e.to_string())?;
    let mut out = vec![];
    run(&cli, &mut out).map_err(|e| e.to_string().replace(&folder, ""))?;
    Ok(String::from_utf8(out).unwrap())
}

/// A `.npy` of f32.
fn npy(dir: &TempDir, name: &str, shape: &str, values: &[f32]) {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    fs::write(dir.path().join(name), bytes).unwrap();
}

/// The value of a line that begins so.
fn line<'t>(text: &'t str, start: &str) -> Vec<&'t str> {
    let line = text.lines().find(|line| line.trim_start().starts_with(start));
    line.unwrap_or_else(|| panic!("{start} in {text}")).split_whitespace().collect()
}

#[test]
fn what_must_be_scored_is_written() {
    let dir = folder();
    let said = benchmark(&dir, "--list @out").unwrap();
    assert!(said.contains("2 questions, 2 pictures, 4 captions"), "{said}");
    let text = |name: &str| fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    assert_eq!(text("captions.txt"), "a dog runs\na cat runs\na cat sleeps\na dog sleeps\n");
    assert_eq!(text("pictures.tsv"), "b.jpg\tb.jpg\na.jpg\ta.jpg\n");
    let pairs = "b.jpg\ta dog runs\nb.jpg\ta cat runs\na.jpg\ta cat sleeps\na.jpg\ta dog sleeps\n";
    assert_eq!(text("pairs.tsv"), pairs);
    assert!(benchmark(&dir, "--list @out").unwrap_err().contains("a new or empty folder"));
    benchmark(&dir, "--list @none --scores @missing.npy").unwrap_err();
    npy(&dir, "s.npy", "(4,)", &[0.9, 0.1, 0.2, 0.3]);
    fs::create_dir(dir.path().join("folder")).unwrap();
    benchmark(&dir, "--list @none --scores @s.npy --json @folder").unwrap_err();
    assert!(!dir.path().join("none").exists(), "an error before anything is written");
}

#[test]
fn a_table_replaces_no_input() {
    let dir = folder();
    npy(&dir, "s.npy", "(4,)", &[0.9, 0.1, 0.2, 0.3]);
    for input in ["replace_obj.json", "s.npy"] {
        let before = fs::read(dir.path().join(input)).unwrap();
        let line = benchmark(&dir, &format!("--scores @s.npy --json @{input}")).unwrap_err();
        assert_eq!(line, format!("{input}: expected an output that is no input, got an input"));
        assert_eq!(fs::read(dir.path().join(input)).unwrap(), before);
    }
    // Of a folder all files are read.
    fs::write(dir.path().join("add_obj.json"), FILE).unwrap();
    benchmark(&dir, "--file @ --scores @s.npy --json @add_obj.json").unwrap_err();
    assert_eq!(fs::read_to_string(dir.path().join("add_obj.json")).unwrap(), FILE);
}

#[test]
fn scores_of_pairs_are_judged() {
    let dir = folder();
    npy(&dir, "s.npy", "(4,)", &[0.9, 0.1, 0.2, 0.3]);
    fs::write(
        dir.path().join("t.tsv"),
        "1\ta dog runs\n2\ta dog sleeps\n3\ta dog runs\n4\ta cat eats\n",
    )
    .unwrap();
    let said = benchmark(&dir, "--scores @s.npy --train @t.tsv --json @j.json").unwrap();
    let words = line(&said, "object");
    assert_eq!(words[1], "50.0", "{said}");
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.path().join("j.json")).unwrap()).unwrap();
    assert_eq!(json[1]["category"], "object");
    assert_eq!((&json[1]["right"]["value"], &json[1]["right"]["of"]), (&0.5.into(), &2.into()));
    // `dog` is more frequent than `cat`: right for the first question, wrong for the second.
    assert_eq!(json[1]["blind"]["right"]["value"], 0.5);
    npy(&dir, "s.npy", "(2, 2)", &[0.9, 0.1, 0.2, 0.3]);
    let error = benchmark(&dir, "--scores @s.npy").unwrap_err();
    assert_eq!(
        error,
        "s.npy: expected an array of 4 scores, as pairs.tsv has lines, got the shape [2, 2]"
    );
}

/// By hand: f32 rounds 0.2 + 1e-12 to 0.2, and cannot hold 1e300.
#[test]
fn scores_keep_the_digits_of_f64() {
    let dir = folder();
    let judged = |scores: [f64; 4]| {
        let values = scores.iter().flat_map(|score| score.to_le_bytes());
        let bytes: Vec<u8> = npy_header("<f8", &[4]).into_iter().chain(values).collect();
        fs::write(dir.path().join("s.npy"), bytes).unwrap();
        benchmark(&dir, "--scores @s.npy")
    };
    assert_eq!(line(&judged([1e300, 0.5, 0.2 + 1e-12, 0.2]).unwrap(), "all")[1], "100.0");
    let error = judged([0.5, 0.5, f64::NAN, 0.2]).unwrap_err();
    assert_eq!(error, "s.npy row 2: expected a finite number, got NaN");
}

/// By hand: attributes (1 + 0.2) / 2 without the pair of 24 questions; all relations, (1 + 0) / 2; a single subset has no mean.
#[test]
fn means_leave_out_what_aro_leaves_out() {
    let judged = |category, right, of| {
        let right = Share::over(&[vec![[right, of]]]).unwrap();
        let (subset, measure) = (Some("a".to_owned()), Measure::Accuracy);
        let model = Line { category: Some(category), subset, measure, right, chance: 0.5, ties: 0 };
        Judged { model, blind: None }
    };
    let attributes = [(25, 25), (5, 25), (24, 24)].map(|(k, n)| judged(Category::Attribute, k, n));
    let relations = [(2, 2), (0, 30)].map(|(k, n)| judged(Category::Relation, k, n));
    let lines: Vec<Judged> = attributes.into_iter().chain(relations).collect();
    let want = [
        "Mean over the 2 subsets of attribute with 25 or more questions: 60.0 %",
        "Mean over the 2 subsets of relation: 50.0 %",
    ];
    assert_eq!(means(&lines), want);
    assert!(means(&[judged(Category::Order, 1, 2)]).is_empty());
}

/// Rows are found by name; without names they are in the order of the lists.
#[test]
fn rows_are_judged_by_cosine() {
    let dir = folder();
    npy(&dir, "image.npy", "(2, 2)", &[1.0, 0.0, 0.0, 5.0]); // b.jpg shows dogs, a.jpg cats
    npy(&dir, "text.npy", "(4, 2)", &[2.0, 1.0, 3.0, 9.0, 0.0, 1.0, 1.0, 0.5]);
    let rows = "--images @image.npy --texts @text.npy";
    assert_eq!(line(&benchmark(&dir, rows).unwrap(), "all")[1], "100.0");
    // By a dot product, the row [3, 9] of `a cat runs` would beat `a dog runs` beside b.jpg.
    fs::write(dir.path().join("image_ids.txt"), "coco/a.png\ncoco/b.png\n").unwrap();
    assert_eq!(line(&benchmark(&dir, rows).unwrap(), "all")[1], "0.0");
    fs::write(
        dir.path().join("captions.txt"),
        "a cat runs\na dog runs\na dog sleeps\na cat  sleeps\n",
    )
    .unwrap();
    assert_eq!(line(&benchmark(&dir, rows).unwrap(), "all")[1], "100.0");
    fs::write(dir.path().join("captions.txt"), "a cat runs\na dog runs\na dog sleeps\nx\n")
        .unwrap();
    let error = benchmark(&dir, rows).unwrap_err();
    assert_eq!(error, "captions.txt: expected the caption \"a cat sleeps\", got no such line");
    fs::write(dir.path().join("image_ids.txt"), "x/b.png\ny/b.png\n").unwrap();
    assert!(
        benchmark(&dir, rows)
            .unwrap_err()
            .starts_with("image_ids.txt: expected the picture \"b.jpg\"")
    );
    fs::write(dir.path().join("image_ids.txt"), "b.jpg\nb.jpg\n").unwrap();
    let error = benchmark(&dir, rows).unwrap_err();
    let want = "image_ids.txt line 2: expected an id that no line before has, got \"b.jpg\", which line 1 has";
    assert_eq!(error, want);
    fs::remove_file(dir.path().join("image_ids.txt")).unwrap();
    npy(&dir, "image.npy", "(3, 2)", &[1.0; 6]);
    let error = benchmark(&dir, rows).unwrap_err();
    assert_eq!(error, "image.npy: expected 2 rows, or image_ids.txt beside it, got 3");
    npy(&dir, "image.npy", "(2, 3)", &[1.0; 6]);
    fs::remove_file(dir.path().join("captions.txt")).unwrap();
    let error = benchmark(&dir, rows).unwrap_err();
    assert_eq!(error, "text.npy: expected rows of width 3, as image.npy has, got 2");
    npy(&dir, "image.npy", "(2, 2)", &[0.0; 4]);
    let error = benchmark(&dir, rows).unwrap_err();
    assert_eq!(error, "image.npy row 0: expected a row of length above 0, got 0");
}

/// Both pictures of one name took the one row of that name.
#[test]
fn two_pictures_of_one_name_are_not_one_row() {
    let dir = folder();
    let others = FILE.replace("b.jpg", "val/1.jpg").replace("a.jpg", "train/1.jpg");
    fs::write(dir.path().join("replace_obj.json"), others).unwrap();
    npy(&dir, "image.npy", "(1, 2)", &[1.0, 0.0]);
    npy(&dir, "text.npy", "(4, 2)", &[1.0; 8]);
    fs::write(dir.path().join("image_ids.txt"), "1.jpg\n").unwrap();
    let error = benchmark(&dir, "--images @image.npy --texts @text.npy").unwrap_err();
    let want = "image_ids.txt: expected the picture \"val/1.jpg\", got no such line";
    assert_eq!(error, want);
}

#[test]
fn a_command_without_scores_or_list_is_refused() {
    let dir = folder();
    assert!(benchmark(&dir, "").unwrap_err().contains("--list"));
    assert!(benchmark(&dir, "--images @image.npy").unwrap_err().contains("--texts"));
    for unused in ["--list @out --json @j.json", "--list @out --train @t.tsv"] {
        assert!(benchmark(&dir, unused).unwrap_err().contains("--scores <FILE>|--images <FILE>"));
    }
}

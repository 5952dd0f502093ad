use std::fs;

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

fn args(line: &[&str]) -> Negatives {
    let line = [&["tags-dc", "negatives"], line].concat();
    match Cli::try_parse_from(line).unwrap().command {
        Command::Negatives(args) => args,
        _ => unreachable!("another command"),
    }
}

const TEXT: &str = "1\tTwo dogs run on the grass.\n1\tA brown dog jumps over a log.\n2\tA cat <script>sits on a mat.\n\
                    2\tA man rides a horse.\n3\tA woman holds an umbrella.\n3\tRunning\n";

/// Runs the command; returns the folder.
fn negatives(line: &[&str]) -> Result<PathBuf> {
    let (args, mut out) = (args(line), vec![]);
    let folder = args.out.clone().unwrap();
    args.by_rules(&folder, "tags-dc negatives", &mut out).map(|()| folder)
}

/// Runs the command on a file with these captions; returns the folder.
fn run(dir: &Path, out: &str, text: &str, more: &[&str]) -> Result<PathBuf> {
    let (file, out) = (dir.join("captions.tsv"), dir.join(out));
    fs::write(&file, text).unwrap();
    let (file, out) = (file.display().to_string(), out.display().to_string());
    negatives(&[&["--captions", &file, "--out", &out][..], more].concat())
}

fn lines(folder: &Path) -> String {
    fs::read_to_string(folder.join("negatives.jsonl")).unwrap()
}

#[test]
fn the_seed_decides() {
    let dir = tempfile::tempdir().unwrap();
    let many = ["--per-caption", "2"];
    let first = lines(&run(dir.path(), "a", TEXT, &many).unwrap());
    assert_eq!(lines(&run(dir.path(), "b", TEXT, &many).unwrap()), first);
    let other = run(dir.path(), "c", TEXT, &["--per-caption", "2", "--seed", "1"]).unwrap();
    assert_ne!(lines(&other).replace("\"seed\":1", "\"seed\":0"), first);
    assert!(first.lines().count() > 5, "{first}");
}

/// The page's captions give the page's line.
#[test]
fn the_page_shows_what_is_written() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tags-dc.md");
    let page = fs::read_to_string(page).unwrap();
    let block = |start: &str| page.split_once(start).unwrap().1.split_once("```").unwrap().0;
    let dir = tempfile::tempdir().unwrap();
    let folder = run(dir.path(), "a", block("```text captions.tsv\n"), &[]).unwrap();
    assert!(lines(&folder).ends_with(block("```json\n")), "{}", lines(&folder));
}

/// What `tags-dc benchmark` reads: every negative is a question about its image.
#[test]
fn a_benchmark_is_written() {
    use crate::benchmark::{Ask, Benchmark, Category, Format};

    let dir = tempfile::tempdir().unwrap();
    let folder = run(dir.path(), "a", TEXT, &["--per-caption", "3"]).unwrap();
    let records = record::read(&folder.join("negatives.jsonl")).unwrap();
    let mut files: Vec<PathBuf> = fs::read_dir(folder.join("sugarcrepe"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let names: Vec<_> =
        files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["order.json", "replace_att.json", "replace_rel.json"]); // too few captions to exchange nouns
    let read = Benchmark::read(Format::Sugarcrepe, &files, 0).unwrap();
    assert_eq!(read.questions.len(), records.len());
    let whole = Benchmark::read(Format::Sugarcrepe, &[folder.join("sugarcrepe")], 0).unwrap();
    assert_eq!(whole.questions.len(), records.len());
    let error = Benchmark::read(Format::Sugarcrepe, &[dir.path().into()], 0).unwrap_err();
    assert!(error.to_string().ends_with("expected a .json file, got none"), "{error}");
    let numeral = read.questions.iter().find(|q| q.category == Category::Attribute).unwrap();
    let Ask::Caption { picture, captions } = &numeral.ask else { panic!("one picture") };
    assert_eq!(read.pictures[*picture].name, "1");
    let texts: Vec<&str> = captions.iter().map(|&k| &read.captions[k][..]).collect();
    assert_eq!(texts, ["Two dogs run on the grass.", "One dog run on the grass."]);
}

/// A shell reads back what was written.
#[test]
fn the_command_can_be_repeated() {
    let args = args(&["--captions", "my captions.tsv", "--train", "it's.tsv"]);
    let line = args.command("tags-dc negatives");
    let want = r"tags-dc negatives --captions 'my captions.tsv' --train 'it'\''s.tsv' --kinds ";
    assert!(line.starts_with(want), "{line}");
}

#[test]
fn only_the_kinds_that_were_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let folder = run(dir.path(), "a", TEXT, &["--kinds", "numeral", "--per-caption", "5"]).unwrap();
    let records = record::read(&folder.join("negatives.jsonl")).unwrap();
    assert!(!records.is_empty() && records.iter().all(|r| r.kind == Kind::Numeral));
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("negatives.json")).unwrap()).unwrap();
    assert_eq!(json["kinds"]["numeral"]["written"], records.len());
    assert_eq!((&json["read"], &json["images"]), (&6.into(), &3.into()));
    assert!(json["kinds"].get("noun").is_none());
}

/// Captions are untrusted text: the page shows them and runs nothing.
#[test]
fn a_page_shows_captions_as_text() {
    let dir = tempfile::tempdir().unwrap();
    let folder = run(dir.path(), "a", TEXT, &["--shown", "100", "--per-caption", "3"]).unwrap();
    let page = fs::read_to_string(folder.join("negatives.html")).unwrap();
    assert!(page.contains("&lt;script&gt;sits") && !page.contains("<script"), "{page}");
    assert!(page.contains("Two dogs run on the grass.") && page.contains("another number"));
}

/// The world says which sentences are false; a share has its interval.
#[test]
fn negatives_of_scenes_are_judged() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("a").display().to_string();
    let folder =
        negatives(&["--captions", "scenes", "--kinds", "noun,order", "--out", &out]).unwrap();
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("negatives.json")).unwrap()).unwrap();
    let noun = &json["kinds"]["noun"]["truth"];
    let (of, ci) = (noun["truly_false"].as_f64().unwrap(), noun["ci95"].as_array().unwrap());
    assert!(of > 0.98 && ci[0].as_f64().unwrap() <= of && of <= ci[1].as_f64().unwrap(), "{noun}");
    let order = &json["kinds"]["order"]["truth"];
    assert!(order["unparsed"].as_u64() > order["falsehoods"].as_u64(), "{order}");
}

#[test]
fn bad_input_is_one_line_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let line = |text: &str, more: &[&str]| {
        let error = run(dir.path(), "a", text, more).unwrap_err().to_string();
        assert!(!dir.path().join("a").exists() && error.lines().count() == 1, "{error}");
        error
    };
    assert!(line("", &[]).contains("captions.tsv: expected lines of an image's id"));
    assert!(line("no tab", &[]).contains("captions.tsv line 1"));
    assert!(line(TEXT, &["--train", "/nowhere.tsv"]).contains("/nowhere.tsv"));
    let out = dir.path().join("a").display().to_string();
    let error = negatives(&["--captions", "scenes", "--train", "x.tsv", "--out", &out]);
    let want =
        "--train: expected none with `--captions scenes`, which has training captions, got a file";
    assert_eq!(error.unwrap_err().to_string(), want);
    fs::create_dir(dir.path().join("full")).unwrap();
    fs::write(dir.path().join("full/x"), "").unwrap();
    let error = run(dir.path(), "full", TEXT, &[]).unwrap_err().to_string();
    assert!(error.contains("a new or empty folder"), "{error}");
    let unknown =
        Cli::try_parse_from(["tags-dc", "negatives", "--captions", "x", "--kinds", "verb"]);
    assert!(unknown.is_err());
}

//! The binary `tags-dc`, as its user runs it.
#![allow(clippy::unwrap_used, reason = "helpers of tests, which may")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn tags_dc(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tags-dc"));
    command.args(args).env_remove("RAYON_NUM_THREADS"); // more threads than cores print a line
    command.output().unwrap()
}

fn phrases(args: &[&str]) -> Output {
    tags_dc(&[&["phrases"], args].concat())
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn a_sentence_is_shown() {
    let output = phrases(&["A boy's bike leans against a red wall."]);
    assert!(output.status.success());
    let want = "\
object     boy [1]
object     bike [3]
object     wall [8]: red [7]
relation   boy | have (no words to mask) | bike
relation   bike | leans against [4, 5] | wall
";
    assert_eq!(text(&output.stdout), want);
}

#[test]
fn a_file_becomes_json_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("c.txt"), "A dog runs.\nx7\tThe kitchen has a stove and two ovens.\n").unwrap();
    let output = phrases(&["--file", &path("c.txt")]);
    let want = "\
{\"id\":\"0\",\"node\":[[1]],\"attribute\":[[2]],\"relation\":[]}
{\"id\":\"x7\",\"node\":[[1],[4],[7]],\"attribute\":[[6]],\"relation\":[[2]]}
";
    assert_eq!(text(&output.stdout), want);
    let kept = phrases(&["--file", &path("c.txt"), "--duplicates", "--out", &path("p.jsonl")]);
    assert!(kept.status.success() && kept.stdout.is_empty());
    let kept = fs::read_to_string(path("p.jsonl")).unwrap();
    assert!(kept.contains("\"relation\":[[2],[2]]"), "{kept}");
    let captions = [("x7", 9), ("0", 4)];
    let read = tags_dc::phrases::sidecar::read(path("p.jsonl"), &captions).unwrap();
    assert_eq!(read[0].node.len(), 3);
}

#[test]
fn bad_input_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("empty.txt"), "A dog.\n\n").unwrap();
    fs::write(path("bytes.txt"), b"A dog.\n\xff\xfe\n").unwrap();
    fs::write(path("twice.txt"), "x\tA dog.\n1\tA cat.\nx\tA dog.\n").unwrap();
    let line = |file: &Path| {
        let output = phrases(&["--file", &file.display().to_string()]);
        assert_eq!(output.status.code(), Some(2));
        let line = text(&output.stderr).trim_end().to_owned();
        assert!(!line.contains('\n'), "{line}");
        line.replace(&folder.path().display().to_string(), "")
    };
    let want = "error: /empty.txt line 2: expected a caption, got an empty line";
    assert_eq!(line(&path("empty.txt")), want);
    let want = "error: /bytes.txt line 2: expected UTF-8, got the byte 0xff";
    assert_eq!(line(&path("bytes.txt")), want);
    let want = "error: /twice.txt line 3: expected an id that no line before has, got \"x\", which line 1 has";
    assert_eq!(line(&path("twice.txt")), want);
    assert!(line(&path("none.txt")).starts_with("error: /none.txt: "));
    assert_eq!(phrases(&[]).status.code(), Some(2));
    assert_eq!(phrases(&[" "]).status.code(), Some(2));
}

/// 100,000 threads would take minutes to start.
#[test]
fn threads_are_capped_at_the_cores() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tags-dc"));
    let command = command.args(["phrases", "A dog runs."]).env("RAYON_NUM_THREADS", "100000");
    let output = command.output().unwrap();
    assert!(output.status.success());
    assert!(text(&output.stderr).starts_with("note: RAYON_NUM_THREADS = 100000: "));
}

/// A file is replaced by complete output, or stays as it was.
#[test]
fn nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("bad.txt"), "A dog.\n\n").unwrap();
    fs::write(path("good.txt"), "\u{feff}A dog.\n").unwrap();
    fs::write(path("p.jsonl"), "before").unwrap();
    assert_eq!(
        phrases(&["--file", &path("bad.txt"), "--out", &path("p.jsonl")]).status.code(),
        Some(2)
    );
    assert_eq!(fs::read_to_string(path("p.jsonl")).unwrap(), "before");
    let own = phrases(&["--file", &path("good.txt"), "--out", &path("good.txt")]);
    let want =
        format!("error: {}: expected an output that is no input, got an input\n", path("good.txt"));
    assert_eq!((own.status.code(), text(&own.stderr)), (Some(2), &want[..]));
    assert_eq!(fs::read_to_string(path("good.txt")).unwrap(), "\u{feff}A dog.\n");
    assert!(phrases(&["--file", &path("good.txt"), "--out", &path("p.jsonl")]).status.success());
    let want = "{\"id\":\"0\",\"node\":[[1]],\"attribute\":[],\"relation\":[]}\n";
    assert_eq!(fs::read_to_string(path("p.jsonl")).unwrap(), want);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn json_holds_the_graph() {
    let output = phrases(&["--json", "A dog runs."]);
    let want = r#"{"attributes":[{"name":"runs","object":0,"words":[2]}],"objects":[{"name":"dog","words":[1]}],"relations":[],"words":["A","dog","runs","."]}"#;
    assert_eq!(text(&output.stdout).trim_end(), want);
}

#[test]
fn bad_captions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.txt");
    let name = file.display().to_string();
    let long = "a ".repeat(5_001);
    for (captions, want) in [
        ("", ": expected a caption on each line, got an empty file"),
        ("\tA dog.", " line 1: expected an id before the tab, got none"),
        (&long, " line 1: expected a caption of at most 10000 bytes, got 10002 bytes"),
    ] {
        fs::write(&file, captions).unwrap();
        let output = phrases(&["--file", &name]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""), "{captions:.20}");
        assert_eq!(text(&output.stderr), format!("error: {name}{want}\n"));
    }
    fs::write(&file, "A dog.").unwrap();
    let folder = folder.path().display().to_string();
    for args in [&["--file", &folder][..], &["--file", &name, "--out", &folder]] {
        assert!(text(&phrases(args).stderr).ends_with(" got a folder\n"), "{args:?}");
    }
}

#[test]
fn a_wrong_command_line_is_one_line() {
    for args in [
        &[][..],
        &["a", "b"],
        &["--out", "x", "a"],
        &["a", "--duplicates"],
        &["--out", "x"],
        &["a", "--file", "x"],
        &["--wrong"],
    ] {
        let output = phrases(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let line = text(&output.stderr);
        assert!(line.starts_with("error: ") && line.lines().count() == 1, "{line}");
    }
    let empty = phrases(&[" "]);
    let want = "error: the sentence: expected a caption, got an empty line\n";
    assert_eq!((empty.status.code(), text(&empty.stderr)), (Some(2), want));
    assert!(phrases(&["--help"]).status.success());
}

/// A path that is not a plain file is written directly, because a rename would replace the device.
#[cfg(unix)]
#[test]
fn a_device_stays_a_device() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("c.txt"), "A dog.\n").unwrap();
    symlink("/dev/null", path("null")).unwrap();
    assert!(phrases(&["--file", &path("c.txt"), "--out", &path("null")]).status.success());
    assert!(fs::symlink_metadata(path("null")).unwrap().is_symlink());
    assert!(phrases(&["--file", &path("c.txt"), "--out", &path("p.jsonl")]).status.success());
    let rights = |name: &str| fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(rights("p.jsonl"), rights("c.txt"), "the rights of any new file");
}

/// The options are tested beside the command.
#[test]
fn negatives_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("c.tsv"), "1\tTwo dogs run on the grass.\n").unwrap();
    let line = ["negatives", "--captions", &path("c.tsv"), "--out", &path("out")];
    let output = tags_dc(&line);
    assert!(output.status.success() && text(&output.stdout).contains("1 negatives: "));
    let page = fs::read_to_string(path("out/negatives.html")).unwrap();
    assert!(page.contains("tags-dc negatives --captions "), "{page}");
    let again = tags_dc(&line);
    let want = format!("error: {}: expected a new or empty folder", path("out"));
    assert!(text(&again.stderr).starts_with(&want), "{}", text(&again.stderr));
    assert_eq!(again.status.code(), Some(2));
}

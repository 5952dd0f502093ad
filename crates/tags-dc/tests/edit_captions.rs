//! The example runs from a file of captions to a file of negatives.

#[path = "../examples/edit_captions.rs"]
#[allow(dead_code, reason = "`main` is not called")]
mod example;

use std::collections::HashSet;

use tags_dc::record;

#[test]
fn captions_go_in_and_negatives_come_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let things = ["dog", "cat", "horse", "boat", "cup"];
    let lines: Vec<String> = (0..200)
        .map(|n| format!("i{}\tA {} stands on a table.", n / 5, things[n / 5 % 5]))
        .collect();
    std::fs::write(path("captions.tsv"), lines.join("\n")).unwrap();
    let run = |out: &str, seed: &str| {
        let args = [path("captions.tsv"), path("captions.tsv"), path(out), seed.into(), "2".into()];
        example::run(&args).unwrap()
    };
    let counts = run("a.jsonl", "7");
    assert_eq!((counts.captions, counts.without), (200, 0));
    run("b.jsonl", "7");
    run("c.jsonl", "8");
    let read = |name: &str| record::read(path(name).as_ref()).unwrap();
    assert_eq!(read("a.jsonl"), read("b.jsonl"));
    assert_ne!(read("a.jsonl"), read("c.jsonl"));
    let distinct: HashSet<_> =
        read("a.jsonl").into_iter().map(|record| (record.caption, record.text)).collect();
    assert_eq!(distinct.len(), 400, "two different negatives of each caption");
}

#[test]
fn wrong_arguments_are_told_in_one_line() {
    let error = |args: &[&str]| {
        let args: Vec<String> = args.iter().map(|&arg| arg.into()).collect();
        example::run(&args).unwrap_err().to_string()
    };
    assert!(error(&["a"]).contains("CAPTIONS TRAINING OUT"));
    assert!(error(&["/nowhere/a", "b", "c"]).contains("/nowhere/a"));
    assert!(error(&["a", "b", "c", "many"]).contains("expected a number, got many"));
}

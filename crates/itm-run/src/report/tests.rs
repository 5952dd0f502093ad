//! The three files of a report.

pub(crate) mod sample;

use std::fs;

use super::*;

#[test]
fn writes_three_files_and_replaces_them_whole() {
    let dir = tempfile::tempdir().unwrap();
    let sections = sample::sections();
    write(dir.path(), &sample::report(24.3, -5.5, &[1, 2, 3]), &sections).unwrap();
    let second = sample::report(24.3, 5.5, &[1]);
    write(dir.path(), &second, &sections).unwrap();
    let mut names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["report.html", "report.json", "report.md"]);
    let read = |name| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&read("report.json")).unwrap(), second);
    assert!(read("report.md").starts_with(&verdict::of(&second).line()));
    let first = first_sections(&second);
    let all: Vec<_> = first.iter().chain(&sections).collect();
    assert_eq!(read("report.html"), html::render(&second, &all));
}

#[test]
fn a_bad_number_overwrites_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut report = sample::report(24.3, -5.5, &[1, 2, 3]);
    write(dir.path(), &report, &[]).unwrap();
    let before = fs::read(dir.path().join("report.md")).unwrap();
    report.target = "other".into();
    report.seconds = f64::NAN;
    assert!(write(dir.path(), &report, &[]).is_err());
    assert_eq!(fs::read(dir.path().join("report.md")).unwrap(), before);
}

#[test]
fn a_missing_folder_is_named() {
    let dir = tempfile::tempdir().unwrap().path().join("gone");
    let error = write(&dir, &sample::report(1.0, 1.0, &[1]), &[]).unwrap_err().to_string();
    assert!(error.contains("gone") && error.contains("report.json"), "{error}");
}

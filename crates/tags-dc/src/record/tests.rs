use super::*;

fn negative(score: Option<f32>) -> Record {
    Record {
        caption: "a.jpg#3".into(),
        seed: u64::MAX,
        kind: Kind::Numeral,
        positions: vec![0, 2],
        old: vec!["Two".into(), "dogs".into()],
        new: vec!["One".into(), "dog".into()],
        text: "One \"big\" dog\trün".into(),
        score,
    }
}

fn read_text(text: &[u8]) -> Result<Vec<Record>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n.jsonl");
    std::fs::write(&path, text).unwrap();
    read(&path)
}

fn line(record: &Record) -> String {
    serde_json::to_string(record).unwrap()
}

#[test]
fn what_was_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n.jsonl");
    let records = [negative(None), negative(Some(0.1)), negative(Some(-3.0e-30))];
    save(&path, &records).unwrap();
    assert_eq!(read(&path).unwrap(), records);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn a_line_is_the_documented_object() {
    let wanted = concat!(
        r#"{"caption":"a.jpg#3","seed":18446744073709551615,"kind":"numeral","positions":[0,2],"#,
        r#""old":["Two","dogs"],"new":["One","dog"],"text":"One \"big\" dog\trün"}"#
    );
    assert_eq!(line(&negative(None)), wanted);
}

#[test]
fn empty_lines_and_a_missing_last_line_end_are_read() {
    let one = line(&negative(None));
    assert_eq!(read_text(format!("\n{one}\r\n  \n{one}").as_bytes()).unwrap().len(), 2);
    assert!(read_text(b"").unwrap().is_empty());
}

#[test]
fn errors_name_file_and_line() {
    let one = line(&negative(None));
    for (bad, said) in [
        (one.replace("numeral", "colour"), "colour"),
        (one.replace("\"seed\"", "\"sead\""), "sead"),
        (one.replace("[0,2]", "[2,0]"), "positions that ascend"),
        (one.replace("[0,2]", "[0,0]"), "positions that ascend"),
        (one.replace("[0,2]", "[0]"), "1 old words"),
        (one.replace("[0,2]", "[-1]"), "-1"),
        (one[..40].to_owned(), "EOF"),
        ("[".repeat(10_000), "invalid type"),
        ("\u{feff}x".to_owned(), "line 1 column 1"),
        (format!("\"{}\"", "x".repeat(1 << 20)), "a longer line"),
    ] {
        let error = read_text(format!("{one}\n{bad}\n").as_bytes()).unwrap_err().to_string();
        assert!(error.contains("n.jsonl line 2: expected"), "{error}");
        assert!(error.contains(said) && !error.contains('\n'), "{error} lacks {said}");
    }
    assert!(read_text(b"\xff\xfe\n").unwrap_err().to_string().contains("line 1"));
    assert!(
        read(Path::new("/nowhere/n.jsonl")).unwrap_err().to_string().contains("/nowhere/n.jsonl")
    );
}

/// The writer refuses what the reader refuses.
#[test]
fn what_would_not_be_read_is_not_written() {
    let bad = [
        (Record { positions: vec![2, 0], ..negative(None) }, "positions that ascend"),
        (Record { old: vec![], ..negative(None) }, "2 old words"),
        (Record { text: "x".repeat(1 << 20), ..negative(None) }, "at most 1 MiB"),
    ];
    for (record, said) in bad {
        let error = write(&[record], &mut vec![], "n").unwrap_err().to_string();
        assert!(
            error.starts_with("n, caption a.jpg#3: expected") && error.contains(said),
            "{error}"
        );
    }
}

#[test]
fn an_interrupted_file_keeps_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n.jsonl");
    save(&path, &[negative(None)]).unwrap();
    let error = save(&path, &[negative(Some(1.0)), negative(Some(f32::NAN))]);
    let wanted = "n.jsonl, caption a.jpg#3: expected a finite score, got NaN";
    assert!(error.unwrap_err().to_string().ends_with(wanted));
    assert_eq!(read(&path).unwrap(), [negative(None)]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

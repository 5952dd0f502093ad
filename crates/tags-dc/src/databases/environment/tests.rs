use std::collections::BTreeMap;

use super::*;
use crate::databases::tests::malformed::environment as write;

/// What LMDB writes, some of it twice: a tree of several levels, with values in pages of their own, and pages that a later transaction
/// left.
fn written(values: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<_> = values.iter().map(|(key, value)| (key.as_str(), &value[..])).collect();
    write(folder.path(), &all);
    write(folder.path(), &all[..all.len() / 3]);
    std::fs::read(folder.path().join("data.mdb")).unwrap()
}

fn environment(bytes: Vec<u8>) -> Result<Environment> {
    Environment::of("T".into(), "T/data.mdb".into(), bytes.into())
}

fn value(environment: &Environment, key: &str) -> Result<Vec<u8>> {
    environment.value(key, |_, value| Ok(value.to_vec()))
}

#[test]
fn every_value_that_lmdb_wrote_is_found() {
    let one = |k: usize| (format!("{k:0width$}", width = 1 + k % 300), vec![k as u8; k * 7 % 9001]);
    let values: BTreeMap<String, Vec<u8>> = (0..3000).map(one).collect();
    let environment = environment(written(&values)).unwrap();
    for (key, want) in &values {
        assert!(value(&environment, key).unwrap() == *want, "{key}");
    }
    for missing in ["", "x", "00000000000001x", &"0".repeat(400)] {
        let line = value(&environment, missing).unwrap_err().to_string();
        assert_eq!(line, format!("T `{missing}`: expected a value, got none"));
    }
}

/// Every byte of a small file that an entry or a page may lie with, changed in several ways: a value or one line.
#[test]
fn damaged_pages_are_errors() {
    let values: BTreeMap<String, Vec<u8>> = (0..40)
        .map(|k| (format!("{k:0200}"), vec![k; if k % 9 == 0 { 5000 } else { 90 }]))
        .collect();
    let whole = written(&values);
    let (mut refused, mut read) = (0, 0);
    for at in (0..whole.len()).filter(|&at| at % 4096 < 200 || whole[at] != whole[at.max(1) - 1]) {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            let Ok(environment) = environment(bytes) else {
                refused += 1;
                continue;
            };
            for key in values.keys().step_by(7) {
                match value(&environment, key) {
                    Ok(_) => read += 1,
                    Err(error) => {
                        assert!(!error.to_string().contains('\n'));
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 1000 && read > 1000, "{refused} {read}");
}

#[test]
fn a_circle_of_pages_ends() {
    let values = (0..200).map(|k| (format!("{k:0300}"), vec![])).collect();
    let mut bytes = written(&values);
    let root = environment(bytes.clone()).unwrap().root.unwrap();
    let (page, first) = (root * 4096, bytes[root * 4096 + HEAD..][..2].try_into().unwrap());
    assert_eq!(u16_at(&bytes, page + 10), Some(BRANCH));
    let entry = page + usize::from(u16::from_le_bytes(first));
    bytes[entry..entry + 6].copy_from_slice(&(root as u64).to_le_bytes()[..6]);
    let line = value(&environment(bytes).unwrap(), "").unwrap_err().to_string();
    assert!(line.ends_with("got a damaged one"), "{line}");
}

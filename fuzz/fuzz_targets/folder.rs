//! A folder of data with one file of a stranger: Karpathy's JSON, lists of FNE, captions and splits.
//! The first byte chooses the file's name; the rest is the file.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use itm_core::data::check;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

const NAMES: [&str; 9] = [
    "dataset_x.json",
    "train_caps.txt",
    "train_ids.txt",
    "x_train.json",
    "Flickr8k.token.txt",
    "results_20130124.token",
    "results.csv",
    "captions.txt",
    "captions_train2014.json",
];

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

fuzz_target!(|bytes: &[u8]| {
    let Some((&name, bytes)) = bytes.split_first() else { return };
    let path = FOLDER.path().join(NAMES[usize::from(name) % NAMES.len()]);
    fs::write(&path, bytes).expect("a file");
    if let Ok(report) = check(FOLDER.path()) {
        assert!(!report.to_string().contains(['\u{1b}', '\u{202e}', '\r']));
    }
    fs::remove_file(path).expect("it was there");
});

//! Word vectors as text, JSON, `.npy` and safetensors. The first byte chooses the ending of the file's name.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use itm_core::data::WordVectors;
use itm_core::text::{Vocabulary, VocabularyOptions};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

fuzz_target!(|bytes: &[u8]| {
    let Some((&end, bytes)) = bytes.split_first() else { return };
    let options = VocabularyOptions { min_count: 1, ..VocabularyOptions::default() };
    let vocabulary = Vocabulary::build(["a dog"], options);
    let path = FOLDER.path().join(["v.txt", "v.json", "v.npy", "v.safetensors"][usize::from(end) % 4]);
    fs::write(&path, bytes).expect("a file");
    let _ = WordVectors::read(&path, &vocabulary);
    let _ = Vocabulary::read(&path, VocabularyOptions::default());
    fs::remove_file(path).expect("it was there");
});

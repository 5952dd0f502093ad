//! `tokenizer.json`, whose library may panic, and `vocab.txt`. The first byte chooses.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use itm_core::text::WordPieces;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

fuzz_target!(|bytes: &[u8]| {
    let Some((&name, bytes)) = bytes.split_first() else { return };
    let path = FOLDER.path().join(["tokenizer.json", "vocab.txt"][usize::from(name) % 2]);
    fs::write(&path, bytes).expect("a file");
    if let Ok(pieces) = WordPieces::open(FOLDER.path()) {
        let _ = pieces.encode("a dog runs");
    }
    fs::remove_file(path).expect("it was there");
});

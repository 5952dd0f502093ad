//! Pictures: whole or not, and their pixels. The first byte chooses a magic, which replaces the first bytes of the rest.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use itm_core::data::{decode_image, probe_image};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

fuzz_target!(|bytes: &[u8]| {
    let Some((&format, bytes)) = bytes.split_first() else { return };
    let mut bytes = bytes.to_vec();
    let magic: &[u8] = [&b"\xff\xd8\xff"[..], b"\x89PNG\r\n\x1a\n", b"RIFF"][usize::from(format) % 3];
    if bytes.len() >= magic.len() {
        bytes[..magic.len()].copy_from_slice(magic);
    }
    let path = FOLDER.path().join("x");
    fs::write(&path, bytes).expect("a file");
    // Decoding takes as long as the pixels are many: the limits have tests of their own.
    if probe_image(&path).is_ok_and(|info| u64::from(info.width) * u64::from(info.height) < 1 << 20) {
        let _ = decode_image(&path);
    }
});

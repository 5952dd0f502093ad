//! UNITER's databases: the same LMDB file as sentences and as regions.
#![no_main]

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tags_dc::databases::{Detections, ImageDatabase, TextDatabase};
use tempfile::TempDir;

const REGIONS: &str = "feat_th0.2_max100_min10";
const SENTENCES: [(&str, &str); 4] = [
    ("meta", r#"{"CLS": 101, "SEP": 102, "MASK": 103, "UNK": 100, "v_range": [106, 300]}"#),
    ("id2len", r#"{"30": 5, "4": 2, "7": 61, "1": 3}"#),
    ("txt2img", r#"{"30": "b.npz", "4": "a.npz", "7": "b.npz", "1": "a.npz"}"#),
    ("img2txts", r#"{"b.npz": ["30", "7"], "a.npz": ["4", "1"]}"#),
];

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    for (name, json) in SENTENCES {
        fs::write(folder.path().join(format!("{name}.json")), json).expect("a file");
    }
    fs::create_dir(folder.path().join(REGIONS)).expect("a folder");
    let counts = folder.path().join("nbb_th0.2_max100_min10.json");
    fs::write(counts, r#"{"b.npz": 3, "a.npz": 2, "c.npz": 1}"#).expect("a file");
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let folder: &Path = FOLDER.path();
    fs::write(folder.join("data.mdb"), bytes).expect("a file");
    if let Ok(texts) = TextDatabase::open(folder) {
        let _ = texts.read(None);
        let _ = texts.protected("b.npz");
    }
    fs::write(folder.join(REGIONS).join("data.mdb"), bytes).expect("a file");
    if let Ok(images) = ImageDatabase::open(folder, Detections::default()) {
        for name in ["a.npz", "b.npz", "c.npz"] {
            let _ = images.image(name);
        }
    }
});

//! Weights: safetensors, PyTorch's archive and an index of shards. The first byte chooses.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use itm_core::weights::WeightFiles;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

fuzz_target!(|bytes: &[u8]| {
    let Some((&name, bytes)) = bytes.split_first() else { return };
    let names = ["model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"];
    let path = FOLDER.path().join(names[usize::from(name) % 3]);
    fs::write(&path, bytes).expect("a file");
    if let Ok(files) = WeightFiles::open(FOLDER.path()) {
        let names: Vec<_> = files.names().map(str::to_owned).collect();
        for name in names {
            let _ = files.f32s(&name);
        }
    }
    fs::remove_file(path).expect("it was there");
});

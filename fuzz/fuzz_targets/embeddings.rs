//! Embeddings and names that hubness reads by the ending of the file's name: Parquet tables, PyTorch's tensors. The first byte chooses.
#![no_main]

use std::fs;
use std::io;
use std::sync::LazyLock;

use hubness::cli::input::{InputArgs, Location, load_from};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

fuzz_target!(|bytes: &[u8]| {
    let Some((&end, bytes)) = bytes.split_first() else { return };
    let path = FOLDER.path().join(["x.parquet", "x.pt"][usize::from(end) % 2]);
    fs::write(&path, bytes).expect("a file");
    let rows = FOLDER.path().join("rows.txt");
    let at = |path| Some(Location { path: Some(path), part: None });
    let input = InputArgs { images: at(path.clone()), texts: at(path.clone()), ..InputArgs::default() };
    let _ = load_from(&InputArgs { text_names: at(path.clone()), ..input.clone() }, &mut io::empty());
    let _ = load_from(&InputArgs { text_names: at(rows), ..input }, &mut io::empty());
    fs::remove_file(path).expect("it was there");
});

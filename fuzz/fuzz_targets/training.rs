//! A target and the text files of a run's folder, as a resumed run or `report` reads them. The first byte chooses.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use itm_run::config::Config;
use itm_run::log::Log;
use itm_run::run_dir::Identity;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder"));

fuzz_target!(|bytes: &[u8]| {
    let Some((&name, bytes)) = bytes.split_first() else { return };
    let name = ["x.toml", "run.json", "log.jsonl"][usize::from(name) % 3];
    let path: PathBuf = FOLDER.path().join(name);
    fs::write(&path, bytes).expect("a file");
    match name {
        "x.toml" => drop(Config::load(FOLDER.path(), "x")),
        "run.json" => drop(Identity::read(FOLDER.path())),
        _ => drop(Log::read(&path)),
    }
    fs::remove_file(path).expect("it was there");
});

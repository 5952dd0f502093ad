//! The binary `itm` on targets that take only seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A small `fne-scenes`, which takes seconds instead of minutes, and the papers' tables.
pub(crate) fn small_configs(dir: &Path) -> PathBuf {
    let folder = dir.join("configs");
    fs::create_dir_all(folder.join("papers")).unwrap();
    let papers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/papers");
    for (name, bytes) in files(&papers) {
        fs::write(folder.join("papers").join(name), bytes).unwrap();
    }
    let values = [
        ("train", "60"),
        ("val", "20"),
        ("test", "30"),
        ("pixels", "48"),
        ("protocol", "\"full\""),
        ("embed_dim", "16"),
        ("dims", "8"),
        ("batch", "16"),
        ("epochs", "4"),
        ("bank_size", "64"),
        ("warmup_epochs", "1"),
        ("checkpoint_steps", "5"),
        ("log_steps", "3"),
        ("observe_steps", "4"),
    ];
    // Keys of the preset that tests change.
    let sampler = "[sampler]\nnegatives = \"fne\"\nmin_count = 10\nreset = \"epoch\"";
    let mut text = with_values("fne-scenes", &values).replace("[sampler]", sampler);
    for (key, of_128, of_16) in
        [("batch", [96, 64, 32], [12, 8, 4]), ("bank_size", [768, 512, 256], [48, 32, 16])]
    {
        for (large, small) in of_128.into_iter().zip(of_16) {
            let part = format!("{key} = {large}");
            assert!(text.contains(&part), "no `{part}`");
            text = text.replace(&part, &format!("{key} = {small}"));
        }
    }
    text = text.replace("sampler.warmup_epochs = 4", "sampler.warmup_epochs = 1");
    for batch in [512, 128] {
        text = text.replace(&format!("train.batch = {batch}\n"), "train.batch = 16\n");
    }
    fs::write(folder.join("small.toml"), text).unwrap();
    folder
}

/// A small `hal-scenes`, as `small-hal` beside `small`; not every test crate uses it.
#[allow(dead_code)]
pub(crate) fn small_hal_config(configs: &Path) {
    let values = [
        ("train", "60"),
        ("val", "20"),
        ("test", "30"),
        ("pixels", "48"),
        ("protocol", "\"full\""),
        ("embed_dim", "16"),
        ("dims", "8"),
        ("epochs", "2"),
        ("checkpoint_steps", "50"),
        ("observe_steps", "4"),
    ];
    let text = with_values("hal-scenes", &values)
        .replace("train.batch = 512\n", "train.batch = 16\n")
        .replace("[train]\n", "[train]\nbatch = 16\n");
    fs::write(configs.join("small-hal.toml"), text).unwrap();
}

/// The configuration of a target with other values; each replaces the value of the first line with its key.
pub(crate) fn with_values(target: &str, values: &[(&str, &str)]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let text = fs::read_to_string(root.join(format!("{target}.toml"))).unwrap();
    values.iter().fold(text, |text, (key, value)| set(&text, key, value))
}

/// Replaces the value of the first line `key = …`, which must be there.
pub(crate) fn set(text: &str, key: &str, value: &str) -> String {
    let mut found = false;
    let lines = text.lines().map(|line| {
        let is_key = line.split('=').next().is_some_and(|k| k.trim() == key);
        if is_key && !found {
            found = true;
            return format!("{key} = {value}");
        }
        line.to_owned()
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    assert!(found, "no line `{key} = …`");
    text
}

pub(crate) fn itm(configs: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_itm"));
    command.arg("--configs").arg(configs).args(args).current_dir(configs.parent().unwrap());
    command.env_remove("RAYON_NUM_THREADS"); // more threads than cores print a line
    command
}

pub(crate) fn run(configs: &Path, args: &[&str]) -> Output {
    itm(configs, args).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every file below a folder by name, with its bytes.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = vec![];
    let mut folders = vec![folder.to_path_buf()];
    while let Some(dir) = folders.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

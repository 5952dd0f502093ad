//! The methods that a command line needs. Each is a feature of the runner, so it must be known before the build: it is read from the target's
//! file. If this reading finds too little, the runner says so by its exit code.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use toml::{Table, Value};

use crate::manifest::Manifest;

const RUNNER: &str = include_str!("../../crates/itm-run/Cargo.toml");

/// The features of all methods.
pub(crate) fn methods() -> Vec<String> {
    let runner = Manifest::new("itm-run", RUNNER).expect("cargo has read it");
    runner.items_of("methods").to_vec()
}

/// The features of the methods that words of `args` name: the method itself, a target of `configs`, a table of a target by its alias, or a
/// run's folder.
pub(crate) fn needed(configs: &Path, args: &[OsString]) -> Vec<String> {
    let mut files = files(configs);
    let words: Vec<_> = args.iter().filter_map(|arg| arg.to_str()).collect();
    for word in &words {
        let run = read(&Path::new(word).join("config.toml"));
        files.extend(run.map(|file| ((*word).to_owned(), file)));
    }
    let named =
        |name: &String| words.iter().any(|word| word == name || method(&files, word) == Some(name));
    methods().into_iter().filter(named).collect()
}

/// The targets' files by their names; none if the folder cannot be read.
fn files(configs: &Path) -> BTreeMap<String, Table> {
    let entries = std::fs::read_dir(configs).into_iter().flatten().flatten();
    let file = |path: &Path| {
        let name = path.file_name()?.to_str()?.strip_suffix(".toml")?;
        Some((name.to_owned(), read(path)?))
    };
    entries.filter_map(|entry| file(&entry.path())).collect()
}

fn read(path: &Path) -> Option<Table> {
    std::fs::read_to_string(path).ok()?.parse().ok()
}

/// The method of a target: of its file, or of the file that it extends.
fn method<'a>(files: &'a BTreeMap<String, Table>, target: &str) -> Option<&'a str> {
    let is_named = |table: &Value| table.get("alias").and_then(Value::as_str) == Some(target);
    let has_alias = |file: &&Table| {
        let tables = file.get("table").and_then(Value::as_table);
        tables.is_some_and(|tables| tables.values().any(is_named))
    };
    let mut file = files.get(target).or_else(|| files.values().find(has_alias))?;
    for _ in files {
        if let Some(method) = file.get("target").and_then(|target| target.get("method")) {
            return method.as_str();
        }
        file = files.get(file.get("extends")?.as_str()?)?;
    }
    None // a circle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed_by(line: &str) -> Vec<String> {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
        needed(&configs, &line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_target_needs_its_method_alone() {
        for (line, want) in [
            ("fne-scenes --seeds 1", &["fne"][..]),
            ("--jobs 1 fne-coco-features", &["fne"]), // extends a target that extends a target
            ("hubness-scenes-fne", &["fne"]),
            ("hubness-flickr8k", &["hal"]),
            ("naaf --run runs/naaf-scenes", &["naaf"]),
            ("tags-dc-coco-large --backend cpu", &["tags-dc"]),
            ("--out list", &[]),
        ] {
            assert_eq!(needed_by(line), want, "{line}");
        }
    }

    /// Else all methods are built for a command over a run.
    #[test]
    fn a_run_needs_its_method_alone() {
        let run = std::env::temp_dir().join(format!("itm-run-{}", std::process::id()));
        std::fs::create_dir_all(&run).unwrap();
        std::fs::write(run.join("config.toml"), "[target]\nmethod = \"hal\"\n").unwrap();
        assert_eq!(needed_by(&format!("--run {} --row Full", run.display())), ["hal"]);
        std::fs::remove_dir_all(&run).unwrap();
    }

    #[test]
    fn every_target_has_a_method() {
        let files = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs"));
        let methods = methods();
        assert_eq!(methods.len(), 4);
        for name in files.keys() {
            let method = method(&files, name).unwrap_or_else(|| panic!("{name} has no method"));
            assert!(methods.iter().any(|known| known == method), "{name}: {method}");
        }
    }

    #[test]
    fn a_circle_of_targets_has_no_method() {
        let file = |name: &str, other: &str| {
            (name.to_owned(), format!("extends = \"{other}\"").parse().unwrap())
        };
        assert_eq!(method(&[file("a", "b"), file("b", "a")].into(), "a"), None);
        assert_eq!(method(&[file("a", "b")].into(), "a"), None);
    }
}

//! The methods that a command line needs. Each is a feature of the runner, so it must be known before the build: it is read from the target's
//! file. If this reading finds too little, the runner says so by its exit code.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use crate::manifest::Manifest;

const RUNNER: &str = include_str!("../../crates/itm-run/Cargo.toml");

/// The features of all methods.
pub(crate) fn methods() -> Vec<String> {
    Manifest::new("itm-run", RUNNER).items_of("methods").to_vec()
}

/// The features of the methods that words of `args` name: the method itself, a target of `configs`, or a table of a target by its alias.
pub(crate) fn needed(configs: &Path, args: &[OsString]) -> Vec<String> {
    let files = files(configs);
    let words: Vec<_> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let named =
        |name: &String| words.iter().any(|word| word == name || method(&files, word) == Some(name));
    methods().into_iter().filter(named).collect()
}

/// The targets' files by their names, and their texts; none if the folder cannot be read.
fn files(configs: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(configs).into_iter().flatten().flatten();
    let file = |path: &Path| {
        let name = path.file_name()?.to_str()?.strip_suffix(".toml")?;
        Some((name.to_owned(), std::fs::read_to_string(path).ok()?))
    };
    entries.filter_map(|entry| file(&entry.path())).collect()
}

/// The method of a target: the first `method` of its file, or of the file that it extends.
fn method<'a>(files: &'a BTreeMap<String, String>, target: &str) -> Option<&'a str> {
    let has_alias = |text: &&String| values(text, "alias").any(|alias| alias == target);
    let mut text = files.get(target).or_else(|| files.values().find(has_alias))?;
    for _ in files {
        if let Some(method) = values(text, "method").next() {
            return Some(method);
        }
        text = files.get(values(text, "extends").next()?)?;
    }
    None // a circle
}

/// The texts at a key, in a section or after its dotted name.
fn values<'a>(text: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let own = move |(name, _): &(&str, &str)| name.trim().rsplit('.').next() == Some(key);
    lines.filter(own).filter_map(|(_, value)| value.split('"').nth(1))
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
        let file = |name: &str, other: &str| (name.to_owned(), format!("extends = \"{other}\""));
        assert_eq!(method(&[file("a", "b"), file("b", "a")].into(), "a"), None);
        assert_eq!(method(&[file("a", "b")].into(), "a"), None);
    }
}

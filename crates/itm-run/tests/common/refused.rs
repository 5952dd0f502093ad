//! What tests of bad input share: a refusal is one line, and files are spoilt on purpose.

use std::fs;
use std::path::Path;

use crate::common::{files, run, text};

/// Runs `itm` on bad input: exactly one line on standard error, exit code 2. The line, without `error: `.
pub(crate) fn refused(configs: &Path, args: &[&str]) -> String {
    let output = run(configs, args);
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
    let line = line.strip_prefix("error: ").unwrap_or_else(|| panic!("{args:?}: {line}"));
    line.trim_end().to_owned()
}

/// `line` holds every part.
pub(crate) fn holds(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "no {part:?} in {line}");
    }
}

/// Puts a copy of a folder in the place of another.
pub(crate) fn copy(from: &Path, to: &Path) {
    _ = fs::remove_dir_all(to);
    for (name, bytes) in files(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Edits a file.
pub(crate) fn change(path: &Path, edit: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    fs::write(path, edit(fs::read(path).unwrap())).unwrap();
}

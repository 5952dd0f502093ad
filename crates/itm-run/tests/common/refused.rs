//! Helpers for tests of bad input: refusals of one line, and files that are broken on purpose.

use std::fs;
use std::path::Path;

use crate::common::{files, run, text};

/// Runs `itm` on bad input and checks for exactly one line on standard error and exit code 2. Returns the line without `error: `.
pub(crate) fn refused(configs: &Path, args: &[&str]) -> String {
    let output = run(configs, args);
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
    let line = line.strip_prefix("error: ").unwrap_or_else(|| panic!("{args:?}: {line}"));
    line.trim_end().to_owned()
}

/// Checks that `line` contains every part.
pub(crate) fn holds(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "no {part:?} in {line}");
    }
}

/// Replaces the folder `to` by a copy of the folder `from`.
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

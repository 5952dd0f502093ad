//! Every line of the documentation that calls `cargo xtask` is a command that xtask knows. `tests/tests/commands.rs` parses the
//! commands that xtask passes on to `itm`.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::Task;
use crate::pages::{Step, steps};

fn pages(root: &Path) -> Vec<PathBuf> {
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let crates = std::fs::read_dir(root.join("crates")).unwrap();
    let readmes = crates.map(|entry| entry.unwrap().path().join("README.md"));
    [root.join("README.md")]
        .into_iter()
        .chain(docs)
        .chain(readmes.filter(|path| path.is_file()))
        .collect()
}

#[test]
fn every_line_of_the_documentation_is_a_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut parsed = 0;
    for page in pages(root) {
        for step in steps(&std::fs::read_to_string(&page).unwrap(), false) {
            let Step::Command { line, words } = step else { continue };
            if words.len() < 2 || words[..2] != ["cargo", "xtask"] {
                continue;
            }
            if let Err(error) = Task::try_parse_from(&words[1..]) {
                panic!("{}:{line}: {error}", page.display());
            }
            parsed += 1;
        }
    }
    assert!(parsed > 20, "{parsed} lines");
}

//! The budget of each crate: the lines of code and the public items that it may have at most.
//!
//! Lines of code are all lines but blank ones, comments, documentation, tests, benchmarks, examples and targets of fuzzing. Public
//! items are all items with `pub`, except re-exports; methods count, fields do not.

use std::collections::BTreeMap;

use crate::modules::{self, Files, Token};
use crate::rules::Finding;

/// The file with the budgets: a line `name = { lines = N, public = N }` for each crate. A comment behind it says why it was raised.
pub(crate) const FILE: &str = "xtask/budget.toml";

/// Folders without code that counts.
const OTHER_FOLDERS: [&str; 4] = ["benches", "examples", "fuzz", "tests"];

/// Files of tests outside these folders.
const TEST_FILES: [&str; 4] = ["fakes.rs", "golden.rs", "mortal.rs", "tests.rs"];

/// Lines of code and public items, counted or allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) lines: usize,
    pub(crate) public: usize,
}

/// The size of each crate, by name.
pub(crate) fn sizes(files: &Files) -> BTreeMap<&str, Size> {
    let mut sizes = BTreeMap::<&str, Size>::new();
    for (path, text) in files {
        let Some(name) = crate_of(path) else { continue };
        let tokens = modules::tokens(text).unwrap_or_default(); // the check of circles says why
        let size = sizes.entry(name).or_default();
        size.lines += lines_of_code(text);
        size.public += public_items(&tokens);
    }
    sizes
}

/// What is above its budget, and what is wrong with the budgets. `before` are the budgets of the last commit.
pub(crate) fn check(sizes: &BTreeMap<&str, Size>, now: &str, before: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut budgets = BTreeMap::new();
    let before: BTreeMap<_, _> = before.lines().filter_map(budget).collect();
    for (at, line) in now.lines().enumerate() {
        let mut error = |message: String| {
            findings.push(Finding::error(format!("{FILE}:{}", at + 1), message));
        };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, (most, reason))) = budget(line) else {
            error(format!("expected `name = {{ lines = N, public = N }} # why`, got `{line}`"));
            continue;
        };
        if budgets.insert(name, most).is_some() {
            error(format!("a second budget for {name}"));
        }
        if !sizes.contains_key(name) {
            error(format!("a budget for {name}, which is no crate"));
        }
        let raised = before.get(name).is_some_and(|(old, old_reason)| {
            let is_raised = most.lines > old.lines || most.public > old.public;
            is_raised && (reason.is_empty() || reason == *old_reason)
        });
        if raised {
            error(format!("the budget for {name} was raised: its line must say why, behind a `#`"));
        }
    }
    for (name, size) in sizes {
        let Some(most) = budgets.get(name) else {
            let [lines, public] = [size.lines, size.public].map(with_reserve);
            let line = format!("`{name} = {{ lines = {lines}, public = {public} }}`");
            findings.push(Finding::error(FILE, format!("no budget for {name}: write {line}")));
            continue;
        };
        for (what, got, most) in
            [("lines of code", size.lines, most.lines), ("public items", size.public, most.public)]
        {
            if got > most {
                let message = format!("{got} {what}, at most {most} by {FILE}: take some out");
                findings.push(Finding::error(*name, message));
            }
        }
    }
    findings
}

/// A number rounded up by 1 %.
fn with_reserve(count: usize) -> usize {
    count + count.div_ceil(100)
}

/// The name, the budget and the reason of a line.
fn budget(line: &str) -> Option<(&str, (Size, &str))> {
    let (line, reason) = line.split_once('#').unwrap_or((line, ""));
    let (name, value) = line.split_once('=')?;
    let (lines, public) = value.trim().strip_prefix('{')?.strip_suffix('}')?.split_once(',')?;
    let number = |text: &str, key: &str| {
        let (found, number) = text.split_once('=')?;
        (found.trim() == key).then(|| number.trim().parse().ok())?
    };
    let size = Size { lines: number(lines, "lines")?, public: number(public, "public")? };
    Some((name.trim(), (size, reason.trim())))
}

/// The crate whose code is in a file.
fn crate_of(path: &str) -> Option<&str> {
    let (folder, file) = path.rsplit_once('/')?;
    let folders: Vec<&str> = folder.split('/').collect();
    let is_test = TEST_FILES.contains(&file) || file.ends_with("_tests.rs");
    if is_test || folders.iter().any(|folder| OTHER_FOLDERS.contains(folder)) {
        return None;
    }
    match folders[..] {
        ["crates", name, ..] | [name @ "xtask", ..] => Some(name),
        _ => None,
    }
}

fn lines_of_code(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let (mut count, mut at) = (0, 0);
    while at < lines.len() {
        if let Some(length) = tests_length(&lines[at..]) {
            at += length;
            continue;
        }
        let line = lines[at].trim();
        count += usize::from(!line.is_empty() && !line.starts_with("//"));
        at += 1;
    }
    count
}

/// The number of lines of an inline module of tests that begins here, with its attributes.
fn tests_length(lines: &[&str]) -> Option<usize> {
    let first = lines.first()?.trim();
    if !first.starts_with("#[cfg(test") && !first.starts_with("#[cfg(all(test") {
        return None;
    }
    let attributes = lines.iter().take_while(|line| line.trim().starts_with("#[")).count();
    let head = lines.get(attributes)?;
    let words: Vec<&str> = head.split_whitespace().collect();
    if !matches!(words[..], ["mod", _, "{"] | [_, "mod", _, "{"]) {
        return None;
    }
    let indent = &head[..head.len() - head.trim_start().len()];
    let end = format!("{indent}}}");
    let body = lines[attributes..].iter().take_while(|line| **line != end).count();
    Some(attributes + body + 1)
}

fn public_items(tokens: &[Token]) -> usize {
    const ITEMS: [&str; 11] = [
        "async",
        "const",
        "enum",
        "extern",
        "fn",
        "mod",
        "static",
        "struct",
        "trait",
        "type",
        concat!("un", "safe"),
    ];
    let is_item = |pair: &&[Token]| pair[0].text == "pub" && ITEMS.contains(&pair[1].text.as_str());
    tokens.windows(2).filter(is_item).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! Document.

use std::fmt;

/// Document.
pub struct A {
    pub field: usize, // behind code
}

impl A {
    // Comment.
    pub const fn new() -> Self {
        Self { field: 1 }
    }
    pub(crate) fn own(&self) {}
}

#[cfg(test)]
use std::io;

#[cfg(all(test, feature = \"x\"))]
#[allow(dead_code)]
pub(crate) mod tests {
    pub fn f() {}
}

pub use fmt::Debug;
pub mod below {}
";

    fn size(lines: usize, public: usize) -> Size {
        Size { lines, public }
    }

    /// By hand: 1 line of `use`, 3 of the type, 6 of the block, 2 for tests, 2 at the end. `A`, `new`, `below` are public.
    #[test]
    fn code_is_counted_without_tests_comments_and_documents() {
        let name = |path: &str| (path.to_owned(), SOURCE.to_owned());
        let files: Files = [
            "crates/a/src/lib.rs",
            "crates/a/src/x/y.rs",
            "crates/a/src/x/tests.rs",
            "crates/a/src/x/more_tests.rs",
            "crates/a/src/tests/common.rs",
            "crates/a/benches/b.rs",
            "crates/a/examples/e.rs",
            "crates/a/fuzz/src/main.rs",
            "tests/tests/laws.rs",
            "xtask/src/main.rs",
        ]
        .map(name)
        .into();
        let want = BTreeMap::from([("a", size(28, 6)), ("xtask", size(14, 3))]);
        assert_eq!(sizes(&files), want);
    }

    fn found(now: &str, before: &str) -> Vec<String> {
        let sizes = BTreeMap::from([("a", size(100, 10)), ("b", size(1000, 7))]);
        let findings = check(&sizes, now, before).into_iter();
        findings.map(|found| format!("{}: {}", found.place, found.message)).collect()
    }

    const KEPT: &str =
        "# Budgets.\n\na = { lines = 100, public = 10 }\nb = { lines = 1001, public = 8 }\n";

    #[test]
    fn a_crate_above_its_budget_fails() {
        assert_eq!(found(KEPT, KEPT), [] as [&str; 0]);
        let lines = KEPT.replace("100,", "99,");
        assert_eq!(
            found(&lines, KEPT),
            ["a: 100 lines of code, at most 99 by xtask/budget.toml: take some out"]
        );
        let public = KEPT.replace("= 8", "= 6");
        assert_eq!(
            found(&public, KEPT),
            ["b: 7 public items, at most 6 by xtask/budget.toml: take some out"]
        );
    }

    #[test]
    fn a_budget_is_raised_with_a_reason() {
        let raised = KEPT.replace("= 8 }", "= 9 }");
        let line =
            "xtask/budget.toml:4: the budget for b was raised: its line must say why, behind a `#`";
        assert_eq!(found(&raised, KEPT), [line]);
        let why = raised.replace("= 9 }", "= 9 } # readers of a second format");
        assert_eq!(found(&why, KEPT), [] as [&str; 0]);
        assert_eq!(found(&why, &why), [] as [&str; 0]);
        assert_eq!(found(&why.replace("1001", "1002"), &why), [line], "an old reason");
        assert_eq!(found(KEPT, &raised), [] as [&str; 0], "a lower number needs none");
    }

    #[test]
    fn every_crate_has_one_budget() {
        let without_b = "a = { lines = 100, public = 10 }\n";
        let line = "xtask/budget.toml: no budget for b: write `b = { lines = 1010, public = 8 }`";
        assert_eq!(found(without_b, ""), [line]);
        let other = format!("{KEPT}c = {{ lines = 1, public = 1 }}\n");
        assert_eq!(found(&other, ""), ["xtask/budget.toml:5: a budget for c, which is no crate"]);
        let twice = format!("{KEPT}{without_b}");
        assert_eq!(found(&twice, ""), ["xtask/budget.toml:5: a second budget for a"]);
        for line in ["a = 5", "a = { lines = 1 }", "a = { lines = -1, public = 2 }", "?"] {
            let found = found(&format!("{KEPT}{line}"), "");
            assert_eq!(found.len(), 1, "{line}: {found:?}");
            assert!(found[0].starts_with("xtask/budget.toml:5: expected `name = "), "{found:?}");
        }
    }
}

//! The budget of each crate: the lines of code and the public items that it may have at most.
//!
//! Lines of code are all lines but blank ones, comments, documentation, tests, benchmarks, examples and targets of fuzzing. Public
//! items are all items with `pub`, except re-exports; methods count, fields do not.

use std::collections::{BTreeMap, BTreeSet};

use toml::Table;

use crate::modules::{self, Files, Token};
use crate::rules::Finding;

/// The file with the budgets: a line `name = { lines = N, public = N }` for each crate. A comment behind a line says why it was
/// raised.
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
        if budgets.insert(name.clone(), most).is_some() {
            error(format!("a second budget for {name}"));
        }
        if !sizes.contains_key(&*name) {
            error(format!("a budget for {name}, which is no crate"));
        }
        let raised = before.get(&name).is_some_and(|(old, old_reason)| {
            let is_raised = most.lines > old.lines || most.public > old.public;
            is_raised && (reason.is_empty() || reason == *old_reason)
        });
        if raised {
            error(format!("the budget for {name} was raised: its line must say why, behind a `#`"));
        }
    }
    for (name, size) in sizes {
        let Some(most) = budgets.get(*name) else {
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
fn budget(line: &str) -> Option<(String, (Size, &str))> {
    let reason = line.split_once('#').map_or("", |(_, reason)| reason.trim());
    let (name, value) = line.parse::<Table>().ok()?.into_iter().next()?;
    let number = |key: &str| usize::try_from(value.get(key)?.as_integer()?).ok();
    Some((name, (Size { lines: number("lines")?, public: number("public")? }, reason)))
}

/// The crate whose code is in a file.
fn crate_of(path: &str) -> Option<&str> {
    let (folder, file) = path.rsplit_once('/')?;
    let folders: Vec<&str> = folder.split('/').collect();
    if is_test(file) || folders.iter().any(|folder| OTHER_FOLDERS.contains(folder)) {
        return None;
    }
    match folders[..] {
        ["crates", name, ..] | [name @ "xtask", ..] => Some(name),
        _ => None,
    }
}

/// Whether a file holds only tests, by its name.
fn is_test(file: &str) -> bool {
    TEST_FILES.contains(&file) || file.ends_with("_tests.rs")
}

/// The files of code in a crate's folder that no module names: nobody compiles them.
pub(crate) fn orphans(files: &Files, folder: &str) -> Vec<Finding> {
    let named: BTreeSet<String> = modules::all(files, folder).map(|module| module.file).collect();
    let source = format!("{folder}/src/");
    let code = files.keys().filter(|path| path.starts_with(&source) && crate_of(path).is_some());
    code.filter(|path| !named.contains(*path))
        .map(|path| Finding::error(path, "code that no module names, or tests without their name"))
        .collect()
}

fn lines_of_code(text: &str) -> usize {
    // A brace at the beginning of a line ends an item. A module of tests and its attributes stand behind an empty line.
    let code = text.split_inclusive("\n}\n").map(|item| match item.split_once("mod tests {\n") {
        Some((before, _)) => before.rsplit_once("\n\n").map_or("", |(code, _)| code),
        None => item,
    });
    let lines = code.flat_map(str::lines).map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

fn public_items(tokens: &[Token]) -> usize {
    const ITEMS: &str =
        concat!("async const enum extern fn mod static struct trait type un", "safe");
    let is_item = |text: &str| ITEMS.split(' ').any(|item| item == text);
    tokens.windows(2).filter(|pair| pair[0].text == "pub" && is_item(&pair[1].text)).count()
}

#[cfg(test)]
mod tests;

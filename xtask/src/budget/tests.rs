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

#[test]
fn code_that_no_module_names_is_found() {
    let file = |(path, text): (&str, &str)| (path.to_owned(), text.to_owned());
    let files: Files = [
        ("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod helpers;\n#[cfg(test)]\nmod tests;\n"),
        ("crates/a/src/b.rs", "mod inside;"),
        ("crates/a/src/b/inside.rs", ""),
        ("crates/a/src/b/lost.rs", ""),
        ("crates/a/src/b/tests.rs", ""),
        ("crates/a/src/bin/c.rs", ""),
        ("crates/a/src/helpers.rs", ""),
        ("crates/a/src/tests.rs", ""),
        ("crates/ab/src/lost.rs", ""),
    ]
    .map(file)
    .into();
    let places = orphans(&files, "crates/a").into_iter().map(|finding| finding.place);
    let places: Vec<_> = places.collect();
    assert_eq!(places, ["crates/a/src/b/lost.rs", "crates/a/src/helpers.rs"]);
}

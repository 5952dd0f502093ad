//! The dependency arrows: which crate may import which.
//!
//! ```text
//! xtask ┄builds and spawns┄▶ itm-run ──▶ method crates ──▶ itm-core[burn] ──▶ itm-kernels ──▶ burn
//!                                         hubness (plain) ──▶ itm-core (plain) ──▶ itm-data ──▶ no burn
//!                       itm-python ──▶ hubness (page), itm-core[burn]
//!          itm-run (search) ──▶ itm-search ──▶ hubness (plain), itm-core (plain)
//! ```
//!
//! A library may import crates for a command line only behind its feature `cli`, and the report kit also behind `page`; neither is
//! ever a default feature.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::manifest::{CLI, Manifest, PAGE};
use crate::rules::Finding;
use crate::{reproduce, targets};

/// Crates of the project that a method may import; the report kit only as part of a command line.
const SHARED: [&str; 4] = ["itm-core", "itm-kernels", "itm-report", "scenes"];

/// Crates of the project that the wheel may import.
const WHEEL: [&str; 4] = ["hubness", "itm-core", "itm-kernels", "itm-report"];

/// Crates of the project that the search may import.
const SEARCH: [&str; 2] = ["hubness", "itm-core"];

/// Crates that belong to a command line, not to a library.
const RUNNER: [&str; 5] = ["clap", "toml", "anyhow", "indicatif", "itm-report"];

/// The rules that the manifests of `crates/*` and `xtask` break.
pub(crate) fn check(manifests: &[Manifest]) -> Vec<Finding> {
    let is_ours = |name: &str| manifests.iter().any(|manifest| manifest.name == name);
    let mut findings = Vec::new();
    for manifest in manifests {
        for found in &manifest.imports {
            let (name, import) = (&manifest.name, found.name.as_str());
            let forbidden = match name.as_str() {
                "itm-run" => false,
                "xtask" => is_ours(import) || is_framework(import),
                "itm-kernels" | "itm-report" => is_ours(import),
                "itm-core" => is_ours(import) && !["itm-data", "itm-kernels"].contains(&import),
                "itm-data" => is_ours(import) && import != "itm-kernels",
                "scenes" => is_ours(import) && import != "itm-core",
                "itm-python" => is_ours(import) && !WHEEL.contains(&import),
                "itm-search" => is_ours(import) && !SEARCH.contains(&import),
                _method => is_ours(import) && !SHARED.contains(&import),
            };
            let library =
                !["itm-python", "itm-report", "itm-run", "xtask"].contains(&name.as_str());
            if forbidden {
                findings.push(Finding::error(name, format!("must not import {import}")));
                continue;
            }
            let feature = if import == "itm-report" { PAGE } else { CLI };
            if library && RUNNER.contains(&import) && !manifest.behind(feature, found) {
                let how =
                    format!("as optional, with `dep:{import}` only in the feature `{feature}`");
                findings.push(Finding::error(name, format!("may import {import} only {how}")));
            }
        }
    }
    findings
}

/// The plain halves and xtask must not depend on a framework, as shown by `cargo tree`.
pub(crate) fn check_trees(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (package, features) in [
        ("itm-core", ""),
        ("itm-core", "cca,images"),
        ("itm-data", "hub,images,pieces,pytorch"),
        ("scenes", ""),
        ("itm-kernels", ""),
        ("hubness", ""),
        ("hubness", CLI),
        ("itm-search", "serve"),
        ("tags-dc", ""),
        ("tags-dc", CLI),
        ("xtask", ""),
    ] {
        let package_with = ["--package", package, "--no-default-features", "--features", features];
        let tree = cargo_tree(root, &[&package_with[..], &["--edges", "normal,build"]].concat())?;
        let mut names = tree.lines().filter_map(|line| line.split(' ').next());
        // A parser of captions builds in seconds, without a C compiler.
        let wrong = |name: &&str| is_framework(name) || package == "tags-dc" && *name == "cc";
        if let Some(found) = names.find(wrong) {
            let place = format!("{package}, features [{features}]");
            findings.push(Finding::error(place, format!("cargo tree shows {found}")));
        }
    }
    Ok(findings)
}

/// Crates of the registry that cargo compiles twice, and all above them, because the tests need them in another way than the first run.
pub(crate) fn check_reuse(root: &Path) -> Result<Vec<Finding>> {
    let trees = |args: &[&str], edges: [&str; 2]| -> Result<[String; 2]> {
        let tree =
            |edges| cargo_tree(root, &[args, &["--format", "{p} {f}", "--edges", edges]].concat());
        Ok([tree(edges[0])?, tree(edges[1])?])
    };
    let tests = trees(&["--workspace"], ["normal,build,dev", "normal,dev,no-proc-macro"])?;
    let mut findings = BTreeMap::new();
    for method in targets::methods() {
        let features = format!("cpu,{method}");
        let runner = [&reproduce::RUNNER[..], &["--features", &features]].concat();
        let run = trees(&runner, ["normal,build", "normal,no-proc-macro"])?;
        findings.extend(compiled_twice(&run, &tests));
    }
    Ok(findings.into_iter().map(|(place, why)| Finding::error(place, why)).collect())
}

/// The crates with the reason. The first tree of a build has all its crates, the second has those that its code uses, without what only macros use.
fn compiled_twice(run: &[String; 2], tests: &[String; 2]) -> Vec<(String, &'static str)> {
    let crates = |tree: &String| -> BTreeSet<String> {
        let ours = |line: &&str| line.contains(" (") && !line.contains("(proc-macro)");
        let lines = tree.lines().map(|line| line.trim_end_matches(" (*)")).filter(|l| !ours(l));
        lines.map(|line| line.replace(" (proc-macro)", "").trim_end().to_owned()).collect()
    };
    let ([run, run_code], [tests, tests_code]) =
        (run.each_ref().map(crates), tests.each_ref().map(crates));
    let why = |line: &String| match (tests.contains(line), tests_code.contains(line)) {
        (false, _) => {
            Some("the tests need other features of it: name them in crates/itm-run/Cargo.toml")
        }
        (true, true) if !run_code.contains(line) => {
            Some("only macros use it, and code in the tests: name it in crates/itm-run/Cargo.toml")
        }
        (true, _) => None,
    };
    run.iter().filter_map(|line| Some((line.clone(), why(line)?))).collect()
}

/// Names and versions of everything that a build needs.
fn cargo_tree(root: &Path, args: &[&str]) -> Result<String> {
    let output = reproduce::cargo()
        .current_dir(root)
        .args(["tree", "--prefix", "none"])
        .args(args)
        .output()
        .context("cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn is_framework(package: &str) -> bool {
    ["burn", "cubecl", "tch"].iter().any(|name| {
        package.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_of_a_library_stands_behind_its_feature() {
        let findings = |features: &str, clap: &str| {
            let text = format!("[features]\n{features}\n[dependencies]\nclap = {clap}\n");
            check(&[Manifest::new("hubness", &text).unwrap()]).len()
        };
        let optional = "{ workspace = true, optional = true }";
        for allowed in [
            r#"cli = ["dep:clap", "dep:npyz"]"#,
            "default = []\ncli = [\n  \"dep:clap\",\n]",
            "default = [\"fast\"]\nfast = []\ncli = [\"dep:clap\", \"clap/derive\"]",
        ] {
            assert_eq!(findings(allowed, optional), 0, "{allowed}");
        }
        for forbidden in [
            "",                                               // a feature of its own name
            r#"cli = ["clap"]"#,                              // the same: no `dep:`
            r#"tool = ["dep:clap"]"#,                         // another feature
            "cli = [\"dep:clap\"]\nplots = [\"dep:clap\"]",   // two
            "cli = [\"dep:clap\"]\nplots = [\"clap/color\"]", // two, by a feature of the import
            "default = [\"cli\"]\ncli = [\"dep:clap\"]",      // by default
            "default = [\"a\"]\na = [\"b\"]\nb = [\"cli\"]\ncli = [\"dep:clap\"]",
        ] {
            assert_eq!(findings(forbidden, optional), 1, "{forbidden}");
        }
        for always in ["\"4\"", "{ version = \"4\", optional = false }", "{ workspace = true }"] {
            assert_eq!(findings(r#"cli = ["dep:clap"]"#, always), 1, "{always}");
        }
    }

    #[test]
    fn each_arrow_that_must_not_be_is_found() {
        let project = |extra: (&str, &str)| {
            let names = [
                "itm-core",
                "itm-data",
                "itm-kernels",
                "itm-python",
                "itm-run",
                "fne",
                "hubness",
                "xtask",
            ];
            let manifest = |name: &str| {
                let import = if name == extra.0 { extra.1 } else { "serde" };
                Manifest::new(name, &format!("[dependencies]\n{import} = \"1\"\n")).unwrap()
            };
            check(&names.map(manifest)).len()
        };
        for allowed in [
            ("fne", "itm-core"),
            ("hubness", "itm-core"),
            ("fne", "itm-kernels"),
            ("fne", "burn"),
            ("hubness", "burn"), // optional: `check_trees` checks the plain half
            ("hubness", "itm-kernels"),
            ("itm-core", "itm-data"),
            ("itm-core", "itm-kernels"),
            ("itm-data", "itm-kernels"),
            ("itm-python", "hubness"),
            ("itm-run", "fne"),
            ("itm-run", "hubness"),
            ("itm-run", "clap"),
            ("xtask", "clap"),
        ] {
            assert_eq!(project(allowed), 0, "{allowed:?}");
        }
        for forbidden in [
            ("fne", "hubness"),
            ("hubness", "fne"),
            ("hubness", "clap"),
            ("fne", "itm-run"),
            ("fne", "anyhow"),
            ("itm-core", "fne"),
            ("itm-core", "toml"),
            ("itm-data", "itm-core"),
            ("itm-kernels", "itm-core"),
            ("itm-python", "fne"),
            ("hubness", "itm-python"),
            ("xtask", "burn"),
            ("xtask", "itm-core"),
        ] {
            assert_eq!(project(forbidden), 1, "{forbidden:?}");
        }
    }

    /// Crates of the workspace, whose folder cargo prints, are compiled twice anyway.
    #[test]
    fn a_crate_that_the_tests_need_in_another_way_is_found() {
        let all = "itm-run v0.1.0 (/a/b) cpu\nserde v1.0.0 derive\nsyn v2.0.0 (proc-macro) full (*)\nrand v0.10.0\nheck v1.0.0";
        let run = [all, "rand v0.10.0"].map(String::from);
        let all = "itm-run v0.1.0 (/a/b) cpu,tch\nserde v1.0.0 derive,std\nsyn v2.0.0 full\nrand v0.10.0 \nheck v1.0.0";
        let tests = [all, "rand v0.10.0\nheck v1.0.0"].map(String::from);
        let found: Vec<_> = compiled_twice(&run, &tests).into_iter().map(|f| f.0).collect();
        assert_eq!(found, ["heck v1.0.0", "serde v1.0.0 derive"]);
    }

    #[test]
    fn a_framework_is_known_by_its_name() {
        assert!(["burn", "burn-tensor", "cubecl-wgpu", "tch"].into_iter().all(is_framework));
        assert!(!["burner", "gemm", "torch", "tchar"].into_iter().any(is_framework));
    }
}

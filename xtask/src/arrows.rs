//! The dependency arrows: who may import whom.
//!
//! ```text
//! xtask ┄builds and spawns┄▶ itm-run ──▶ method crates ──▶ itm-core[burn] ──▶ itm-kernels ──▶ burn
//! ```

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::rules::Finding;

/// The crates of the project that are no method.
const SHARED: [&str; 3] = ["itm-core", "itm-kernels", "itm-run"];

/// Belongs to the runner, not to a library.
const RUNNER: [&str; 4] = ["clap", "toml", "anyhow", "indicatif"];

/// One crate of the project and what its manifest imports, optional or not (tests aside).
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) imports: Vec<String>,
}

impl Manifest {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), imports: imports(text) }
    }
}

/// What the manifests of `crates/*` and `xtask` break.
pub(crate) fn check(manifests: &[Manifest]) -> Vec<Finding> {
    let is_ours = |name: &str| manifests.iter().any(|manifest| manifest.name == name);
    let mut findings = Vec::new();
    for Manifest { name, imports } in manifests {
        for import in imports {
            let import = import.as_str();
            let forbidden = match name.as_str() {
                "itm-run" => false,
                "xtask" => is_ours(import) || is_framework(import),
                "itm-kernels" => is_ours(import) || RUNNER.contains(&import),
                "itm-core" => {
                    (is_ours(import) && import != "itm-kernels") || RUNNER.contains(&import)
                }
                _method => {
                    let method_or_runner = is_ours(import) && !SHARED[..2].contains(&import);
                    method_or_runner || RUNNER.contains(&import)
                }
            };
            if forbidden {
                findings.push(Finding::error(name, format!("must not import {import}")));
            }
        }
    }
    findings
}

/// What `cargo tree` shows: no framework behind the plain halves and xtask.
pub(crate) fn check_trees(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (package, features) in
        [("itm-core", ""), ("itm-core", "cca,images,scenes"), ("itm-kernels", ""), ("xtask", "")]
    {
        let tree = tree(root, package, features)?;
        if let Some(found) =
            tree.lines().filter_map(|l| l.split(' ').next()).find(|n| is_framework(n))
        {
            let place = format!("{package}, features [{features}]");
            findings.push(Finding::error(place, format!("cargo tree shows {found}")));
        }
    }
    Ok(findings)
}

/// Names and versions of everything a package is built from.
fn tree(root: &Path, package: &str, features: &str) -> Result<String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["tree", "--package", package, "--no-default-features", "--features", features])
        .args(["--edges", "normal,build", "--prefix", "none"])
        .output()
        .context("cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree --package {package}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn is_framework(package: &str) -> bool {
    ["burn", "cubecl", "tch"].iter().any(|name| {
        package.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

/// Keys of `[dependencies]`, `[build-dependencies]` and their target-specific forms.
fn imports(manifest: &str) -> Vec<String> {
    let mut imports = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.split(']').next().unwrap_or_default().trim();
            let (section, name) = match header.rsplit_once("dependencies.") {
                Some((section, name)) => (format!("{section}dependencies"), Some(name)),
                None => (header.to_owned(), None),
            };
            inside = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
            if inside {
                imports.extend(name.map(str::to_owned));
            }
            inside &= name.is_none();
        } else if inside && !line.starts_with('#') {
            let key = line.split(['=', '.']).next().unwrap_or_default().trim();
            imports.extend((!key.is_empty()).then(|| key.to_owned()));
        }
    }
    imports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_read_from_every_form() {
        let manifest = r#"
            [package]
            name = "a"
            [dependencies]
            # comment = "1"
            burn = { workspace = true, optional = true }
            serde.workspace = true
            [dependencies.rand]
            version = "1"
            [target.'cfg(unix)'.dependencies]
            libc = "0.2"
            [dev-dependencies]
            proptest.workspace = true
            [lints]
            workspace = true
        "#;
        assert_eq!(imports(manifest), ["burn", "serde", "rand", "libc"]);
    }

    #[test]
    fn each_arrow_that_must_not_be_is_found() {
        let project = |extra: (&str, &str)| {
            let names = ["itm-core", "itm-kernels", "itm-run", "fne", "hubness", "xtask"];
            let manifest = |name: &str| {
                let import = if name == extra.0 { extra.1 } else { "serde" };
                Manifest::new(name, &format!("[dependencies]\n{import} = \"1\"\n"))
            };
            check(&names.map(manifest)).len()
        };
        for allowed in [
            ("fne", "itm-core"),
            ("fne", "itm-kernels"),
            ("fne", "burn"),
            ("itm-core", "itm-kernels"),
            ("itm-run", "fne"),
            ("itm-run", "clap"),
            ("xtask", "clap"),
        ] {
            assert_eq!(project(allowed), 0, "{allowed:?}");
        }
        for forbidden in [
            ("fne", "hubness"),
            ("fne", "itm-run"),
            ("fne", "anyhow"),
            ("itm-core", "fne"),
            ("itm-core", "toml"),
            ("itm-kernels", "itm-core"),
            ("xtask", "burn"),
            ("xtask", "itm-core"),
        ] {
            assert_eq!(project(forbidden), 1, "{forbidden:?}");
        }
    }

    #[test]
    fn a_framework_is_known_by_its_name() {
        assert!(["burn", "burn-tensor", "cubecl-wgpu", "tch"].into_iter().all(is_framework));
        assert!(!["burner", "gemm", "torch", "tchar"].into_iter().any(is_framework));
    }
}

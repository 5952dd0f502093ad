//! `cargo xtask tidy`: rules of this repository that no compiler checks.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::manifest::Manifest;
use crate::modules::Files;
use crate::rules::{self, Severity};
use crate::{arrows, budget, circles, seams, type_names};

/// Prints one line per finding. The exit code is 1 if a finding is an error.
pub(crate) fn run() -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no workspace")?;
    let files = files(root)?;
    let mut findings = Vec::new();
    let (mut manifests, mut configs) = (Vec::new(), Vec::new());
    let (mut readme, mut budgets) = (String::new(), String::new());
    let mut sources = Files::new();
    for path in &files {
        let Ok(bytes) = fs::read(root.join(path)) else { continue }; // deleted, not yet committed
        findings.extend(rules::size(path, bytes.len()));
        let Ok(text) = String::from_utf8(bytes) else { continue }; // a picture
        findings.extend(rules::check(path, &text));
        match path.split('/').collect::<Vec<_>>()[..] {
            ["crates", name, "Cargo.toml"] | [name @ "xtask", "Cargo.toml"] => {
                manifests.push(Manifest::new(name, &text).with_context(|| path.clone())?);
            }
            ["configs", name] if name.ends_with(".toml") => configs.push(path.as_str()),
            ["README.md"] => readme = text,
            _ if path == budget::FILE => budgets = text,
            _ if path.ends_with(".rs") => _ = sources.insert(path.clone(), text),
            _ => {}
        }
    }
    let folders: Vec<_> = manifests.iter().map(Manifest::folder).collect();
    for folder in &folders {
        findings.extend(circles::check(&sources, folder));
        findings.extend(budget::orphans(&sources, folder));
    }
    findings.extend(type_names::check(&sources, folders.iter().map(String::as_str)));
    findings.extend(seams::check(&sources));
    findings.extend(rules::configs_are_named(&configs, &readme));
    let sizes = budget::sizes(&sources);
    findings.extend(budget::check(&sizes, &budgets, &committed(root, budget::FILE)?));
    findings.extend(arrows::check(&manifests));
    findings.extend(arrows::check_trees(root)?);
    findings.extend(arrows::check_reuse(root)?);

    for (name, size) in &sizes {
        eprintln!("{name}: {} lines of code, {} public items", size.lines, size.public);
    }
    for finding in &findings {
        let level = if finding.level == Severity::Error { "error" } else { "warning" };
        eprintln!("{level}: {}: {}", finding.place, finding.message);
    }
    let errors = findings.iter().filter(|finding| finding.level == Severity::Error).count();
    eprintln!("tidy: {} files, {} crates, {errors} errors", files.len(), manifests.len());
    Ok(ExitCode::from(u8::from(errors > 0)))
}

/// The text of a file in the last commit; empty if that commit has no such file.
fn committed(root: &Path, path: &str) -> Result<String> {
    let show = format!("HEAD:{path}");
    let output =
        Command::new("git").current_dir(root).args(["show", &show]).output().context("git")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Tracked files, and untracked files that git does not ignore.
fn files(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("git")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = String::from_utf8(output.stdout).context("git ls-files: a name is not UTF-8")?;
    Ok(names.split_terminator('\0').map(str::to_owned).collect())
}

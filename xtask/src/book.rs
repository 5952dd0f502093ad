//! `cargo xtask book`: types every command of the book's pages, in an empty folder, on a small world.
//!
//! The book has one page per crate, `docs/<crate>.md`. Its commands run exactly as written, but beside a small copy of `configs`:
//! few images, one epoch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

use crate::pages::{Step, steps};
use crate::reproduce::cargo;
use crate::{Task, others};

/// Which pages.
#[derive(Debug, clap::Args)]
pub(crate) struct Book {
    /// Only the pages of these crates.
    pages: Vec<String>,
}

/// Binaries that the commands call: package, features, name.
const BINARIES: [(&str, &[&str], &str); 3] = [
    ("itm-run", &["--no-default-features", "--features", "cpu,methods,negatives"], "itm"),
    ("tags-dc", &["--features", "cli"], "tags-dc"),
    ("hubness", &["--features", "cli"], "hubness"),
];

/// Images of the small world, by split.
const IMAGES: [(&str, usize); 3] = [("train", 300), ("val", 60), ("test", 60)];

impl Book {
    /// Runs the pages. The first command that fails ends the run, with one line.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no workspace")?;
        let pages = self.pages(root)?;
        for (package, features, name) in BINARIES {
            let mut build = cargo();
            build.args(["build", "--package", package, "--bin", name]).args(features);
            ensure!(build.status().context("cargo")?.success(), "{name} cannot be built");
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        let binaries = root.join(target).join("debug");
        for page in pages {
            let folder = std::env::temp_dir().join(format!("itm-book-{}", std::process::id()));
            fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
            small_configs(&root.join("configs"), &folder.join("configs"))?;
            let done = type_all(root, &page, &folder, &binaries);
            fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
            done?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Pages, as paths from the root. By default the page of every crate that has one.
    fn pages(&self, root: &Path) -> Result<Vec<PathBuf>> {
        let page = |name: &str| PathBuf::from(format!("docs/{name}.md"));
        let mut pages: Vec<_> = self.pages.iter().map(|name| page(name)).collect();
        if pages.is_empty() {
            for entry in fs::read_dir(root.join("crates")).context("crates")? {
                pages.push(page(&entry?.file_name().to_string_lossy()));
            }
            pages.retain(|page| root.join(page).is_file());
            pages.sort();
        }
        Ok(pages)
    }
}

/// Does everything that a page tells its reader to do.
#[allow(clippy::print_stdout)] // the times of the commands are the result
fn type_all(root: &Path, page: &Path, folder: &Path, binaries: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join(page)).with_context(|| page.display().to_string())?;
    for step in steps(&text, true) {
        match step {
            Step::File { name, text } => {
                fs::write(folder.join(&name), text)
                    .with_context(|| format!("{}: {name}", page.display()))?;
            }
            Step::Command { line, words } => {
                let place = format!("{}:{line}", page.display());
                let start = Instant::now();
                let Some(mut command) = command(&words, root, folder, binaries) else {
                    println!("{place}: {}: built", words.join(" "));
                    continue;
                };
                let output = command.output().with_context(|| format!("{place}: {}", words[0]))?;
                if !output.status.success() {
                    let said = String::from_utf8_lossy(&output.stderr);
                    let last =
                        said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                    bail!("{place}: `{}` failed: {last}", words.join(" "));
                }
                println!("{place}: {}: {:.1} s", words.join(" "), start.elapsed().as_secs_f64());
            }
        }
    }
    Ok(())
}

/// How a line is run. A command that `cargo xtask` would pass on goes directly to the binary, in `folder`. Other lines of cargo run in
/// the repository. `None` for an installation, because the binary is already built.
fn command(words: &[String], root: &Path, folder: &Path, binaries: &Path) -> Option<Command> {
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let call = |mut command: Command, rest: &[&str], at: &Path| {
        command.args(rest).current_dir(at);
        command
    };
    let built = |name: &str, rest: &[&str]| call(Command::new(binaries.join(name)), rest, folder);
    Some(match words[..] {
        ["cargo", "install", ..] => return None,
        ["cargo", "xtask", name, ..] if handed_on(&words[1..]) => {
            built(others::package(name).unwrap_or("itm"), &words[2..])
        }
        ["cargo", ref rest @ ..] => call(cargo(), rest, root),
        [name, ref rest @ ..] if BINARIES.iter().any(|(_, _, binary)| *binary == name) => {
            built(name, rest)
        }
        [name, ref rest @ ..] => call(Command::new(name), rest, folder),
        [] => return None,
    })
}

/// Whether xtask passes a command on.
fn handed_on(words: &[&str]) -> bool {
    matches!(Task::try_parse_from(words), Ok(Task::Other(_)))
}

/// A copy of the configurations that trains in seconds: a small world, one epoch, few images ranked pair by pair.
fn small_configs(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => small_configs(&path, &copy)?,
            false => fs::write(copy, small(&fs::read_to_string(&path)?))?,
        }
    }
    Ok(())
}

fn small(config: &str) -> String {
    let mut section = "";
    let mut out = String::new();
    for line in config.lines() {
        if line.starts_with('[') {
            section = line.split(']').next().unwrap_or_default().trim_start_matches('[');
        }
        let key = line.split('=').next().unwrap_or_default().trim();
        let images = IMAGES.iter().find(|(split, _)| section == "target.scenes" && *split == key);
        out += &match (section, key, images) {
            (_, _, Some((split, images))) => format!("{split} = {images}"),
            ("target", "images", _) => "images = 10".to_owned(),
            ("target", "protocol", _) => "protocol = \"full\"".to_owned(), // any number of images
            (_, "epochs" | "train.epochs", _) if !line.contains("epochs = 0") => {
                format!("{key} = 1")
            }
            _ => line.to_owned(),
        };
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_is_made_small() {
        let config = "\
[target]
images = 100  # of them
protocol = \"flickr_1k\"
[target.scenes]
train = 3000
seed = 0
[train]
train = 7
epochs = 12 # many
[row.\"w/o Intra\"]
train.epochs = 0
[row.long]
train.epochs = 3
";
        let want = "\
[target]
images = 10
protocol = \"full\"
[target.scenes]
train = 300
seed = 0
[train]
train = 7
epochs = 1
[row.\"w/o Intra\"]
train.epochs = 0
[row.long]
train.epochs = 1
";
        assert_eq!(small(config), want);
    }

    #[test]
    fn a_line_goes_where_cargo_would_send_it() {
        let [root, folder, binaries] = ["root", "folder", "bin"].map(Path::new);
        let sent = |line: &str| {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let command = command(&words, root, folder, binaries)?;
            let place = command.get_current_dir().map(|path| path.display().to_string());
            let mut line =
                vec![place.unwrap_or_default(), command.get_program().to_string_lossy().into()];
            line.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
            Some(line.join(" "))
        };
        let bin = |name: &str| format!("folder {}", binaries.join(name).display());
        for (line, want) in [
            (
                "cargo xtask reproduce fne-scenes --seeds 1",
                bin("itm") + " reproduce fne-scenes --seeds 1",
            ),
            ("cargo xtask negatives --captions a", bin("itm") + " negatives --captions a"),
            ("cargo xtask phrases x", bin("tags-dc") + " phrases x"),
            ("hubness report --images a", bin("hubness") + " report --images a"),
            (
                "cargo xtask tidy",
                format!("root {} xtask tidy", cargo().get_program().to_string_lossy()),
            ),
            ("ls runs", "folder ls runs".to_owned()),
        ] {
            assert_eq!(sent(line), Some(want), "{line}");
        }
        assert_eq!(sent("cargo install --path crates/hubness"), None);
    }
}

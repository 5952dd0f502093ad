//! The folder of a run: its configuration, the log and checkpoints of every row and seed, and at the end the reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use itm_core::files::read_json;
use itm_core::output::{Lock, write_bytes};
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoints;
use crate::disk::file_names;

const IDENTITY: &str = "run.json";
const CONFIG: &str = "config.toml";
/// The locked file of the process that trains, with its number.
const LOCK: &str = "run.lock";

/// What identifies a run. A resumed run must have the same identity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The target that the command names.
    pub target: String,
    /// SHA-256 of the configuration in use.
    pub config_sha256: String,
    /// SHA-256 of the data.
    pub data_sha256: String,
    /// The backend.
    pub backend: String,
    /// The keys of the target that the command line replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
}

impl Identity {
    /// The identity of a run.
    ///
    /// # Errors
    /// If the folder has no identity, or it cannot be read.
    pub fn read(run: &Path) -> Result<Self> {
        read_json(run.join(IDENTITY), "the identity of a run")
    }
}

/// A run directory.
#[derive(Debug, Clone)]
pub(crate) struct RunDir {
    /// The folder.
    pub(crate) path: PathBuf,
    /// What identifies the run.
    pub(crate) identity: Identity,
    /// The lock of a run that this process trains.
    _owner: Option<Arc<Lock>>,
}

impl RunDir {
    /// Makes a new run directory.
    ///
    /// # Errors
    /// If the path already has files, because nothing is ever overwritten; or if another process works there.
    pub(crate) fn create(path: PathBuf, identity: Identity, config: &str) -> Result<Self> {
        let is_new = !path.exists() || is_empty(&path);
        let expected = "a new or empty folder (or `--resume`)";
        Error::unless(is_new, path.display(), expected, "a folder with files")?;
        fs::create_dir_all(&path).map_err(Error::io(&path))?;
        let owner = own(&path)?;
        let expected = "a folder that no other process begins to use";
        Error::unless(is_empty(&path), path.display(), expected, "a run")?;
        // The identity comes first: before it the folder counts as empty, and after it a killed run can be resumed.
        let text = serde_json::to_string_pretty(&identity).expect("only strings");
        write_bytes(&path.join(IDENTITY), text.as_bytes())?;
        write_bytes(&path.join(CONFIG), config.as_bytes())?;
        Ok(Self { path, identity, _owner: Some(owner) })
    }

    /// Opens an interrupted run, to go on with it.
    ///
    /// # Errors
    /// As [`open`](Self::open), and if another process works on the run.
    pub(crate) fn resume(path: PathBuf, identity: Identity, config: &str) -> Result<Self> {
        Identity::read(&path)?;
        let owner = own(&path)?;
        Ok(Self { _owner: Some(owner), ..Self::open(path, identity, config)? })
    }

    /// Opens a run.
    ///
    /// # Errors
    /// If there is no run, or it has another target, configuration, data set or backend.
    pub(crate) fn open(path: PathBuf, identity: Identity, config: &str) -> Result<Self> {
        let file = path.join(IDENTITY);
        let found = Identity::read(&path)?;
        let [set, found_set] = [&identity, &found].map(|identity| identity.set.join(" "));
        for (key, expected, got) in [
            ("target", &identity.target, &found.target),
            ("set", &set, &found_set),
            ("config_sha256", &identity.config_sha256, &found.config_sha256),
            ("data_sha256", &identity.data_sha256, &found.data_sha256),
            ("backend", &identity.backend, &found.backend),
        ] {
            let place = format_args!("{}, {key}", file.display());
            let [wanted, found] = [expected, got].map(|value| format!("`{value}`"));
            Error::unless(expected == got, place, wanted, found)?;
        }
        if !path.join(CONFIG).exists() {
            write_bytes(&path.join(CONFIG), config.as_bytes())?; // its hash is the same
        }
        Ok(Self { path, identity, _owner: None })
    }

    /// The folder of a row and seed, which may not exist.
    pub(crate) fn folder(&self, row: &str, seed: u64) -> PathBuf {
        self.path.join("rows").join(slug(row)).join(format!("seed-{seed}"))
    }

    /// Log file and checkpoints of a row and seed.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(crate) fn row(&self, row: &str, seed: u64) -> Result<(PathBuf, Checkpoints)> {
        let folder = self.folder(row, seed);
        let Identity { config_sha256, data_sha256, backend, .. } = &self.identity;
        let [config, data] = [config_sha256, data_sha256].map(|hash| short(hash));
        let identity = format!("{row}, seed {seed}, config {config}, data {data}, {backend}");
        let checkpoints = Checkpoints::new(folder.join("checkpoints"), identity)?;
        Ok((folder.join("log.jsonl"), checkpoints))
    }
}

/// `runs/<target>`, or `runs/<target>-<number>` if that is taken.
pub(crate) fn new_path(target: &str) -> PathBuf {
    let path = |n: usize| match n {
        1 => PathBuf::from("runs").join(target),
        n => PathBuf::from("runs").join(format!("{target}-{n}")),
    };
    let is_free = |p: &PathBuf| !p.exists() || is_empty(p) && !is_owned(p);
    (1..).map(path).find(is_free).expect("some number is free")
}

/// All `runs/<target>[-<number>]`, the newest first.
pub(crate) fn paths(target: &str) -> Vec<PathBuf> {
    let number = |name: &str| match name.strip_prefix(target)? {
        "" => Some(1),
        rest => rest.strip_prefix('-')?.parse::<usize>().ok(),
    };
    let names = file_names(Path::new("runs")).unwrap_or_default().into_iter();
    let mut found: Vec<_> = names.filter_map(|name| Some((number(&name)?, name))).collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, name)| Path::new("runs").join(name)).collect()
}

/// Locks a folder for this process.
///
/// # Errors
/// If another process has locked it, or the file cannot be made.
fn own(path: &Path) -> Result<Arc<Lock>> {
    let expected = "a folder in which no other process trains";
    Lock::take(&path.join(LOCK), path, expected).map(Arc::new)
}

/// Whether a process has locked a folder.
fn is_owned(path: &Path) -> bool {
    Lock::is_taken(&path.join(LOCK))
}

/// Whether a folder is empty, except perhaps for its lock and the unfinished identity of a killed run.
fn is_empty(path: &Path) -> bool {
    let ours = |entry: fs::DirEntry| {
        ["run.json.itm-tmp", LOCK].iter().any(|name| entry.file_name() == *name)
    };
    fs::read_dir(path).is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(ours)))
}

/// The beginning of a hash, long enough to be unique.
pub(crate) fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// A row's name as a folder: `w/o MMM+FNE` is `w-o-mmm-fne`.
pub(crate) fn slug(row: &str) -> String {
    let mut slug = String::new();
    for c in row.chars() {
        if c.is_alphanumeric() {
            slug.extend(c.to_lowercase());
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            target: "fne-scenes".into(),
            config_sha256: "c".repeat(64),
            data_sha256: "d".repeat(64),
            backend: "cpu".into(),
            set: vec![],
        }
    }

    #[test]
    fn nothing_is_overwritten_and_another_run_is_not_resumed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        RunDir::create(path.clone(), identity(), "").unwrap();
        let line = RunDir::create(path.clone(), identity(), "").unwrap_err().to_string();
        assert!(line.contains("run") && line.contains("--resume"), "{line}");
        fs::remove_file(path.join(CONFIG)).unwrap(); // killed before it was written
        RunDir::open(path.clone(), identity(), "text").unwrap();
        assert_eq!(fs::read_to_string(path.join(CONFIG)).unwrap(), "text");
        let other = Identity { data_sha256: "e".repeat(64), ..identity() };
        let line = RunDir::open(path.clone(), other, "").unwrap_err().to_string();
        assert!(line.contains("run.json, data_sha256"), "{line}");
        let other = Identity { set: vec!["train.epochs=2".into()], ..identity() };
        let line = RunDir::open(path.clone(), other, "").unwrap_err().to_string();
        assert!(line.ends_with("run.json, set: expected `train.epochs=2`, got ``"), "{line}");
        let half = dir.path().join("half");
        fs::create_dir(&half).unwrap();
        fs::write(half.join("run.json.itm-tmp"), "{").unwrap(); // killed while the identity was written
        RunDir::create(half, identity(), "").unwrap();
    }

    /// A lock belongs to an open file, so a second file of one process meets it as another process would.
    #[test]
    fn a_run_has_one_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let first = RunDir::create(path.clone(), identity(), "").unwrap();
        let line = RunDir::resume(path.clone(), identity(), "").unwrap_err().to_string();
        let want = format!(
            "expected a folder in which no other process trains, got process {}",
            std::process::id()
        );
        assert!(line.ends_with(&want), "{line}");
        RunDir::open(path.clone(), identity(), "").unwrap(); // reading is free
        drop(first);
        let second = RunDir::resume(path.clone(), identity(), "").unwrap();
        assert!(RunDir::resume(path, identity(), "").is_err());
        drop(second);

        let begun = dir.path().join("begun");
        fs::create_dir(&begun).unwrap();
        let other = own(&begun).unwrap();
        assert!(is_empty(&begun) && is_owned(&begun));
        assert!(RunDir::create(begun.clone(), identity(), "").is_err());
        drop(other);
        assert!(!is_owned(&begun));
        RunDir::create(begun, identity(), "").unwrap();
    }

    #[test]
    fn rows_become_folders() {
        assert_eq!(slug("w/o MMM+FNE"), "w-o-mmm-fne");
        assert_eq!(slug("Full"), "full");
    }
}

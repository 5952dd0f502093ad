//! Checkpoints that are either whole or not there.
//!
//! A checkpoint is a folder `step-<number>` with the method's files and a manifest of their hashes. It is written under a
//! temporary name, every file and the folder synced, then renamed and the parent synced: a kill leaves the last one as it was.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use itm_core::data::sha256_hex;
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

const MANIFEST: &str = "manifest.json";

/// What a checkpoint says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest<P> {
    /// What was trained: target, row, seed, hashes of configuration and data. Another one is not resumed from.
    pub identity: String,
    /// Where training stood.
    pub progress: P,
    /// SHA-256 of each of the method's files.
    pub files: BTreeMap<String, String>,
}

/// The checkpoints of one run.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    folder: PathBuf,
    identity: String,
}

impl Checkpoints {
    /// The checkpoints below a folder, for a run of this identity.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn new(folder: PathBuf, identity: String) -> Result<Self> {
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        Ok(Self { folder, identity })
    }

    /// Writes a checkpoint, `fill` writing the method's files into the folder that it is given; returns its path.
    ///
    /// # Errors
    /// If anything cannot be written (a full disk): earlier checkpoints are as they were.
    pub fn write<P: Serialize>(
        &self,
        name: &str,
        progress: P,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let temporary = self.folder.join(format!("{name}.tmp"));
        let written = self.write_folder(&temporary, progress, fill);
        if written.is_err() {
            _ = fs::remove_dir_all(&temporary); // the first error is the one to tell
        }
        written?;
        let last = self.folder.join(name);
        if last.exists() {
            fs::remove_dir_all(&last).map_err(Error::io(&last))?;
        }
        fs::rename(&temporary, &last).map_err(Error::io(&last))?;
        sync(&self.folder)?;
        Ok(last)
    }

    fn write_folder<P: Serialize>(
        &self,
        folder: &Path,
        progress: P,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(Error::io(folder))?;
        }
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        fill(folder)?;
        let mut files = BTreeMap::new();
        for name in file_names(folder)? {
            let path = folder.join(&name);
            files.insert(name, sha256_of(&path)?);
            sync(&path)?;
        }
        let manifest = Manifest { identity: self.identity.clone(), progress, files };
        let path = folder.join(MANIFEST);
        let text = serde_json::to_string_pretty(&manifest)
            .map_err(|e| Error::invalid(path.display(), "a manifest", e))?;
        fs::write(&path, text).map_err(Error::io(&path))?;
        sync(&path)?;
        sync(folder)
    }

    /// Removes every `step-…` checkpoint but the newest `keep` and the best, and what a kill has left half written.
    ///
    /// # Errors
    /// If a folder cannot be removed.
    pub fn prune(&self, keep: usize, best: Option<u64>) -> Result<()> {
        let names = file_names(&self.folder)?;
        let steps = steps(&names);
        let old = steps.iter().take(steps.len().saturating_sub(keep));
        let old = old.filter(|&&(step, _)| Some(step) != best).map(|&(_, name)| name.as_str());
        for name in old.chain(names.iter().map(String::as_str).filter(|n| n.ends_with(".tmp"))) {
            let path = self.folder.join(name);
            fs::remove_dir_all(&path).map_err(Error::io(&path))?;
        }
        Ok(())
    }

    /// The newest checkpoint, checked: its folder and where training stood.
    ///
    /// # Errors
    /// If it is damaged or belongs to another run: the file and what is wrong with it.
    pub fn latest<P: for<'a> Deserialize<'a>>(&self) -> Result<Option<(PathBuf, P)>> {
        let names = file_names(&self.folder)?;
        let Some(&(_, name)) = steps(&names).last() else { return Ok(None) };
        self.read(name).map(Some)
    }

    /// A checkpoint by name, checked.
    ///
    /// # Errors
    /// As [`latest`](Self::latest), and if it is not there.
    pub fn read<P: for<'a> Deserialize<'a>>(&self, name: &str) -> Result<(PathBuf, P)> {
        let folder = self.folder.join(name);
        let path = folder.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
        let manifest: Manifest<P> = serde_json::from_str(&text)
            .map_err(|e| Error::invalid(path.display(), "a checkpoint's manifest", e))?;
        if manifest.identity != self.identity {
            let expected = format!("a checkpoint of `{}`", self.identity);
            return Err(Error::invalid(
                path.display(),
                expected,
                format!("`{}`", manifest.identity),
            ));
        }
        for (name, expected) in &manifest.files {
            let path = folder.join(name);
            let got = sha256_of(&path)?;
            if got != *expected {
                let size = fs::metadata(&path).map_or(0, |m| m.len());
                let got = format!("{got} ({size} bytes): the file is damaged");
                return Err(Error::invalid(path.display(), format!("SHA-256 {expected}"), got));
            }
        }
        Ok((folder, manifest.progress))
    }
}

/// Writes a file so that a kill leaves the old one or the new one.
///
/// # Errors
/// If it cannot be written.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let written =
        fs::write(&temporary, contents).map_err(Error::io(path)).and_then(|()| sync(&temporary));
    if written.is_err() {
        _ = fs::remove_file(&temporary);
    }
    written?;
    fs::rename(&temporary, path).map_err(Error::io(path))?;
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => sync(Path::new(".")), // a bare name
        Some(folder) => sync(folder),
        None => Ok(()),
    }
}

fn steps(names: &[String]) -> Vec<(u64, &String)> {
    let number = |n: &str| n.strip_prefix("step-")?.parse::<u64>().ok();
    let mut steps: Vec<_> = names.iter().filter_map(|n| Some((number(n)?, n))).collect();
    steps.sort();
    steps
}

fn file_names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).map_err(Error::io(folder))?;
    let mut names: Vec<_> =
        entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

fn sha256_of(path: &Path) -> Result<String> {
    fs::read(path).map(|bytes| sha256_hex(&bytes)).map_err(Error::io(path))
}

fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|f| f.sync_all()).map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoints(folder: &Path) -> Checkpoints {
        Checkpoints::new(folder.to_path_buf(), "toy/Full/0".into()).unwrap()
    }

    fn write(c: &Checkpoints, step: u64) -> PathBuf {
        let fill =
            |dir: &Path| fs::write(dir.join("model"), vec![step as u8; 64]).map_err(Error::io(dir));
        c.write(&format!("step-{step}"), step, fill).unwrap()
    }

    #[test]
    fn the_newest_is_found_by_number_and_the_oldest_pruned() {
        let dir = tempfile::tempdir().unwrap();
        let c = checkpoints(dir.path());
        assert_eq!(c.latest::<u64>().unwrap(), None);
        for step in [9, 10, 100] {
            write(&c, step);
        }
        c.prune(2, None).unwrap();
        assert_eq!(file_names(dir.path()).unwrap(), ["step-10", "step-100"]);
        c.prune(1, Some(10)).unwrap();
        assert_eq!(file_names(dir.path()).unwrap(), ["step-10", "step-100"]);
        assert_eq!(c.latest::<u64>().unwrap().unwrap().1, 100);
    }

    #[test]
    fn what_a_kill_left_half_written_is_not_seen_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let c = checkpoints(dir.path());
        write(&c, 5);
        fs::create_dir(dir.path().join("step-6.tmp")).unwrap();
        assert_eq!(c.latest::<u64>().unwrap().unwrap().1, 5);
        c.prune(2, None).unwrap();
        assert_eq!(file_names(dir.path()).unwrap(), ["step-5"]);
    }

    #[test]
    fn a_failed_write_leaves_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let c = checkpoints(dir.path());
        write(&c, 5);
        let full = |_: &Path| Err(Error::invalid("model", "space on the disk", "none"));
        assert!(c.write("step-6", 6u64, full).is_err());
        assert_eq!(file_names(dir.path()).unwrap(), ["step-5"]);
    }

    #[test]
    fn half_a_file_another_run_and_no_manifest_are_one_line_each() {
        let dir = tempfile::tempdir().unwrap();
        let c = checkpoints(dir.path());
        let path = write(&c, 5);
        let other = Checkpoints::new(dir.path().to_path_buf(), "toy/Full/1".into()).unwrap();
        let line = other.latest::<u64>().unwrap_err().to_string();
        assert!(line.contains("toy/Full/1") && line.contains("toy/Full/0"), "{line}");
        fs::write(path.join("model"), [5; 32]).unwrap();
        let line = c.latest::<u64>().unwrap_err().to_string();
        assert!(
            line.contains("model") && line.contains("32 bytes") && line.contains("damaged"),
            "{line}"
        );
        fs::write(path.join(MANIFEST), "{\"identity\":").unwrap();
        let line = c.latest::<u64>().unwrap_err().to_string();
        assert!(line.contains(MANIFEST) && line.lines().count() == 1, "{line}");
    }

    #[test]
    fn an_atomic_write_replaces_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(file_names(dir.path()).unwrap(), ["report.json"]);
    }
}

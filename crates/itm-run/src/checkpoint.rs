//! Checkpoints that are either whole or not there.
//!
//! A checkpoint is a folder `step-<number>` with the method's files, a manifest of their hashes, and the manifest's hash.
//! The folder is written under a temporary name, and every file and the folder are synced. Then the folder is renamed, and
//! its parent is synced. Only then are older checkpoints removed, so a kill or a full disk leaves the last checkpoint as it
//! was. Two checkpoints are kept: if the disk damages the newest, the run loses some steps, but not everything.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use itm_core::data::sha256_hex;
use itm_core::files::{self, LARGEST_TEXT};
use itm_core::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, Effect, SystemDisk, apply, file_names, make_folders, write_file};

const MANIFEST: &str = "manifest.json";
/// Hash of the manifest, as `sha256sum` writes and checks it.
const MANIFEST_HASH: &str = "manifest.sha256";

/// The manifest of a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointManifest<P> {
    /// What was trained: row, seed, hashes of configuration and data, backend. No other training may resume from it.
    pub identity: String,
    /// The progress of the training.
    pub progress: P,
    /// SHA-256 of each of the method's files.
    pub files: BTreeMap<String, String>,
}

/// The progress of a training, which may need another checkpoint besides its own.
pub(crate) trait Progress: Serialize + DeserializeOwned {
    /// The step of the other checkpoint (the best so far).
    fn needs(&self) -> Option<u64>;
}

/// A whole checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WholeCheckpoint<P> {
    /// Its folder.
    pub folder: PathBuf,
    /// Its step.
    pub step: u64,
    /// The progress of the training.
    pub progress: P,
    /// What is wrong with the newest checkpoint, if this checkpoint is an older one. The line names both.
    pub notice: Option<String>,
}

/// The checkpoints of one run.
#[derive(Debug, Clone)]
pub(crate) struct Checkpoints {
    folder: PathBuf,
    identity: String,
    /// The disk of the checkpoints and of the log.
    pub(crate) disk: Rc<dyn Disk>,
}

/// Why a checkpoint cannot be resumed from.
enum Flaw {
    /// It is cut off, changed or missing: an older checkpoint may still be whole.
    Damaged(Error),
    /// It belongs to another run, or the system refuses to read it: there is no fallback.
    Other(Error),
}

impl Flaw {
    fn error(self) -> Error {
        let (Self::Damaged(error) | Self::Other(error)) = self;
        error
    }

    /// A file that is missing is damage; a missing permission, too many open files or a folder in its place are not.
    fn of_file(error: Error) -> Self {
        let kind = if let Error::Io { source, .. } = &error { Some(source.kind()) } else { None };
        if kind == Some(ErrorKind::NotFound) { Self::Damaged(error) } else { Self::Other(error) }
    }
}

impl Checkpoints {
    /// The checkpoints below a folder, for a run of this identity.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(crate) fn new(folder: PathBuf, identity: String) -> Result<Self> {
        Self::on(Rc::new(SystemDisk), folder, identity)
    }

    /// [`Checkpoints::new`] on another disk.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(crate) fn on(disk: Rc<dyn Disk>, folder: PathBuf, identity: String) -> Result<Self> {
        make_folders(&*disk, &folder)?;
        Ok(Self { folder, identity, disk })
    }

    /// Writes the checkpoint of a step and returns its path. `fill` writes the method's files by the function that it gets; their names may
    /// begin with a folder.
    ///
    /// # Errors
    /// If anything cannot be written (a full disk). Earlier checkpoints stay as they were.
    pub(crate) fn write<P: Progress>(
        &self,
        step: u64,
        progress: &P,
        fill: impl FnOnce(&mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<PathBuf> {
        let disk = &*self.disk;
        let last = self.folder.join(format!("step-{step}"));
        let [temporary, old] = ["tmp", "old.tmp"].map(|end| last.with_extension(end));
        let written = self.write_folder(&temporary, progress, fill).and_then(|()| {
            if last.exists() {
                self.remove_if_there(&old)?;
                apply(disk, &last, Effect::Rename(&old))?; // never half a checkpoint under its name
            }
            apply(disk, &temporary, Effect::Rename(&last))
        });
        if written.is_err() {
            // Restores the old state; the first error is reported.
            _ = self.remove_if_there(&temporary);
            if old.exists() && !last.exists() {
                _ = apply(disk, &old, Effect::Rename(&last));
            }
        }
        written?;
        apply(disk, &self.folder, Effect::SyncFolder)?;
        self.remove_if_there(&old)?;
        Ok(last)
    }

    fn write_folder<P: Progress>(
        &self,
        folder: &Path,
        progress: &P,
        fill: impl FnOnce(&mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let disk = &*self.disk;
        self.remove_if_there(folder)?;
        apply(disk, folder, Effect::MakeFolder)?;
        let mut files = BTreeMap::new();
        fill(&mut |name: &str, contents: &[u8]| {
            let path = folder.join(name);
            let inside = path.parent().filter(|parent| *parent != folder);
            inside.map_or(Ok(()), |folder| make_folders(disk, folder))?;
            write_file(disk, &path, contents)?;
            inside.map_or(Ok(()), |folder| apply(disk, folder, Effect::SyncFolder))?;
            files.insert(name.to_owned(), sha256_hex(contents));
            Ok(())
        })?;
        let manifest = CheckpointManifest { identity: self.identity.clone(), progress, files };
        let path = folder.join(MANIFEST);
        let text = serde_json::to_string(&manifest)
            .map_err(|e| Error::invalid(path.display(), "a manifest", e))?;
        write_file(disk, &path, text.as_bytes())?;
        write_file(disk, &folder.join(MANIFEST_HASH), hash_line(&text).as_bytes())?;
        apply(disk, folder, Effect::SyncFolder)
    }

    fn remove_if_there(&self, path: &Path) -> Result<()> {
        if path.exists() { apply(&*self.disk, path, Effect::Remove) } else { Ok(()) }
    }

    /// Removes what a run at `step` does not need. It keeps the newest `keep` checkpoints up to `step`, and the checkpoints
    /// that these need. It removes older checkpoints, newer checkpoints (they are damaged, or the run would have resumed from
    /// them), and what a kill has left half written.
    ///
    /// # Errors
    /// If a folder cannot be removed.
    pub(crate) fn prune<P: Progress>(&self, step: u64, keep: usize) -> Result<()> {
        let names = file_names(&self.folder)?;
        let steps = steps(&names);
        let mut kept: Vec<u64> =
            steps.iter().rev().map(|&(s, _)| s).filter(|&s| s <= step).collect();
        kept.truncate(keep);
        // A checkpoint without a readable manifest needs nothing, because no run can resume from it.
        let needed = |&step: &u64| self.manifest::<P>(step).ok()?.progress.needs();
        kept.extend(kept.iter().filter_map(needed).collect::<Vec<_>>());
        let old = steps.iter().filter(|(step, _)| !kept.contains(step)).map(|&(_, name)| name);
        for name in old.chain(names.iter().filter(|name| name.ends_with(".tmp"))) {
            apply(&*self.disk, &self.folder.join(name), Effect::Remove)?;
        }
        Ok(())
    }

    /// The newest whole checkpoint. A checkpoint is whole only if the checkpoint that it needs is whole too.
    ///
    /// # Errors
    /// If the newest belongs to another run or cannot be read, or if there are checkpoints and none is whole. The error names
    /// the file and the fault.
    pub(crate) fn latest<P: Progress>(&self) -> Result<Option<WholeCheckpoint<P>>> {
        let names = file_names(&self.folder)?;
        let mut damage: Option<Error> = None;
        for &(step, _) in steps(&names).iter().rev() {
            match self.whole::<P>(step) {
                Ok(mut found) => {
                    let on = |e| format!("{e}; going on from {}", found.folder.display());
                    found.notice = damage.map(on);
                    return Ok(Some(found));
                }
                Err(Flaw::Other(error)) => return Err(error),
                Err(Flaw::Damaged(error)) => _ = damage.get_or_insert(error),
            }
        }
        damage.map_or(Ok(None), Err)
    }

    /// The newest checkpoint, without a fallback to an older one.
    ///
    /// # Errors
    /// If it is damaged or of another run. The error names the file and the fault.
    pub(crate) fn newest<P: Progress>(&self) -> Result<Option<WholeCheckpoint<P>>> {
        let names = file_names(&self.folder)?;
        let Some(&(step, _)) = steps(&names).last() else { return Ok(None) };
        self.whole(step).map(Some).map_err(Flaw::error)
    }

    /// The checkpoint of a step, checked.
    ///
    /// # Errors
    /// If it is missing, damaged or of another run. The error names the file and the fault.
    pub(crate) fn read<P: Progress>(&self, step: u64) -> Result<WholeCheckpoint<P>> {
        self.check(step).map_err(Flaw::error)
    }

    fn whole<P: Progress>(&self, step: u64) -> Result<WholeCheckpoint<P>, Flaw> {
        let found = self.check::<P>(step)?;
        if let Some(other) = found.progress.needs().filter(|&other| other != step) {
            self.check::<P>(other)?;
        }
        Ok(found)
    }

    fn check<P: Progress>(&self, step: u64) -> Result<WholeCheckpoint<P>, Flaw> {
        let CheckpointManifest { identity, progress, files } = self.manifest(step)?;
        let folder = self.folder.join(format!("step-{step}"));
        if identity != self.identity {
            let expected = format!("a checkpoint of `{}`", self.identity);
            let (place, got) = (folder.join(MANIFEST), format!("`{identity}`"));
            return Err(Flaw::Other(Error::invalid(place.display(), expected, got)));
        }
        for (name, expected) in &files {
            let place = format!("{}, files", folder.join(MANIFEST).display());
            files::check_below(&place, name).map_err(Flaw::Other)?;
            let path = folder.join(name);
            let bytes = files::read(&path, u64::MAX).map_err(Flaw::of_file)?;
            same_hash(&path, &bytes, expected)?;
        }
        Ok(WholeCheckpoint { folder, step, progress, notice: None })
    }

    fn manifest<P: Progress>(&self, step: u64) -> Result<CheckpointManifest<P>, Flaw> {
        let folder = self.folder.join(format!("step-{step}"));
        let [path, hash] = [MANIFEST, MANIFEST_HASH].map(|name| folder.join(name));
        let text = text_of(&path)?;
        let line = text_of(&hash)?;
        if line != hash_line(&text) {
            let expected = line.split(' ').next().unwrap_or_default();
            same_hash(&path, text.as_bytes(), expected)?;
            let error = Error::invalid(hash.display(), "a line of `sha256sum`", "another");
            return Err(Flaw::Damaged(error));
        }
        serde_json::from_str(&text).map_err(|e| {
            Flaw::Damaged(Error::invalid(path.display(), "a checkpoint's manifest", e))
        })
    }
}

/// SHA-256 of a checkpoint's manifest, which holds the SHA-256 of every file of the checkpoint.
///
/// # Errors
/// If the manifest cannot be read.
pub(crate) fn hash(folder: &Path) -> Result<String> {
    let path = folder.join(MANIFEST);
    Ok(sha256_hex(&files::read(&path, LARGEST_TEXT)?))
}

/// A text; what is not UTF-8 is damage.
fn text_of(path: &Path) -> Result<String, Flaw> {
    let bytes = files::read(path, LARGEST_TEXT).map_err(Flaw::of_file)?;
    String::from_utf8(bytes).map_err(|e| Flaw::Damaged(Error::invalid(path.display(), "UTF-8", e)))
}

fn hash_line(manifest: &str) -> String {
    format!("{}  {MANIFEST}\n", sha256_hex(manifest.as_bytes()))
}

fn same_hash(path: &Path, bytes: &[u8], expected: &str) -> Result<(), Flaw> {
    let hash = sha256_hex(bytes);
    let got = format_args!("{hash} ({} bytes): the file is damaged", bytes.len());
    let wanted = format_args!("SHA-256 {expected}");
    Error::unless(hash == expected, path.display(), wanted, got).map_err(Flaw::Damaged)
}

fn steps(names: &[String]) -> Vec<(u64, &String)> {
    let number = |n: &str| n.strip_prefix("step-")?.parse::<u64>().ok();
    let mut steps: Vec<_> = names.iter().filter_map(|n| Some((number(n)?, n))).collect();
    steps.sort();
    steps
}

#[cfg(test)]
mod tests;

//! What a run does to the file system, one effect at a time. A test can record effects, make one fail, or end the run at any of them.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use itm_core::files::entries;
use itm_core::output::sync_folder;
use itm_core::{Error, Result};

/// One change of a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect<'a> {
    /// Makes the folder; its parent exists.
    MakeFolder,
    /// Makes the file, or empties an existing file.
    Create,
    /// Writes at the end of the file.
    Append(&'a [u8]),
    /// Cuts the file to this length in bytes.
    Cut(u64),
    /// Makes the contents of the file durable.
    SyncFile,
    /// Makes the names in the folder durable.
    SyncFolder,
    /// Gives the file or folder this path, which is in the same folder.
    Rename(&'a Path),
    /// Removes the file, or the folder with all that is in it.
    Remove,
}

/// Something that carries out effects.
pub(crate) trait Disk: Debug {
    /// Carries out one effect on a file or folder.
    ///
    /// # Errors
    /// The error of the operating system: a full disk, no permission.
    fn apply(&self, path: &Path, effect: Effect<'_>) -> io::Result<()>;
}

/// The disk of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemDisk;

impl Disk for SystemDisk {
    fn apply(&self, path: &Path, effect: Effect<'_>) -> io::Result<()> {
        let behind = || OpenOptions::new().append(true).open(path);
        match effect {
            Effect::MakeFolder => fs::create_dir(path),
            Effect::Create => File::create(path).map(drop),
            Effect::Append(bytes) => behind()?.write_all(bytes),
            Effect::Cut(length) => behind()?.set_len(length),
            Effect::SyncFile => behind()?.sync_all(),
            Effect::SyncFolder => sync_folder(path),
            Effect::Rename(to) => fs::rename(path, to),
            Effect::Remove if path.is_dir() => fs::remove_dir_all(path),
            Effect::Remove => fs::remove_file(path),
        }
    }
}

/// Carries an effect out; an error names the path.
pub(crate) fn apply(disk: &dyn Disk, path: &Path, effect: Effect<'_>) -> Result<()> {
    disk.apply(path, effect).map_err(Error::io(path))
}

/// Bytes handed to the disk at once.
const CHUNK: usize = 1 << 24;

/// Writes a whole file and makes its contents durable. Its name is durable only after the folder is synced.
pub(crate) fn write_file(disk: &dyn Disk, path: &Path, contents: &[u8]) -> Result<()> {
    apply(disk, path, Effect::Create)?;
    contents.chunks(CHUNK).try_for_each(|chunk| apply(disk, path, Effect::Append(chunk)))?;
    apply(disk, path, Effect::SyncFile)
}

/// Makes a folder and its missing parents, durably.
pub(crate) fn make_folders(disk: &dyn Disk, path: &Path) -> Result<()> {
    let there = |path: &&Path| path.as_os_str().is_empty() || path.is_dir();
    let mut missing: Vec<_> = path.ancestors().take_while(|path| !there(path)).collect();
    while let Some(folder) = missing.pop() {
        match disk.apply(folder, Effect::MakeFolder) {
            // Another training of the run was faster.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => (),
            other => other.map_err(Error::io(folder))?,
        }
        sync_parent(disk, folder)?;
    }
    Ok(())
}

/// Makes the name of a file or folder durable.
pub(crate) fn sync_parent(disk: &dyn Disk, path: &Path) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let is_bare = parent.as_os_str().is_empty();
    apply(disk, if is_bare { Path::new(".") } else { parent }, Effect::SyncFolder)
}

/// [`itm_core::output::write_bytes`] on any disk.
pub(crate) fn replace(disk: &dyn Disk, path: &Path, contents: &[u8]) -> Result<()> {
    let temporary = path.with_added_extension("tmp");
    let written = write_file(disk, &temporary, contents)
        .and_then(|()| apply(disk, &temporary, Effect::Rename(path)));
    if written.is_err() {
        _ = apply(disk, &temporary, Effect::Remove); // the first error is reported
    }
    written?;
    sync_parent(disk, path)
}

#[cfg(test)]
pub(crate) mod fakes;

/// The names in a folder, sorted. Names that are not UTF-8 are skipped: no run writes them.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn file_names(folder: &Path) -> Result<Vec<String>> {
    let name = |path: &PathBuf| Some(path.file_name()?.to_str()?.to_owned());
    Ok(entries(folder)?.iter().filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use itm_core::output::write_bytes;

    use super::*;

    #[test]
    fn an_atomic_write_replaces_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        write_bytes(&path, b"old").unwrap();
        write_bytes(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let line = write_bytes(&path.join("below"), b"").unwrap_err().to_string();
        assert!(line.contains("report.json") && line.lines().count() == 1, "{line}");
    }

    #[test]
    fn missing_folders_are_made_from_the_top_and_each_name_is_synced() {
        let dir = tempfile::tempdir().unwrap();
        let disk = fakes::Recorder::new(dir.path());
        let folder = dir.path().join("a/b");
        make_folders(&disk, &folder).unwrap();
        make_folders(&disk, &folder).unwrap(); // there is nothing left to do
        assert!(folder.is_dir());
        assert_eq!(disk.lines(), ["make a", "sync folder .", "make a/b", "sync folder a"]);
    }

    /// Makes each folder just before it carries out the request to make it.
    #[derive(Debug)]
    struct Rival;

    impl Disk for Rival {
        fn apply(&self, path: &Path, effect: Effect<'_>) -> io::Result<()> {
            if effect == Effect::MakeFolder {
                fs::create_dir(path)?;
            }
            SystemDisk.apply(path, effect)
        }
    }

    #[test]
    fn a_folder_that_another_training_has_just_made_will_do() {
        let dir = tempfile::tempdir().unwrap();
        make_folders(&Rival, &dir.path().join("rows/full")).unwrap();
        assert!(dir.path().join("rows/full").is_dir());
        fs::write(dir.path().join("file"), b"").unwrap();
        let line = make_folders(&SystemDisk, &dir.path().join("file/x")).unwrap_err().to_string();
        assert!(line.contains("file"), "{line}");
    }
}

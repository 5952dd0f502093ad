//! Files and folders that appear whole or not at all, each with one writer at a time.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::files::entries;
use crate::{Error, Result};

/// Writes a temporary file in the same folder, `NAME.itm-tmp`, then renames it. A terminal, a pipe or another device is written directly, and
/// is never replaced.
///
/// # Errors
/// If the file cannot be written, is a folder or a link, or another process writes it; and the errors of `fill`. The
/// temporary file is removed then, and what was there stays.
pub fn write<T>(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Result<T>) -> Result<T> {
    if is_device(path) {
        return Ok(filled(File::create(path).map_err(Error::io(path))?, path, fill)?.1);
    }
    let (temporary, file) = beside(path)?;
    let written = filled(file, path, fill).and_then(|(file, done)| {
        let named = file.sync_all().and_then(|()| fs::rename(&temporary, path));
        named.and_then(|()| sync_parent(path)).map(|()| done).map_err(Error::io(path))
    });
    if written.is_err() {
        _ = fs::remove_file(&temporary); // the first error is reported
    }
    written
}

/// [`write()`] of bytes.
///
/// # Errors
/// As [`write()`].
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, |file| file.write_all(bytes).map_err(Error::io(path)))
}

/// Checks that [`write()`] can begin. Called before long work, because its result would otherwise be lost.
///
/// # Errors
/// If the path is a folder or a link, or a file cannot be made there.
pub fn check(path: &Path) -> Result<()> {
    if is_device(path) {
        return Ok(());
    }
    let (temporary, _file) = beside(path)?;
    fs::remove_file(temporary).map_err(Error::io(path))
}

fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The path of the temporary file of `path`, and the empty, locked file.
fn beside(path: &Path) -> Result<(PathBuf, File)> {
    refuse(path)?;
    // A killed process leaves it and the next one empties it, so no file of a user may have such a name.
    let temporary = path.with_added_extension("itm-tmp");
    refuse(&temporary)?;
    let Some(file) = locked(&temporary).map_err(Error::io(path))? else {
        let expected = "a file that no other process writes";
        return Err(Error::invalid(path.display(), expected, "another process that writes it"));
    };
    file.set_len(0).map_err(Error::io(path))?;
    Ok((temporary, file))
}

/// Refuses a path that a rename must not replace.
fn refuse(path: &Path) -> Result<()> {
    // `runs/` and `runs/.` name a folder, also where there is none.
    let ends =
        |name: &OsStr| path.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes());
    let is_file = !path.is_dir() && path.file_name().is_some_and(ends);
    Error::unless(is_file, path.display(), "a file to write", "a folder")?;
    refuse_link(path)
}

/// A rename would replace the link and not what it leads to, and a stranger's link may lead anywhere.
fn refuse_link(path: &Path) -> Result<()> {
    Error::unless(!path.is_symlink(), path.display(), "a name that is no link", "a link")
}

fn filled<T>(
    file: File,
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<T>,
) -> Result<(File, T)> {
    let mut buffer = BufWriter::new(file);
    let done = fill(&mut buffer)?;
    let file = buffer.into_inner().map_err(|error| Error::io(path)(error.into_error()))?;
    Ok((file, done))
}

/// A locked file with the number of its process. The system unlocks it if the process is killed; otherwise it is empty at the
/// end.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Makes a file, if it is missing, and locks it. `place` and `expected` are the words of the error if another process has locked it.
    ///
    /// # Errors
    /// If another process has locked the file, the file cannot be made, or its name is a link.
    pub fn take(name: &Path, place: &Path, expected: &str) -> Result<Self> {
        refuse_link(name)?; // what a stranger's link leads to would be emptied
        let Some(mut file) = locked(name).map_err(Error::io(name))? else {
            let number = fs::read_to_string(name).unwrap_or_default();
            return Err(Error::invalid(place.display(), expected, format!("process {number}")));
        };
        // The number is only for the line that refuses another process: a full disk does not matter.
        _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Self(file))
    }

    /// Whether a process has locked the file.
    pub fn is_taken(name: &Path) -> bool {
        let taken = |file: File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        name.is_file() && File::open(name).is_ok_and(taken)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        _ = self.0.set_len(0);
    }
}

/// A file that this process has locked; `None` if another process has.
fn locked(name: &Path) -> std::io::Result<Option<File>> {
    loop {
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(name)?;
        match file.try_lock() {
            Ok(()) if is_named(&file, name) => return Ok(Some(file)),
            Ok(()) => (), // its last owner has just renamed or removed it
            Err(TryLockError::WouldBlock) => return Ok(None),
            // Some network file systems have no locks.
            Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => {
                return Ok(Some(file));
            }
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// Whether the name still belongs to the open file.
#[cfg(unix)]
fn is_named(file: &File, name: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |found: &fs::Metadata| (found.dev(), found.ino());
    matches!((file.metadata(), name.metadata()), (Ok(a), Ok(b)) if id(&a) == id(&b))
}

/// Other systems keep the name of an open file.
#[cfg(not(unix))]
fn is_named(_: &File, _: &Path) -> bool {
    true
}

/// What may stand at the target of a [`NewFolder`].
#[derive(Debug, Clone, Copy)]
pub enum Existing {
    /// Nothing, or an empty folder. The words say what an error expects: `a new or empty folder`.
    Nothing(&'static str),
    /// A folder of only these files, which the new folder replaces.
    Only(&'static [&'static str]),
}

/// A folder's contents until they are whole. They are written beside the target in a folder whose name ends in `.tmp`, and get
/// their names at once, in [`commit`](Self::commit).
///
/// Another process that writes to the same target is refused. What a killed process left is removed by the next one.
#[derive(Debug)]
pub struct NewFolder {
    target: PathBuf,
    existing: Existing,
    temporary: PathBuf,
    lock: Option<Lock>,
}

/// The names in the temporary folder.
const LOCK: &str = "new-folder.lock";
const NEW: &str = "new";
const OLD: &str = "old";

impl NewFolder {
    /// Begins a folder. Called before long work: whatever would refuse the folder at the end refuses it now.
    ///
    /// # Errors
    /// If the target is a file or a link, holds other than `existing` allows, or another process writes there; if a folder
    /// cannot be made or renamed.
    pub fn begin(target: &Path, existing: Existing) -> Result<Self> {
        let named = target.file_name().is_some();
        Error::unless(named, target.display(), "a folder with a name", "a path without one")?;
        refuse_link(target)?;
        let fits = !target.exists() || target.is_dir();
        Error::unless(fits, target.display(), "a folder", "a file")?;
        let temporary = target.with_added_extension("tmp");
        fs::create_dir_all(&temporary).map_err(Error::io(target))?;
        let names = entries(&temporary)?;
        let own = names.is_empty() || names.contains(&temporary.join(LOCK));
        let expected = "no folder of this name, because a new folder is written there";
        Error::unless(own, temporary.display(), expected, "one with other files")?;
        let expected = "a folder that no other process writes";
        let lock = Lock::take(&temporary.join(LOCK), target, expected)?;
        let folder = Self { target: target.into(), existing, temporary, lock: Some(lock) };
        folder.clear();
        folder.check()?;
        if target.exists() {
            folder.set_aside()?; // a mounted folder cannot be renamed
            folder.put_back().map_err(Error::io(target))?;
        }
        let new = folder.path();
        fs::create_dir(&new).map_err(Error::io(&new))?;
        Ok(folder)
    }

    /// Where the files will be.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Where the files are written.
    pub fn path(&self) -> PathBuf {
        self.temporary.join(NEW)
    }

    /// Makes the files durable and gives them their final names.
    ///
    /// # Errors
    /// If the target holds what it may not, or a file cannot be made durable or renamed. The target is then as it was.
    pub fn commit(self) -> Result<()> {
        let (new, target) = (self.path(), &self.target);
        sync_all(&new)?;
        self.check()?;
        if target.exists() {
            self.set_aside()?;
        }
        if let Err(error) = fs::rename(&new, target) {
            _ = self.put_back(); // the first error is reported
            return Err(Error::io(target)(error));
        }
        sync_parent(target).map_err(Error::io(target))
    }

    /// Refuses a target that holds other files than it may.
    fn check(&self) -> Result<()> {
        let Self { target, existing, .. } = self;
        let found = if target.exists() { entries(target)? } else { vec![] };
        match existing {
            Existing::Nothing(expected) => {
                Error::unless(found.is_empty(), target.display(), expected, "a folder with files")
            }
            Existing::Only(names) => {
                let is_known = |path: &PathBuf| names.iter().any(|name| path.ends_with(name));
                let Some(other) = found.iter().find(|path| !is_known(path)) else { return Ok(()) };
                let expected = format!("a folder of only {}", names.join(", "));
                let got = other.file_name().unwrap_or_default().display();
                Err(Error::invalid(target.display(), expected, got))
            }
        }
    }

    fn set_aside(&self) -> Result<()> {
        let target = &self.target;
        fs::rename(target, self.temporary.join(OLD)).map_err(Error::io(target))
    }

    fn put_back(&self) -> std::io::Result<()> {
        fs::rename(self.temporary.join(OLD), &self.target)
    }

    /// Removes what a killed process or this one has left. A folder that was set aside and not replaced comes back.
    fn clear(&self) {
        if !self.target.exists() {
            _ = self.put_back();
        }
        for name in [NEW, OLD] {
            _ = fs::remove_dir_all(self.temporary.join(name));
        }
    }
}

impl Drop for NewFolder {
    /// The lock goes after the folders, so that nobody else begins before they are gone.
    fn drop(&mut self) {
        self.clear();
        let lock = self.lock.take();
        _ = fs::remove_file(self.temporary.join(LOCK));
        drop(lock);
        _ = fs::remove_dir(&self.temporary);
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a folder and everything in it durable.
fn sync_all(folder: &Path) -> Result<()> {
    for path in entries(folder)? {
        match path.is_dir() {
            true => sync_all(&path)?,
            false => {
                File::open(&path).and_then(|file| file.sync_all()).map_err(Error::io(&path))?
            }
        }
    }
    sync_folder(folder).map_err(Error::io(folder))
}

fn sync_parent(path: &Path) -> std::io::Result<()> {
    sync_folder(parent(path))
}

/// Makes the names in a folder durable.
///
/// # Errors
/// The error of the system.
#[cfg(unix)]
pub fn sync_folder(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

/// Other systems cannot open and sync a folder like a file.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub fn sync_folder(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;

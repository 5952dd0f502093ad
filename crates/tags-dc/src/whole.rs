//! A file that appears whole or not at all.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use itm_core::{Error, Result};

/// Writes a temporary file in the same folder, then renames it. A path that is not a plain file (a terminal, a pipe) is written directly.
///
/// # Errors
/// If a file cannot be written, and the errors of `fill`. The temporary file is removed then.
pub(crate) fn write<T>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<T>,
) -> Result<T> {
    if path.is_dir() {
        return Err(Error::invalid(path.display(), "a file to write", "a folder"));
    }
    let create = |at: &Path| File::create(at).map_err(Error::io(path));
    if path.exists() && !path.is_file() {
        return Ok(filled(create(path)?, path, fill)?.1);
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    let temporary = PathBuf::from(name);
    let written = filled(create(&temporary)?, path, fill).and_then(|(file, done)| {
        let named = file.sync_all().and_then(|()| fs::rename(&temporary, path));
        named.map(|()| done).map_err(Error::io(path))
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary); // report only the first error
    }
    written
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_was_there_stays_when_writing_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.jsonl");
        fs::write(&path, "before").unwrap();
        let half = |file: &mut BufWriter<File>| -> Result<()> {
            file.write_all(b"half").map_err(Error::io(&path))?;
            Err(Error::invalid("the disk", "room", "none"))
        };
        assert_eq!(
            write(&path, half).unwrap_err().to_string(),
            "the disk: expected room, got none"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        write(&path, |file| file.write_all(b"after").map_err(Error::io(&path))).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        let nowhere = write(&folder.path().join("none/p.jsonl"), |_| Ok(())).unwrap_err();
        let want = format!("{}/none/p.jsonl: ", folder.path().display());
        let line = nowhere.to_string();
        assert!(line.starts_with(&want) && !line.contains("p.jsonl.tmp"), "{line}");
    }
}

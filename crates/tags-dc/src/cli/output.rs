//! A file that appears whole or not at all.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

use itm_core::Error;

/// Writes a temporary file in the same folder, then renames it. A path that is not a plain file (a terminal, a pipe) is written directly.
pub(super) fn write(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> Result<()>,
) -> itm_core::Result<()> {
    if path.is_dir() {
        return Err(Error::invalid(path.display(), "a file to write", "a folder"));
    }
    let written = if path.exists() && !path.is_file() {
        File::create(path).and_then(|file| buffered(&file, fill))
    } else {
        beside(path, fill)
    };
    written.map_err(Error::io(path))
}

fn beside(path: &Path, fill: impl FnOnce(&mut BufWriter<&File>) -> Result<()>) -> Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut made = tempfile::Builder::new();
    #[cfg(unix)]
    made.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // minus the umask
    // Only the kind of the error: the whole message names a temporary file that the user does not know.
    let file = made.tempfile_in(folder).map_err(|error| error.kind())?;
    buffered(file.as_file(), fill)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|failed| failed.error)?;
    Ok(())
}

fn buffered(file: &File, fill: impl FnOnce(&mut BufWriter<&File>) -> Result<()>) -> Result<()> {
    let mut buffer = BufWriter::new(file);
    fill(&mut buffer)?;
    buffer.flush()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn what_was_there_stays_when_writing_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.jsonl");
        fs::write(&path, "before").unwrap();
        let half = |file: &mut BufWriter<&File>| {
            file.write_all(b"half")?;
            Err(ErrorKind::StorageFull.into())
        };
        let error = write(&path, half).unwrap_err().to_string();
        assert!(error.starts_with(&path.display().to_string()), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        write(&path, |file| file.write_all(b"after")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        let nowhere = write(&folder.path().join("none/p.jsonl"), |_| Ok(())).unwrap_err();
        let want = format!("{}/none/p.jsonl: entity not found", folder.path().display());
        assert_eq!(nowhere.to_string(), want);
    }
}

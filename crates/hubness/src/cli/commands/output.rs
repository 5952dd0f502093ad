//! Files that appear whole or not at all.

use std::io::Write;
use std::path::Path;

use itm_core::{Error, Result};
use npyz::WriterBuilder;
use tempfile::NamedTempFile;

/// Writes a temporary file in the same folder, then renames it. A terminal, a pipe or another special file is written
/// directly.
pub(super) fn write(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<()> {
    if is_special(path) {
        let mut file = std::fs::File::create(path).map_err(Error::io(path))?;
        return fill(&mut file).map_err(Error::io(path));
    }
    let mut file = beside(path)?;
    let mut buffer = std::io::BufWriter::new(file.as_file_mut());
    fill(&mut buffer).and_then(|()| buffer.flush()).map_err(Error::io(path))?;
    drop(buffer);
    file.as_file().sync_all().map_err(Error::io(path))?;
    file.persist(path).map_err(|failed| Error::io(path)(failed.error))?;
    Ok(())
}

/// Checks that [`write`] can begin. Called before long work, because its result would otherwise be lost.
pub(super) fn check(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Error::invalid(path.display(), "a file to write", "a folder"));
    }
    if is_special(path) { Ok(()) } else { beside(path).map(drop) }
}

fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// An empty temporary file in the folder of `path`, with the permissions of any new file.
fn beside(path: &Path) -> Result<NamedTempFile> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new();
    #[cfg(unix)]
    file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // less the umask
    file.tempfile_in(folder).map_err(|error| {
        // The system's words, without the name of a temporary file that the user does not know.
        let words = error.to_string();
        let cause = words.split(" at path ").next().unwrap_or_default();
        Error::io(path)(std::io::Error::new(error.kind(), cause))
    })
}

/// A `.npy` file of two dimensions.
pub(super) fn npy<T: npyz::AutoSerialize + Copy>(
    path: &Path,
    width: usize,
    values: impl ExactSizeIterator<Item = T>,
) -> Result<()> {
    let shape = [(values.len() / width.max(1)) as u64, width as u64];
    write(path, |out| {
        let options = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(out);
        let mut writer = options.begin_nd()?;
        writer.extend(values)?;
        writer.finish()
    })
}

//! Files that appear whole or not at all.

use std::io::Write;
use std::path::Path;

use itm_core::{Error, Result};
use npyz::WriterBuilder;
use tempfile::NamedTempFile;

/// Writes beside the final name, then renames.
pub(super) fn write(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder).map_err(Error::io(folder))?;
    let mut buffer = std::io::BufWriter::new(file.as_file_mut());
    fill(&mut buffer).and_then(|()| buffer.flush()).map_err(Error::io(path))?;
    drop(buffer);
    file.as_file().sync_all().map_err(Error::io(path))?;
    file.persist(path).map_err(|failed| Error::io(path)(failed.error))?;
    Ok(())
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

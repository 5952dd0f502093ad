//! A matrix as a `.npy` file.

use std::path::Path;

use itm_core::output::write;
use itm_core::{Error, Result};
use npyz::WriterBuilder;

/// A `.npy` file of two dimensions.
pub(super) fn npy<T: npyz::AutoSerialize + Copy>(
    path: &Path,
    width: usize,
    values: impl ExactSizeIterator<Item = T>,
) -> Result<()> {
    let shape = [(values.len() / width.max(1)) as u64, width as u64];
    write(path, |out| {
        let options = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(out);
        let written = options.begin_nd().and_then(|mut writer| {
            writer.extend(values)?;
            writer.finish()
        });
        written.map_err(Error::io(path))
    })
}

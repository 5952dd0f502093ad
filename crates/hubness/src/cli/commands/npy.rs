//! A matrix as a `.npy` file.

use std::ops::Range;
use std::path::Path;

use itm_core::output::write;
use itm_core::{Error, Result};
use npyz::WriterBuilder;

/// A `.npy` file of two dimensions.
pub(super) fn npy<T: npyz::AutoSerialize + Copy>(
    path: &Path,
    width: usize,
    values: &[T],
) -> Result<()> {
    let shape = (values.len() / width.max(1), width);
    npy_by(path, shape, usize::MAX, |_| Ok(values.iter().copied()))
}

/// The same from `rows` rows that `some` makes, at most `at_once` at a time.
pub(super) fn npy_by<T: npyz::AutoSerialize, I: IntoIterator<Item = T>>(
    path: &Path,
    (rows, width): (usize, usize),
    at_once: usize,
    mut some: impl FnMut(Range<usize>) -> Result<I>,
) -> Result<()> {
    write(path, |out| {
        let (failed, shape) = (|error| Error::io(path)(error), [rows as u64, width as u64]);
        let options = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(out);
        let mut writer = options.begin_nd().map_err(failed)?;
        for first in (0..rows).step_by(at_once) {
            writer.extend(some(first..rows.min(first.saturating_add(at_once)))?).map_err(failed)?;
        }
        writer.finish().map_err(failed)
    })
}

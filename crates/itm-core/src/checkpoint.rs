//! Checkpoint files: named tensors in the safetensors format, checked when they are read.
//!
//! [`CheckpointWriter`] collects values, modules and optimisers into the bytes of a file. [`CheckpointReader`] opens a file. It refuses a
//! truncated file, another kind of file and entries of other shapes, and names the entry at fault.

mod optimizer;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use burn::module::Module;
use safetensors::tensor::{Dtype, TensorView};

use crate::arrays::{ArrayValue, NamedArrays, to_bytes};
use crate::files::read;
use crate::{Error, Result, host, parameters};

/// Collects tensors for a file.
///
/// ```
/// use itm_core::checkpoint::{CheckpointReader, CheckpointWriter};
///
/// let mut writer = CheckpointWriter::default();
/// writer.values("scores", &[2, 1], &[0.5, f32::MIN_POSITIVE]);
/// writer.values("progress", &[1], &[3i64]);
/// # let folder = std::env::temp_dir().join(format!("itm-checkpoint-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("state.safetensors");
/// std::fs::write(&path, writer.contents("example 1")?).unwrap();
///
/// let reader = CheckpointReader::open(&path, "example 1")?;
/// assert_eq!(reader.values::<f32>("scores", &[2, 1])?, [0.5, f32::MIN_POSITIVE]);
/// assert!(reader.values::<f32>("scores", &[3, 1]).is_err() && CheckpointReader::open(&path, "example 2").is_err());
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct CheckpointWriter {
    entries: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
}

impl CheckpointWriter {
    /// Adds values with a shape.
    pub fn values<T: ArrayValue>(&mut self, name: &str, shape: &[usize], values: &[T]) {
        let bytes = bytemuck::cast_slice(values).to_vec();
        self.entries.push((name.to_string(), T::DTYPE, shape.to_vec(), bytes));
    }

    /// Adds all parameters of a module, named by their path under `prefix`.
    pub fn module<M: Module>(&mut self, prefix: &str, module: &M) {
        parameters::visit(prefix, module, |path, shape, values| {
            self.values(path, shape, &host(values));
        });
    }

    /// The bytes of the file. `kind` is stored in the file; [`CheckpointReader::open`] checks it.
    ///
    /// # Errors
    /// If the values of an entry do not fit its shape.
    ///
    /// # Panics
    /// If two entries have one name.
    pub fn contents(&self, kind: &str) -> Result<Vec<u8>> {
        let views = self.entries.iter().map(|(name, dtype, shape, bytes)| {
            let bits = shape.iter().try_fold(dtype.bitsize(), |n, &side| n.checked_mul(side));
            let expected = format_args!("values of shape {shape:?} for {name}");
            let fits = bits == bytes.len().checked_mul(8);
            Error::unless(fits, kind, expected, format_args!("{} bytes", bytes.len()))?;
            let view = TensorView::new(*dtype, shape.clone(), bytes);
            Ok((name.as_str(), view.map_err(|e| Error::invalid(kind, "tensors", e))?))
        });
        Ok(to_bytes(views.collect::<Result<Vec<_>>>()?, &[("format", kind)]))
    }
}

/// A file that was read and holds well-formed tensors of the expected kind.
#[derive(Debug)]
pub struct CheckpointReader {
    path: PathBuf,
    file: NamedArrays<Vec<u8>>,
    /// Entries that were read.
    asked: RefCell<BTreeSet<String>>,
}

impl CheckpointReader {
    /// Reads a file of this kind.
    ///
    /// # Errors
    /// If the file is missing, truncated, or of another kind.
    pub fn open(path: &Path, kind: &str) -> Result<Self> {
        let file = NamedArrays::new(read(path, u64::MAX)?)
            .map_err(|e| Error::invalid(path.display(), "a whole checkpoint", e))?;
        let found = file.about("format").unwrap_or("no format");
        Error::unless(found == kind, path.display(), kind, found)?;
        Ok(Self { path: path.to_path_buf(), file, asked: RefCell::default() })
    }

    /// Whether there is such an entry.
    pub fn has(&self, name: &str) -> bool {
        self.file.shape(name).is_some()
    }

    /// The values of an entry.
    ///
    /// # Errors
    /// If there is no such entry, or it has another type or shape.
    pub fn values<T: ArrayValue>(&self, name: &str, shape: &[usize]) -> Result<Vec<T>> {
        self.asked.borrow_mut().insert(name.to_owned());
        let values = self.file.values(name, |found| found == shape);
        values.map_err(|got| self.refuse(name, format!("{:?} {shape:?}", T::DTYPE), got))
    }

    /// `module` with the parameters of the file.
    ///
    /// # Errors
    /// If a parameter is missing or of another shape.
    pub fn module<M: Module>(&self, prefix: &str, module: M) -> Result<M> {
        parameters::replace(prefix, module, |path, shape| self.values(path, shape).map(Some))
    }

    /// Refuses a file with an entry that was never read.
    ///
    /// # Errors
    /// Names the first such entry in alphabetical order.
    pub fn nothing_else(&self) -> Result<()> {
        let asked = self.asked.borrow();
        match self.file.names().into_iter().filter(|name| !asked.contains(name)).min() {
            Some(name) => Err(self.refuse(&name, "only entries of the model", "a foreign entry")),
            None => Ok(()),
        }
    }

    /// An error about one entry of the file.
    pub fn refuse(&self, name: &str, expected: impl ToString, got: impl ToString) -> Error {
        let place = format!("{}: {name}", self.path.display());
        Error::invalid(place, expected.to_string(), got.to_string())
    }
}

#[cfg(test)]
mod tests;

//! One `.safetensors` file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use half::{bf16, f16};
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo};

use crate::data::{FileBytes, contents};
use crate::files::open;
use crate::{Error, Result};

/// A file whose header was read and checked. Values are read when a caller asks for them: a mapped file would count as memory beside
/// the model that is made of it.
#[derive(Debug)]
pub(super) struct SafeFile {
    path: PathBuf,
    file: Mutex<File>,
    /// Where the values start.
    start: usize,
    metadata: Metadata,
}

impl SafeFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (place, bytes) = (path.display(), FileBytes::open(path)?);
        if bytes.get(8) != Some(&b'{') {
            return Err(Error::invalid(place, "a safetensors file", contents(&bytes)));
        }
        let (header, metadata) = SafeTensors::read_metadata(&bytes)
            .map_err(|e| Error::invalid(place, "a safetensors file", e))?;
        let start = header + size_of::<u64>(); // `read_metadata` checked that the values fill the rest of the file
        Ok(Self { path: path.into(), file: Mutex::new(open(path)?), start, metadata })
    }

    /// Name, type and shape of each tensor.
    pub(super) fn entries(&self) -> Vec<(String, String, Vec<usize>)> {
        let entry = |name: String| {
            let info = self.metadata.info(&name)?;
            Some((name, format!("{:?}", info.dtype), info.shape.clone()))
        };
        self.metadata.offset_keys().into_iter().filter_map(entry).collect()
    }

    /// The values as f32; `None` if the type is none of F32, F64, F16 and BF16.
    pub(super) fn f32s(&self, name: &str) -> Result<Option<Vec<f32>>> {
        let missing = || Error::invalid(self.path.display(), format!("a tensor {name}"), "none");
        let info = self.metadata.info(name).ok_or_else(missing)?;
        match info.dtype {
            Dtype::F32 => self.values(info, f32::from_le_bytes),
            Dtype::F64 => self.values(info, |b| f64::from_le_bytes(b) as f32),
            Dtype::F16 => self.values(info, |b| f16::from_le_bytes(b).to_f32()),
            Dtype::BF16 => self.values(info, |b| bf16::from_le_bytes(b).to_f32()),
            _ => Ok(None),
        }
    }

    /// The values of a tensor, read in blocks.
    fn values<const N: usize>(
        &self,
        info: &TensorInfo,
        value: impl Fn([u8; N]) -> f32,
    ) -> Result<Option<Vec<f32>>> {
        let (from, to) = info.data_offsets;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut values, mut block) = (Vec::with_capacity((to - from) / N), vec![0; BLOCK]);
        let mut read = || {
            file.seek(SeekFrom::Start((self.start + from) as u64))?;
            while values.len() < (to - from) / N {
                let block = &mut block[..BLOCK.min(to - from - N * values.len())];
                file.read_exact(block)?;
                values.extend(chunks(block).map(&value));
            }
            Ok(())
        };
        read().map_err(Error::io(&self.path))?;
        Ok(Some(values))
    }
}

/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;

/// Bytes as arrays of `N`, one for each value.
pub(super) fn chunks<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.as_chunks().0.iter().copied()
}

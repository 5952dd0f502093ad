//! One `.safetensors` file, memory-mapped.

use std::path::Path;

use half::{bf16, f16};
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo};

use crate::data::{FileBytes, contents};
use crate::{Error, Result};

/// A file whose header was read and checked; the values stay mapped until a caller reads one.
#[derive(Debug)]
pub(super) struct SafeFile {
    place: String,
    bytes: FileBytes,
    /// Where the values start.
    start: usize,
    metadata: Metadata,
}

impl SafeFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (place, bytes) = (path.display().to_string(), FileBytes::open(path)?);
        if bytes.get(8) != Some(&b'{') {
            return Err(Error::invalid(place, "a safetensors file", contents(&bytes)));
        }
        let (header, metadata) = SafeTensors::read_metadata(&bytes)
            .map_err(|e| Error::invalid(&place, "a safetensors file", e))?;
        let start = header + size_of::<u64>(); // `read_metadata` checked that the values fill the rest of the file
        Ok(Self { place, bytes, start, metadata })
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    fn info(&self, name: &str) -> Result<&TensorInfo> {
        let missing = || Error::invalid(&self.place, format!("a tensor {name}"), "none");
        self.metadata.info(name).ok_or_else(missing)
    }

    /// Type and shape.
    pub(super) fn entry(&self, name: &str) -> Result<(String, Vec<usize>)> {
        let info = self.info(name)?;
        Ok((format!("{:?}", info.dtype), info.shape.clone()))
    }

    /// The values as f32; `None` if the type is none of F32, F64, F16 and BF16.
    pub(super) fn f32s(&self, name: &str) -> Result<Option<Vec<f32>>> {
        let info = self.info(name)?;
        let (from, to) = info.data_offsets;
        let bytes = &self.bytes[self.start + from..self.start + to];
        Ok(match info.dtype {
            Dtype::F32 => Some(chunked(bytes, f32::from_le_bytes)),
            Dtype::F64 => Some(chunked(bytes, |b| f64::from_le_bytes(b) as f32)),
            Dtype::F16 => Some(chunked(bytes, |b| f16::from_le_bytes(b).to_f32())),
            Dtype::BF16 => Some(chunked(bytes, |b| bf16::from_le_bytes(b).to_f32())),
            _ => None,
        })
    }
}

/// Converts bytes to values; each chunk of `N` bytes is one value.
pub(super) fn chunked<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&chunk| value(chunk)).collect()
}

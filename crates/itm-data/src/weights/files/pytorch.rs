//! `pytorch_model.bin`: reads the pickle without Python, one tensor at a time.

use std::io::Read;
use std::path::Path;

use half::{bf16, f16};
use pytorch_reader::{DType, PytorchReader};

use crate::data::contents;
use crate::files::open;
use crate::weights::safe::chunks;
use crate::{Error, Result};

#[derive(Debug)]
pub(super) struct PickledFile {
    place: String,
    reader: PytorchReader,
}

impl PickledFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let mut head = Vec::new();
        open(path)?.take(512).read_to_end(&mut head).map_err(Error::io(path))?;
        let pickled = [&b"PK"[..], b"\x80"].iter().any(|magic| head.starts_with(magic));
        let tar = head.get(257..262) == Some(b"ustar");
        if !pickled && !tar {
            return Err(Error::invalid(&place, "a PyTorch file of tensors", contents(&head)));
        }
        let reader = PytorchReader::new(path)
            .map_err(|e| Error::invalid(&place, "a PyTorch file of tensors", e))?;
        Ok(Self { place, reader })
    }

    /// Name, type and shape of each tensor, by name.
    pub(super) fn entries(&self) -> Vec<(String, String, Vec<usize>)> {
        let mut names = self.reader.keys();
        names.sort();
        let entry = |name: String| {
            let tensor = self.reader.get(&name)?;
            Some((name, format!("{:?}", tensor.dtype()), tensor.shape().to_vec()))
        };
        names.into_iter().filter_map(entry).collect()
    }

    /// The values as f32; `None` if the type is none of F32, F64, F16 and BF16.
    pub(super) fn f32s(&self, name: &str) -> Result<Option<Vec<f32>>> {
        let missing = || Error::invalid(&self.place, format!("a tensor {name}"), "none");
        let tensor = self.reader.get(name).ok_or_else(missing)?;
        let read = || tensor.read().map_err(Error::io(&self.place));
        // The reader returns the bytes in the byte order of this machine.
        Ok(match tensor.dtype() {
            DType::F32 => Some(chunks(&read()?).map(f32::from_ne_bytes).collect()),
            DType::F64 => Some(chunks(&read()?).map(|b| f64::from_ne_bytes(b) as f32).collect()),
            DType::F16 => Some(chunks(&read()?).map(|b| f16::from_ne_bytes(b).to_f32()).collect()),
            DType::BF16 => {
                Some(chunks(&read()?).map(|b| bf16::from_ne_bytes(b).to_f32()).collect())
            }
            _ => None,
        })
    }
}

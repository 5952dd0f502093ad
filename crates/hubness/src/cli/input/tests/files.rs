//! Small files for tests, written by `npyz` and `safetensors` where they can write them.

use std::fs;
use std::path::PathBuf;

use half::f16;
use itm_core::Result;
use npyz::WriterBuilder;
use safetensors::tensor::{Dtype, TensorView, serialize};
use tempfile::TempDir;

use super::super::{InputArgs, InputData, Location, load_from};

/// Row-major values as `npyz` writes them.
pub(in crate::cli::input) fn npy<T: npyz::AutoSerialize + Copy>(
    shape: &[usize],
    values: &[T],
) -> Vec<u8> {
    let shape: Vec<_> = shape.iter().map(|&n| n as u64).collect();
    let mut bytes = Vec::new();
    let options = npyz::WriteOptions::<T>::new().default_dtype().shape(&shape);
    let mut writer = options.writer(&mut bytes).begin_nd().unwrap();
    writer.extend(values.iter().copied()).unwrap();
    writer.finish().unwrap();
    bytes
}

/// Rows of f32.
pub(in crate::cli::input) fn rows<const N: usize, const D: usize>(rows: [[f32; D]; N]) -> Vec<u8> {
    npy(&[N, D], &rows.concat())
}

/// A `.npy` file of version 1 with this dictionary, built by hand.
pub(in crate::cli::input) fn npy_of(
    descr: &str,
    fortran: &str,
    shape: &str,
    data: &[u8],
) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let length = u16::try_from(text.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, text.as_bytes(), data].concat()
}

/// Half precision, which `npyz` does not write here.
pub(in crate::cli::input) fn npy_f16(shape: [usize; 2], values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect();
    npy_of("<f2", "False", &format!("({}, {})", shape[0], shape[1]), &data)
}

/// Tensors as `safetensors` writes them.
pub(in crate::cli::input) fn tensors(all: &[(&str, Dtype, &[usize], &[u8])]) -> Vec<u8> {
    let views = all.iter().map(|&(name, dtype, shape, data)| {
        (name, TensorView::new(dtype, shape.to_vec(), data).unwrap())
    });
    serialize(views, None).unwrap()
}

/// Little-endian bytes.
pub(in crate::cli::input) fn le(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A temporary folder. Its path is cut out of messages.
pub(in crate::cli::input) struct Folder(TempDir);

impl Folder {
    pub(in crate::cli::input) fn with(files: &[(&str, &[u8])]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        Self(dir)
    }

    pub(in crate::cli::input) fn at(&self, name: &str) -> Location {
        if name.starts_with('-') {
            return name.parse().unwrap();
        }
        format!("{}/{name}", self.0.path().display()).parse().unwrap()
    }

    pub(in crate::cli::input) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(in crate::cli::input) fn embeddings(&self, images: &str, texts: &str) -> InputArgs {
        let (images, texts) = (Some(self.at(images)), Some(self.at(texts)));
        InputArgs { images, texts, ..InputArgs::default() }
    }

    pub(in crate::cli::input) fn matrix(&self, scores: &str) -> InputArgs {
        InputArgs { scores: Some(self.at(scores)), ..InputArgs::default() }
    }

    pub(in crate::cli::input) fn load(&self, input: &InputArgs) -> Result<InputData> {
        load_from(input, &mut std::io::empty())
    }

    pub(in crate::cli::input) fn loaded(&self, input: &InputArgs) -> InputData {
        self.load(input).unwrap()
    }

    pub(in crate::cli::input) fn refused(&self, input: &InputArgs) -> String {
        let line = self.load(input).unwrap_err().to_string();
        assert!(!line.contains('\n'), "{line}");
        self.short(&line)
    }

    pub(in crate::cli::input) fn notes(&self, loaded: &InputData) -> Vec<String> {
        loaded.messages.notes.iter().map(|line| self.short(line)).collect()
    }

    pub(in crate::cli::input) fn warnings(&self, loaded: &InputData) -> Vec<String> {
        loaded.messages.warnings.iter().map(|line| self.short(line)).collect()
    }

    fn short(&self, line: &str) -> String {
        line.replace(&format!("{}/", self.0.path().display()), "")
    }
}

//! Small files for tests, written by `npyz` and `safetensors` where they can write them.

use std::fs;
use std::path::PathBuf;

use half::f16;
use itm_core::Result;
use npyz::WriterBuilder;
use safetensors::tensor::{Dtype, TensorView, serialize};
use tempfile::TempDir;

use super::{Loaded, Location, Request, Source, load_from};

/// Row-major values as `npyz` writes them.
pub(super) fn npy<T: npyz::AutoSerialize + Copy>(shape: &[usize], values: &[T]) -> Vec<u8> {
    let shape: Vec<_> = shape.iter().map(|&n| n as u64).collect();
    let mut bytes = Vec::new();
    let options = npyz::WriteOptions::<T>::new().default_dtype().shape(&shape);
    let mut writer = options.writer(&mut bytes).begin_nd().unwrap();
    writer.extend(values.iter().copied()).unwrap();
    writer.finish().unwrap();
    bytes
}

/// Rows of f32.
pub(super) fn rows<const N: usize, const D: usize>(rows: [[f32; D]; N]) -> Vec<u8> {
    npy(&[N, D], &rows.concat())
}

/// A `.npy` file of version 1 with this dictionary, built by hand.
pub(super) fn npy_of(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let length = u16::try_from(text.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, text.as_bytes(), data].concat()
}

/// Half precision, which `npyz` does not write here.
pub(super) fn npy_f16(shape: [usize; 2], values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect();
    npy_of("<f2", "False", &format!("({}, {})", shape[0], shape[1]), &data)
}

/// Tensors as `safetensors` writes them.
pub(super) fn tensors(all: &[(&str, Dtype, &[usize], &[u8])]) -> Vec<u8> {
    let views = all.iter().map(|&(name, dtype, shape, data)| {
        (name, TensorView::new(dtype, shape.to_vec(), data).unwrap())
    });
    serialize(views, None).unwrap()
}

/// Little-endian bytes.
pub(super) fn le(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A temporary folder. Its path is cut out of messages.
pub(super) struct Folder(TempDir);

impl Folder {
    pub(super) fn with(files: &[(&str, &[u8])]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        Self(dir)
    }

    pub(super) fn at(&self, name: &str) -> Location {
        if name.starts_with('-') {
            return name.parse().unwrap();
        }
        format!("{}/{name}", self.0.path().display()).parse().unwrap()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn embeddings(&self, images: &str, texts: &str) -> Request {
        Request::of(Source::Embeddings { images: self.at(images), texts: self.at(texts) })
    }

    pub(super) fn load(&self, request: &Request) -> Result<Loaded> {
        load_from(request, &mut std::io::empty())
    }

    pub(super) fn loaded(&self, request: &Request) -> Loaded {
        self.load(request).unwrap()
    }

    pub(super) fn refused(&self, request: &Request) -> String {
        let line = self.load(request).unwrap_err().to_string();
        assert!(!line.contains('\n'), "{line}");
        self.short(&line)
    }

    pub(super) fn notes(&self, loaded: &Loaded) -> Vec<String> {
        loaded.messages.notes.iter().map(|line| self.short(line)).collect()
    }

    pub(super) fn warnings(&self, loaded: &Loaded) -> Vec<String> {
        loaded.messages.warnings.iter().map(|line| self.short(line)).collect()
    }

    fn short(&self, line: &str) -> String {
        line.replace(&format!("{}/", self.0.path().display()), "")
    }
}

//! Writes the weights of a module to a file that `transformers` can read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use safetensors::tensor::{Dtype, View};
use serde::Serialize;

use super::{Names, Reshaped, transposed};
use crate::{Error, Result};

/// Writes `config.json` and `model.safetensors`. Each is first written under a temporary name, then renamed.
///
/// # Errors
/// If the operating system refuses a write.
///
/// # Panics
/// If a parameter of the module has no name in the table.
pub fn save<M: Module>(
    module: &M,
    folder: &Path,
    config: &impl Serialize,
    names: &Names,
    reshaped: Reshaped<'_>,
) -> Result<()> {
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    save_file(module, &folder.join("model.safetensors"), names, reshaped)?;
    replace(&folder.join("config.json"), |part| {
        let text = serde_json::to_string_pretty(config)
            .map_err(|e| Error::invalid(part.display(), "to write JSON", e))?;
        fs::write(part, text + "\n").map_err(Error::io(part))
    })
}

/// Writes one file in the safetensors format. It is first written under a temporary name, then renamed.
///
/// # Errors
/// If the operating system refuses a write.
///
/// # Panics
/// If a parameter of the module has no name in the table.
pub fn save_file<M: Module>(
    module: &M,
    path: &Path,
    names: &Names,
    reshaped: Reshaped<'_>,
) -> Result<()> {
    let mut save = Save { path: vec![], names, reshaped, views: vec![] };
    module.visit(&mut save);
    replace(path, |part| {
        let about = HashMap::from([("format".to_string(), "pt".to_string())]);
        safetensors::serialize_to_file(save.views, Some(about), part)
            .map_err(|e| Error::invalid(part.display(), "to write tensors", e))
    })
}

fn replace(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let part = path.with_extension("part");
    write(&part)?;
    fs::rename(&part, path).map_err(Error::io(path))
}

struct Save<'a> {
    path: Vec<String>,
    names: &'a Names,
    reshaped: Reshaped<'a>,
    views: Vec<(String, Lazy)>,
}

impl ModuleVisitor for Save<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let (ours, value) = (self.path.join("."), param.val().inner());
        let dims = value.dims();
        let (rows, columns) = if D == 2 { (dims[0], dims[1]) } else { (1, dims[0]) };
        let (value, theirs) = (value.reshape([rows, columns]), self.names.of(&ours));
        let part = columns / theirs.len();
        for (k, name) in theirs.into_iter().enumerate() {
            let value: Tensor<2> = value.clone().narrow(1, k * part, part);
            let flipped = D == 2 && transposed(&ours);
            let value = if flipped { value.transpose() } else { value };
            let shape = (self.reshaped)(&ours).unwrap_or_else(|| match D {
                1 => vec![part],
                _ => value.dims().to_vec(),
            });
            self.views.push((self.names.written(name), Lazy { shape, value }));
        }
    }
}

/// A tensor that becomes bytes only when it is written, so that the bytes of only one tensor are in memory.
struct Lazy {
    shape: Vec<usize>,
    value: Tensor<2>,
}

impl View for Lazy {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let values = self.value.clone().into_data().convert::<f32>();
        Cow::Owned(values.iter::<f32>().flat_map(f32::to_le_bytes).collect())
    }

    fn data_len(&self) -> usize {
        size_of::<f32>() * self.shape.iter().product::<usize>()
    }
}

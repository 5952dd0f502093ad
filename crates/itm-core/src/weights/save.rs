//! Writes the weights of a module to a file that `transformers` can read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;

use burn::module::Module;
use burn::tensor::Tensor;
use safetensors::tensor::{Dtype, View};
use serde::Serialize;

use super::{ShapeInFile, TensorNames};
use crate::{Error, Result, output, parameters};

/// Writes a configuration and weights under these names. Each is first written under a temporary name, then renamed.
///
/// # Errors
/// If the operating system refuses a write, or the configuration is a folder or a link: then the old weights stay.
///
/// # Panics
/// If a parameter of the module has no name in the table.
pub(crate) fn save<M: Module>(
    module: &M,
    folder: &Path,
    [weights, config_name]: [&str; 2],
    config: &impl Serialize,
    names: &TensorNames,
    reshaped: ShapeInFile<'_>,
) -> Result<()> {
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let path = folder.join(config_name);
    output::check(&path)?; // before the weights are replaced
    save_file(module, &folder.join(weights), names, reshaped)?;
    let text = serde_json::to_string_pretty(config);
    let text = text.map_err(|e| Error::invalid(path.display(), "to write JSON", e))?;
    output::write_bytes(&path, (text + "\n").as_bytes())
}

/// Writes one file in the safetensors format. It is first written under a temporary name, then renamed.
///
/// # Errors
/// If the operating system refuses a write, or the path is a folder, a link or a device.
///
/// # Panics
/// If a parameter of the module has no name in the table.
pub fn save_file<M: Module>(
    module: &M,
    path: &Path,
    names: &TensorNames,
    reshaped: ShapeInFile<'_>,
) -> Result<()> {
    let mut views = vec![];
    parameters::visit("", module, |ours, shape, values| {
        let (rows, columns) =
            if let [rows, columns] = *shape { (rows, columns) } else { (1, shape[0]) };
        let (value, theirs) = (values.reshape([rows, columns]), names.of(ours));
        let part = columns / theirs.len();
        for (k, name) in theirs.into_iter().enumerate() {
            let value: Tensor<2> = value.clone().narrow(1, k * part, part);
            let flipped = shape.len() == 2 && names.is_transposed(ours);
            let value = if flipped { value.transpose() } else { value };
            let shape = reshaped(ours).unwrap_or_else(|| match shape.len() {
                1 => vec![part],
                _ => value.dims().to_vec(),
            });
            views.push((names.written(name), Lazy { shape, value }));
        }
    });
    let device = path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
    Error::unless(!device, path.display(), "a file", "a device")?; // which a rename would replace
    output::check(path)?; // outside of `made`: what it refuses may be the temporary file of another process
    let part = path.with_added_extension("itm-tmp");
    let written = made(views, &part, path);
    if written.is_err() {
        _ = fs::remove_file(&part); // the first error is reported
    }
    written
}

fn made(views: Vec<(String, Lazy)>, part: &Path, path: &Path) -> Result<()> {
    // The library makes a file that only its owner may read.
    let permissions = File::create(part).and_then(|file| Ok(file.metadata()?.permissions()));
    let permissions = permissions.map_err(Error::io(path))?;
    let about = HashMap::from([("format".to_string(), "pt".to_string())]);
    safetensors::serialize_to_file(views, Some(about), part)
        .map_err(|e| Error::invalid(path.display(), "to write tensors", e))?;
    fs::set_permissions(part, permissions)
        .and_then(|()| File::options().append(true).open(part)?.sync_all()) // Windows syncs what it may write
        .and_then(|()| fs::rename(part, path))
        .map_err(Error::io(path))
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

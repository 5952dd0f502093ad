//! The tensors of a folder or a file, in any of the supported formats.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::safe::SafeFile;
use crate::files::read_json;
use crate::{Error, Result};

#[cfg(feature = "pytorch")]
mod pytorch;

/// The weights of a folder or of one file, by name.
///
/// In a folder, the first of these files counts: `model.safetensors`, `model.safetensors.index.json` with its shards,
/// `pytorch_model.bin`, `pytorch_model.bin.index.json` with its shards. A single file is read as safetensors if its
/// name ends in `.safetensors`, else as a PyTorch file: either the present format (an archive) or the older one
/// (consecutive pickles). Only the wanted tensor is ever in memory. f16, bf16 and f64 become f32.
///
/// ```no_run
/// use itm_data::weights::WeightFiles;
///
/// let weights = WeightFiles::open("bert-base-uncased")?;
/// for name in weights.names() {
///     println!("{name} {:?}", weights.shape(name));
/// }
/// let words = weights.f32s("embeddings.word_embeddings.weight")?;
/// # Ok::<(), itm_data::Error>(())
/// ```
#[derive(Debug)]
pub struct WeightFiles {
    path: PathBuf,
    files: Vec<WeightFile>,
    tensors: BTreeMap<String, Entry>,
}

#[derive(Debug)]
enum WeightFile {
    Safe(SafeFile),
    #[cfg(feature = "pytorch")]
    Pickled(pytorch::PickledFile),
}

#[derive(Debug)]
struct Entry {
    file: usize,
    dtype: String,
    shape: Vec<usize>,
}

impl WeightFiles {
    /// Opens the file, or the folder's files, and reads their headers.
    ///
    /// # Errors
    /// If there is no file with weights, a file is damaged or truncated, a shard is missing, the shards lack a tensor
    /// of the index, or two files hold the same tensor. If a file is pickled, and the feature `pytorch` is off.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut weights =
            Self { path: path.to_path_buf(), files: vec![], tensors: BTreeMap::new() };
        if path.is_file() {
            weights.add(path, path.extension().is_some_and(|end| end == "safetensors"))?;
            return Ok(weights);
        }
        fs::read_dir(path).map_err(Error::io(path))?;
        let Some(name) = NAMES.into_iter().find(|name| path.join(name).exists()) else {
            return Err(Error::invalid(path.display(), NAMES.join(", "), "none of them"));
        };
        let (file, safe) = (path.join(name), name.contains("safetensors"));
        match name.ends_with(".json") {
            true => weights.add_shards(&file, safe)?,
            false => weights.add(&file, safe)?,
        }
        Ok(weights)
    }

    /// Whether the folder holds a file with weights.
    pub fn present(folder: &Path) -> bool {
        NAMES.iter().any(|name| folder.join(name).exists())
    }

    /// The folder or the file, for messages.
    pub fn place(&self) -> String {
        self.path.display().to_string()
    }

    /// Names of all tensors, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Shape of a tensor.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|entry| entry.shape.as_slice())
    }

    /// Type and shape of a tensor in the file: `F16 [768]`.
    pub fn describe(&self, name: &str) -> Option<String> {
        self.tensors.get(name).map(|entry| format!("{} {:?}", entry.dtype, entry.shape))
    }

    /// Refuses a model of far more values than the tensors have, before it is built: a configuration of somebody else may state
    /// any size.
    ///
    /// # Errors
    /// If `values` is more than twice the number of values in the files, and more than a million more.
    pub fn check_values(&self, values: u128, asked_by: &str) -> Result<()> {
        let size = |shape: &[usize]| shape.iter().map(|&n| n as u128).product::<u128>();
        let there: u128 = self.tensors.values().map(|entry| size(&entry.shape)).sum();
        let fits = values <= 2 * there + (1 << 20);
        let expected = format_args!("about the {values} values of {asked_by}");
        Error::unless(fits, self.path.display(), expected, there)
    }

    /// Whether the tensor has a type that can become f32.
    pub fn is_real(&self, name: &str) -> bool {
        let real = |e: &Entry| ["F32", "F16", "BF16", "F64"].contains(&e.dtype.as_str());
        self.tensors.get(name).is_some_and(real)
    }

    /// The values of a tensor, row-major.
    ///
    /// # Errors
    /// If there is no such tensor, its type cannot become f32, or the file cannot be read.
    pub fn f32s(&self, name: &str) -> Result<Vec<f32>> {
        let place = self.path.display();
        let Some(entry) = self.tensors.get(name) else {
            return Err(Error::invalid(place, format!("a tensor {name}"), "none"));
        };
        let values = match &self.files[entry.file] {
            WeightFile::Safe(file) => file.f32s(name)?,
            #[cfg(feature = "pytorch")]
            WeightFile::Pickled(file) => file.f32s(name)?,
        };
        let expected = "F32, F16, BF16 or F64";
        values.ok_or_else(|| Error::invalid(format!("{place}: {name}"), expected, &entry.dtype))
    }

    /// The values of a tensor of this shape.
    ///
    /// # Errors
    /// As [`f32s`](Self::f32s), and if the tensor has another shape.
    pub fn f32s_of(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        if self.shape(name) == Some(shape) {
            return self.f32s(name);
        }
        let place = format!("{}: {name}", self.path.display());
        let got = self.describe(name).unwrap_or("none".into());
        Err(Error::invalid(place, format!("{shape:?}, as in the model"), got))
    }

    fn add(&mut self, path: &Path, safe: bool) -> Result<()> {
        let file = if safe { WeightFile::Safe(SafeFile::open(path)?) } else { pickled(path)? };
        let entries = match &file {
            WeightFile::Safe(file) => file.entries(),
            #[cfg(feature = "pytorch")]
            WeightFile::Pickled(file) => file.entries(),
        };
        for (name, dtype, shape) in entries {
            let entry = Entry { file: self.files.len(), dtype, shape };
            let first = self.tensors.insert(name.clone(), entry).is_none();
            let expected = format_args!("a tensor {name} in one file");
            Error::unless(first, self.path.display(), expected, "two")?;
        }
        self.files.push(file);
        Ok(())
    }

    fn add_shards(&mut self, index: &Path, safe: bool) -> Result<()> {
        let parsed: Index = read_json(index, "an index of shards")?;
        for shard in parsed.weight_map.values().collect::<BTreeSet<_>>() {
            // An index is not trusted: it must not lead out of its folder.
            let fits = !shard.is_empty() && !shard.contains(['/', '\\', ':']) && shard != "..";
            Error::unless(fits, index.display(), "names of files beside it", shard)?;
            self.add(&self.path.join(shard), safe)?;
        }
        let absent = parsed.weight_map.keys().filter(|name| !self.tensors.contains_key(*name));
        let absent: Vec<_> = absent.map(String::as_str).collect();
        let (all, names) = (absent.is_empty(), absent.join(", "));
        let got = format_args!("none named {names}");
        Error::unless(all, index.display(), "its tensors in the shards", got)
    }
}

/// The weights in a folder, in order of preference: a file, or the index of its shards.
pub(super) const NAMES: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];

/// The configuration of open_clip.
pub const OPEN_CLIP_CONFIG: &str = "open_clip_config.json";

/// The weights of open_clip, in order of preference.
pub(super) const OPEN_CLIP: [&str; 2] =
    ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"];

/// The weights of a folder of open_clip; the name to write if there are none.
pub fn open_clip_weights(folder: &Path) -> PathBuf {
    let there = OPEN_CLIP.iter().find(|name| folder.join(name).exists());
    folder.join(there.unwrap_or(&OPEN_CLIP[0]))
}

/// Whether open_clip alone can read the configuration: `config.json` is missing, or is timm's and names no `model_type`.
pub fn is_of_open_clip(folder: &Path) -> bool {
    let path = folder.join("config.json");
    let foreign = |config: serde_json::Value| config["model_type"].is_null();
    let foreign = !path.exists() || read_json(&path, "a JSON object").is_ok_and(foreign);
    foreign && folder.join(OPEN_CLIP_CONFIG).exists()
}

#[cfg(feature = "pytorch")]
fn pickled(path: &Path) -> Result<WeightFile> {
    pytorch::PickledFile::open(path).map(WeightFile::Pickled)
}

/// Without the feature no pickled file is read.
#[cfg(not(feature = "pytorch"))]
fn pickled(path: &Path) -> Result<WeightFile> {
    Err(Error::Feature { place: path.display().to_string(), feature: "pytorch" })
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests;

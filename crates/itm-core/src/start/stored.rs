//! Stores a start in a file.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::{LinearMap, Start};
use crate::{Error, Result};

/// Key of the hash in the metadata of the file.
const SHA256: &str = "sha256";

impl Start {
    /// The bytes of a safetensors file. `sha256` identifies the data and the options that the start was solved from.
    ///
    /// # Panics
    /// If a map is not as wide as its bias.
    pub fn to_bytes(&self, sha256: &str) -> Vec<u8> {
        let Self { image, text } = self;
        let shape = |map: &LinearMap| vec![map.weight.len() / map.bias.len(), map.bias.len()];
        let entries = [
            ("image.weight", shape(image), &image.weight),
            ("image.bias", vec![image.bias.len()], &image.bias),
            ("text.weight", shape(text), &text.weight),
            ("text.bias", vec![text.bias.len()], &text.bias),
        ];
        let bytes = entries.map(|(name, shape, values)| {
            (name, shape, values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
        });
        let views = bytes.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            (*name, view.expect("a map is as wide as its bias"))
        });
        let about = HashMap::from([(SHA256.to_owned(), sha256.to_owned())]);
        safetensors::serialize(views, Some(about)).expect("every entry has a name of its own")
    }

    /// Reads the bytes that [`Start::to_bytes`] wrote. `place` begins every error.
    ///
    /// # Errors
    /// If the bytes are truncated, are no start, or have another hash.
    pub fn from_bytes(place: &str, bytes: &[u8], sha256: &str) -> Result<Self> {
        let broken = |e| Error::invalid(place, "a whole start", e);
        let (_, about) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(broken)?;
        let found = about.metadata().as_ref().and_then(|about| about.get(SHA256));
        let is_same = found.map(String::as_str) == Some(sha256);
        Error::unless(is_same, place, "the start of this data and configuration", "another")?;
        let values = |name: &str, expected: &str, fits: &dyn Fn(&[usize]) -> bool| {
            let (place, expected) = (format!("{place}: {name}"), format!("F32 {expected}"));
            let Ok(view) = tensors.tensor(name) else {
                return Err(Error::invalid(place, expected, "nothing"));
            };
            let is_right = view.dtype() == Dtype::F32 && fits(view.shape());
            let got = format!("{:?} {:?}", view.dtype(), view.shape());
            Error::unless(is_right, place, expected, got)?;
            let values = view.data().as_chunks().0.iter().map(|c| f32::from_le_bytes(*c));
            Ok((view.shape().to_vec(), values.collect::<Vec<f32>>()))
        };
        let table = |shape: &[usize]| matches!(shape, [inputs, width] if inputs * width > 0);
        let map = |name: &str| -> Result<LinearMap> {
            let (shape, weight) = values(&format!("{name}.weight"), "[inputs, width]", &table)?;
            let row = |row: &[usize]| row == &shape[1..];
            let (_, bias) = values(&format!("{name}.bias"), &format!("[{}]", shape[1]), &row)?;
            Ok(LinearMap { weight, bias })
        };
        let (image, text) = (map("image")?, map("text")?);
        let [width, got] = [&text, &image].map(|map| map.bias.len());
        Error::unless(got == width, place, format_args!("maps of one width, {width}"), got)?;
        Ok(Self { image, text })
    }
}

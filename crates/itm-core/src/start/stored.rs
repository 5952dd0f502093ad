//! Stores a start in a file.

use super::{LinearMap, Start};
use crate::arrays::{NamedArrays, array, to_bytes};
use crate::{Error, Result};

/// Key of the hash in the metadata of the file.
const SHA256: &str = "sha256";

impl Start {
    /// The bytes of a safetensors file. `sha256` identifies the data and the options that the start was solved from.
    ///
    /// # Panics
    /// If a map is not as wide as its bias.
    pub fn to_bytes(&self, sha256: &str) -> Vec<u8> {
        let [image, text] = [&self.image, &self.text].map(|LinearMap { weight, bias }| {
            let shape = [weight.len() / bias.len(), bias.len()];
            [array(&shape, weight), array(&shape[1..], bias)]
        });
        let names = ["image.weight", "image.bias", "text.weight", "text.bias"];
        to_bytes(names.into_iter().zip(image.into_iter().chain(text)), &[(SHA256, sha256)])
    }

    /// Reads the bytes that [`Start::to_bytes`] wrote. `place` begins every error.
    ///
    /// # Errors
    /// If the bytes are truncated, are no start, or have another hash.
    pub fn from_bytes(place: &str, bytes: &[u8], sha256: &str) -> Result<Self> {
        let file = NamedArrays::new(bytes);
        let file = file.map_err(|e| Error::invalid(place, "a whole start", e))?;
        let is_same = file.about(SHA256) == Some(sha256);
        Error::unless(is_same, place, "the start of this data and configuration", "another")?;
        let values = |name: &str, shape: &str, fits: &dyn Fn(&[usize]) -> bool| {
            let refuse =
                |got| Error::invalid(format!("{place}: {name}"), format!("F32 {shape}"), got);
            file.values(name, fits).map_err(refuse)
        };
        let map = |name: &str| -> Result<LinearMap> {
            let table = format!("{name}.weight");
            let weight = values(
                &table,
                "[inputs, width]",
                &|shape| matches!(shape, [inputs, width] if inputs * width > 0),
            )?;
            let width = file.shape(&table).map_or(0, |shape| shape[1]);
            let row = format!("[{width}]");
            let bias = values(&format!("{name}.bias"), &row, &|shape| shape == [width])?;
            Ok(LinearMap { weight, bias })
        };
        let (image, text) = (map("image")?, map("text")?);
        let [width, got] = [&text, &image].map(|map| map.bias.len());
        Error::unless(got == width, place, format_args!("maps of one width, {width}"), got)?;
        Ok(Self { image, text })
    }
}

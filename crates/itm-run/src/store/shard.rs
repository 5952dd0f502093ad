//! One file of a store.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use itm_core::data::sha256_hex;
use itm_core::{Error, Result, ScoreMatrix, files};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Identity, Store};
use crate::disk::replace;

const TENSOR: &str = "scores";
/// The only key of the header's metadata. Several keys would be written in another order each time.
const HEADER: &str = "itm";

/// The scores of some texts.
pub(super) struct Shard<'a> {
    pub(super) store: &'a Store,
    pub(super) texts: Range<usize>,
}

/// What a file says about itself.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShardHeader {
    of: Identity,
    /// The first text, and the text after the last one.
    texts: [usize; 2],
    /// SHA-256 of the scores' bytes.
    sha256: String,
}

impl Shard<'_> {
    fn path(&self) -> PathBuf {
        self.store.folder.join(format!("texts-{:06}.safetensors", self.texts.start))
    }

    fn shape(&self) -> [usize; 2] {
        [self.texts.len(), self.store.identity.shape[1]]
    }

    /// The scores, text after text; `None` if the file does not exist or is damaged.
    ///
    /// # Errors
    /// If the file has other scores, or if the system refuses to read it.
    pub(super) fn read(&self, tell: &mut impl FnMut(&str)) -> Result<Option<Vec<f32>>> {
        let path = self.path();
        if !path.try_exists().map_err(Error::io(&path))? {
            return Ok(None);
        }
        let bytes = files::read(&path, u64::MAX)?;
        let Some((header, data)) = open(&bytes) else {
            tell(&format!("{} is damaged: its texts are scored again", path.display()));
            return Ok(None);
        };
        self.check(&header)?;
        let whole = data.shape() == self.shape() && data.dtype() == Dtype::F32;
        if !whole || sha256_hex(data.data()) != header.sha256 {
            tell(&format!("{} is damaged: its texts are scored again", path.display()));
            return Ok(None);
        }
        Ok(Some(decoded(data.data())))
    }

    /// Refuses scores with another identity or of other texts.
    fn check(&self, header: &ShardHeader) -> Result<()> {
        let value = |of: &Identity| serde_json::to_value(of).expect("strings and numbers");
        let (expected, got) = (value(&self.store.identity), value(&header.of));
        let keys = expected.as_object().expect("a struct").keys();
        let [start, end] = [self.texts.start, self.texts.end];
        let texts = ("texts".to_owned(), Value::from(vec![start, end]), header.texts.into());
        let pairs = keys.map(|key| (key.clone(), expected[key].clone(), got[key].clone()));
        match pairs.chain([texts]).find(|(_, expected, got)| expected != got) {
            None => Ok(()),
            Some((key, expected, got)) => {
                let place = format!("{}, {key}", self.path().display());
                Err(Error::invalid(place, expected, got))
            }
        }
    }

    /// Writes the scores of all images with these texts. Returns the scores as they will be read.
    ///
    /// # Errors
    /// If the scores cannot be written.
    pub(super) fn write(&self, block: &ScoreMatrix) -> Result<Vec<f32>> {
        let (texts, images) = (self.texts.len(), self.store.identity.shape[1]);
        let of_text = |text| (0..images).map(move |image| block.row(image)[text]);
        let data: Vec<u8> = (0..texts).flat_map(of_text).flat_map(f32::to_le_bytes).collect();
        let header = ShardHeader {
            of: self.store.identity.clone(),
            texts: [self.texts.start, self.texts.end],
            sha256: sha256_hex(&data),
        };
        let header = serde_json::to_string(&header).expect("strings and numbers");
        let view = TensorView::new(Dtype::F32, self.shape().to_vec(), &data)
            .expect("as many bytes as scores");
        let metadata = HashMap::from([(HEADER.to_owned(), header)]);
        let file = safetensors::serialize([(TENSOR, view)], Some(metadata))
            .expect("one tensor of a known size");
        replace(&*self.store.disk, &self.path(), &file)?;
        Ok(decoded(&data))
    }
}

/// The header and the scores of a file; `None` if the file is damaged.
fn open(bytes: &[u8]) -> Option<(ShardHeader, TensorView<'_>)> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).ok()?;
    let header = metadata.metadata().as_ref()?.get(HEADER)?;
    let header = serde_json::from_str(header).ok()?;
    Some((header, SafeTensors::deserialize(bytes).ok()?.tensor(TENSOR).ok()?))
}

fn decoded(data: &[u8]) -> Vec<f32> {
    data.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x)).collect()
}

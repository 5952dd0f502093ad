//! Keeps the scores of a model that sees an image and a text together, beside the model's checkpoints. So no pair is
//! scored twice, and a kill costs at most one shard.
//!
//! A store is a folder of shards. A shard has the scores of some consecutive texts with all images: a `.safetensors`
//! file with one tensor `scores`, `[texts, images]`. The file's header has the [`Identity`] of the scores and the
//! SHA-256 of their bytes.

use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use itm_core::arrays::{NamedArrays, array, to_bytes};
use itm_core::data::{Split, sha256_hex};
use itm_core::scored::Scored;
use itm_core::{Error, Result, ScoreMatrix, files};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::disk::{Disk, SystemDisk, make_folders, replace};
use crate::model::Model;
use crate::progress;
use crate::run::Run;

const TENSOR: &str = "scores";
/// The only key of the header's metadata. Several keys would be written in another order each time.
const HEADER: &str = "itm";

/// Approximate number of pairs per shard: what a kill costs at most.
const PAIRS: usize = 1 << 14;
/// Minimum number of texts per shard, so that a store does not have many tiny files.
const LEAST_TEXTS: usize = 8;

/// What scores were made from. Scores of another model, of other data, or with images and texts exchanged are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    pub(crate) row: String,
    pub(crate) seed: u64,
    pub(crate) split: String,
    /// SHA-256 of the manifest of the checkpoint that scored.
    pub(crate) checkpoint: String,
    pub(crate) config: String,
    pub(crate) data: String,
    pub(crate) backend: String,
    /// Number of texts and number of images of the whole store.
    pub(crate) shape: [usize; 2],
}

/// A folder of scores.
pub(crate) struct Store {
    pub(crate) folder: PathBuf,
    pub(crate) disk: Rc<dyn Disk>,
    pub(crate) identity: Identity,
}

impl Store {
    /// All scores. Reads the shards that exist; scores and writes the others, each durably before the next begins.
    /// `tell` gets a line about a damaged shard, which is scored again. `watch` gets the number of pairs that are
    /// done.
    ///
    /// # Errors
    /// If a shard has another identity: the file and what differs. If the model or the disk fails.
    ///
    /// # Panics
    /// If the shape of `scored` is not the shape of the identity.
    pub(crate) fn matrix(
        &self,
        scored: &dyn Scored,
        mut tell: impl FnMut(&str),
        mut watch: impl FnMut(usize),
    ) -> Result<ScoreMatrix> {
        let (images, texts) = (scored.images(), scored.texts());
        assert_eq!(self.identity.shape, [texts, images], "the shape of the store");
        make_folders(&*self.disk, &self.folder)?;
        let mut values = vec![0.0; images * texts];
        for texts_of in ranges(texts, images) {
            let columns = match self.read(&texts_of, &mut tell)? {
                Some(columns) => columns,
                None => self.write(&texts_of, &scored.block(0..images, texts_of.clone())?)?,
            };
            for (column, text) in columns.chunks_exact(images).zip(texts_of.clone()) {
                let cells = values[text..].iter_mut().step_by(texts);
                cells.zip(column).for_each(|(cell, &score)| *cell = score);
            }
            watch(texts_of.end * images);
        }
        ScoreMatrix::new(images, texts, values)
    }

    /// The file of the scores of some texts.
    fn path(&self, texts: &Range<usize>) -> PathBuf {
        self.folder.join(format!("texts-{:06}.safetensors", texts.start))
    }

    /// The scores of some texts, text after text; `None` if the file does not exist or is damaged.
    ///
    /// # Errors
    /// If the file has other scores, or if the system refuses to read it.
    fn read(&self, texts: &Range<usize>, tell: &mut impl FnMut(&str)) -> Result<Option<Vec<f32>>> {
        let path = self.path(texts);
        if !path.try_exists().map_err(Error::io(&path))? {
            return Ok(None);
        }
        let opened = open(files::read(&path, u64::MAX)?);
        opened.iter().try_for_each(|(header, _)| self.check(texts, header))?;
        let whole = opened.and_then(|(header, file)| {
            let shape = [texts.len(), self.identity.shape[1]];
            let scores = file.values(TENSOR, |found| found == shape).ok()?;
            (hash(&scores) == header.sha256).then_some(scores)
        });
        if whole.is_none() {
            tell(&format!("{} is damaged: its texts are scored again", path.display()));
        }
        Ok(whole)
    }

    /// Refuses scores with another identity or of other texts.
    fn check(&self, texts: &Range<usize>, header: &ShardHeader) -> Result<()> {
        let value = |of: &Identity| serde_json::to_value(of).expect("strings and numbers");
        let (expected, got) = (value(&self.identity), value(&header.of));
        let keys = expected.as_object().expect("a struct").keys();
        let range = json!([texts.start, texts.end]);
        let range = ("texts".to_owned(), range, json!(header.texts));
        let pairs = keys.map(|key| (key.clone(), expected[key].clone(), got[key].clone()));
        let other = pairs.chain([range]).find(|(_, expected, got)| expected != got);
        other.map_or(Ok(()), |(key, expected, got)| {
            Err(Error::invalid(format!("{}, {key}", self.path(texts).display()), expected, got))
        })
    }

    /// Writes the scores of all images with these texts. Returns the scores as they will be read.
    ///
    /// # Errors
    /// If the scores cannot be written.
    fn write(&self, texts: &Range<usize>, block: &ScoreMatrix) -> Result<Vec<f32>> {
        let shape = [texts.len(), self.identity.shape[1]];
        let of_text = |text| (0..shape[1]).map(move |image| block.row(image)[text]);
        let scores: Vec<f32> = (0..shape[0]).flat_map(of_text).collect();
        let header = ShardHeader {
            of: self.identity.clone(),
            texts: [texts.start, texts.end],
            sha256: hash(&scores),
        };
        let header = serde_json::to_string(&header).expect("strings and numbers");
        let file = to_bytes([(TENSOR, array(&shape, &scores))], &[(HEADER, &header)]);
        replace(&*self.disk, &self.path(texts), &file)?;
        Ok(scores)
    }
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

/// A file and its header; `None` if the file is damaged.
fn open(bytes: Vec<u8>) -> Option<(ShardHeader, NamedArrays<Vec<u8>>)> {
    let file = NamedArrays::new(bytes).ok()?;
    Some((serde_json::from_str(file.about(HEADER)?).ok()?, file))
}

fn hash(scores: &[f32]) -> String {
    sha256_hex(&scores.iter().flat_map(|score| score.to_le_bytes()).collect::<Vec<_>>())
}

/// The texts of each shard.
fn ranges(texts: usize, images: usize) -> impl Iterator<Item = Range<usize>> {
    let of_one = (PAIRS / images.max(1)).max(LEAST_TEXTS);
    (0..texts).step_by(of_one).map(move |first| first..texts.min(first + of_one))
}

impl Run {
    /// The scores of a trained row on a split. If every score needs a pass through the model, they come from the row's
    /// store, which is made or completed if necessary.
    ///
    /// # Errors
    /// If [`Model::scored`] or [`Store::matrix`] fails, or if the row was not trained to its end.
    pub(crate) fn scores<'m>(
        &self,
        model: &'m Model,
        split: Split,
    ) -> Result<Box<dyn Scored + 'm>> {
        let scored = model.scored(split)?;
        if !scored.costly() {
            return Ok(scored);
        }
        let (store, name) = (self.store(model, split, &*scored)?, model.name());
        let pairs = scored.images() * scored.texts();
        let bar = progress::bar(&format!("{name}, {split} pairs"), "pairs", pairs);
        let tell = |line: &str| progress::say(format!("{name}: {line}"));
        Ok(Box::new(store.matrix(&*scored, tell, |pairs| bar.set_position(pairs as u64))?))
    }

    fn store(&self, model: &Model, split: Split, scored: &dyn Scored) -> Result<Store> {
        let folder =
            self.dir().folder(&model.row, model.seed).join("scores").join(split.to_string());
        let run = &self.dir().identity;
        let identity = Identity {
            row: model.row.clone(),
            seed: model.seed,
            split: split.to_string(),
            checkpoint: self.hash_of_chosen(&model.row, model.seed)?,
            config: run.config_sha256.clone(),
            data: run.data_sha256.clone(),
            backend: run.backend.clone(),
            shape: [scored.texts(), scored.images()],
        };
        Ok(Store { folder, disk: Rc::new(SystemDisk), identity })
    }
}

#[cfg(test)]
mod tests;

//! Keeps the scores of a model that sees an image and a text together, beside the model's checkpoints. So no pair is
//! scored twice, and a kill costs at most one shard.
//!
//! A store is a folder of shards. A shard has the scores of some consecutive texts with all images: a `.safetensors`
//! file with one tensor `scores`, `[texts, images]`. The file's header has the [`Identity`] of the scores and the
//! SHA-256 of their bytes.

mod shard;

use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use itm_core::scored::Scored;
use itm_core::{Result, ScoreMatrix};
use serde::{Deserialize, Serialize};

use self::shard::Shard;
use crate::disk::{Disk, make_folders};
use crate::model::Model;
use crate::progress;
use crate::run::Run;
use crate::split::Split;

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
            let shard = Shard { store: self, texts: texts_of.clone() };
            let found = shard.read(&mut tell)?;
            let columns = match found {
                Some(columns) => columns,
                None => shard.write(&scored.block(0..images, texts_of.clone())?)?,
            };
            for (column, text) in columns.chunks_exact(images).zip(texts_of.clone()) {
                let cells = values[text..].iter_mut().step_by(texts);
                cells.zip(column).for_each(|(cell, &score)| *cell = score);
            }
            watch(texts_of.end * images);
        }
        ScoreMatrix::new(images, texts, values)
    }
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
        let bar = progress::bar(&format!("{name}, {split} pairs"), "pairs");
        bar.set_length((scored.images() * scored.texts()) as u64);
        let tell = |line: &str| progress::say(format!("{name}: {line}"));
        let matrix = store.matrix(&*scored, tell, |pairs| bar.set_position(pairs as u64));
        bar.finish_and_clear();
        Ok(Box::new(matrix?))
    }

    fn store(&self, model: &Model, split: Split, scored: &dyn Scored) -> Result<Store> {
        let folder =
            self.dir().folder(&model.row, model.seed).join("scores").join(split.to_string());
        let (_, checkpoints) = self.dir().row(&model.row, model.seed)?;
        let run = self.dir().identity();
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
        Ok(Store { folder, disk: checkpoints.disk(), identity })
    }
}

#[cfg(test)]
mod tests;

//! What the loop asks of a method: a step, its scores, its state.

use std::fmt;
use std::path::Path;

use burn::tensor::Device;
use hubness::training::Similarity;
use itm_core::audit::{Candidates, Draws};
use itm_core::encoders::PatchGrid;
use itm_core::{Error, Relevance, Result};
use serde::de::DeserializeOwned;

use crate::checkpoint::Files;
use crate::encoded::{Captions, Encoded};
use crate::plan::{Bytes, Sizes};
use crate::source::Source;

/// A method's configuration of one row: what the runner asks before there is a model. A method is added by implementing it,
/// and by one line in [`rows`](crate::rows).
pub(crate) trait Recipe: DeserializeOwned {
    /// The method.
    type Method<'a>: Method;

    /// Refuses values that nothing can be trained with: a key, its range, its value.
    fn validate(&self) -> Result<()>;

    /// Epochs and batches.
    fn course(&self) -> Course;

    /// Makes it the recipe of another seed.
    fn set_seed(&mut self, seed: u64);

    /// Whether it trains with the truth, not only beside it.
    fn needs_truth(&self) -> bool {
        false
    }

    /// What it sees of an image.
    fn sees(&self) -> Sees {
        Sees::Features
    }

    /// How it reads captions.
    fn captions(&self) -> Result<Captions> {
        Ok(Captions::Words)
    }

    /// What a training takes in memory, without its data.
    fn memory(&self, sizes: &Sizes) -> Result<Bytes>;

    /// A fresh model.
    fn build<'a>(&self, inputs: Inputs<'a>) -> Result<Self::Method<'a>>;
}

/// What a method sees of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// A row of features.
    Features,
    /// The picture.
    Pictures,
}

/// How long a method trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// Passes over all captions.
    pub epochs: usize,
    /// Captions in a batch.
    pub batch: usize,
    /// What becomes of the captions that do not fill one.
    pub last: LastBatch,
}

/// What becomes of an epoch's captions that do not fill a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastBatch {
    /// They are left out: other ones in every epoch.
    Dropped,
    /// They are a smaller batch.
    Kept,
}

/// What a model is made for.
pub(crate) struct Inputs<'a> {
    /// Row and seed.
    pub(crate) name: String,
    /// Data and pictures.
    pub(crate) source: &'a Source,
    /// The splits as a model takes them in.
    pub(crate) encoded: &'a Encoded,
    /// True pairs of the training split, for audits alone; `None` where nothing is audited.
    pub(crate) truth: Option<&'a Relevance>,
    pub(crate) device: &'a Device,
}

/// The splits that a method is asked to embed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// What is trained on: to be explained, never to be measured.
    Train,
    /// Where epochs are chosen.
    Val,
    /// What is reported.
    Test,
}

/// Whether a step also tells what it drew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observe {
    /// Only the loss.
    No,
    /// The share of drawn negatives that are true pairs, and every candidate's posterior, where there is one.
    Yes,
}

/// A method under training.
pub trait Method {
    /// What a line about it begins with: row and seed.
    fn name(&self) -> &str;

    /// The first of its weights that holds a NaN or an infinity.
    fn non_finite(&self) -> Option<String>;

    /// Called before the first step of an epoch.
    fn begin_epoch(&mut self, epoch: usize);

    /// Told, before the first of them, which steps are left of an epoch: captions and seed of each, in order. What takes long
    /// to make ready can be begun.
    fn ahead(&mut self, _steps: &mut dyn Iterator<Item = (&[usize], u64)>) {}

    /// One training step on these captions and their images; all its randomness comes from `seed`.
    ///
    /// # Errors
    /// If the loss is not finite.
    fn step(&mut self, captions: &[usize], seed: u64, observe: Observe) -> Result<Step>;

    /// Embeddings of a split; of unit length where their similarity is the cosine.
    ///
    /// # Errors
    /// If a picture cannot be read.
    fn embed(&self, split: Split) -> Result<Embedded>;

    /// P(match | similarity) as the method has learnt it, if it has such a thing.
    fn posterior(&self) -> Option<MatchProbability> {
        None
    }

    /// The prior of that, whether or not it has learnt it yet.
    fn prior(&self) -> Option<f64> {
        None
    }

    /// How close the words of captions are to the patches of images, for each pair (image, caption) of a split; `None` where
    /// there are no such things.
    ///
    /// # Errors
    /// If a picture or a caption cannot be read.
    fn word_maps(&self, _split: Split, _pairs: &[(usize, usize)]) -> Result<Option<Vec<WordMaps>>> {
        Ok(None)
    }

    /// Hands over the files with everything that a resumed run needs.
    ///
    /// # Errors
    /// If a file cannot be written.
    fn save(&self, files: &mut Files) -> Result<()>;

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another model.
    fn load(&mut self, folder: &Path) -> Result<()>;
}

/// An error of a step, with the row it is of and the first weight that is to blame.
pub(crate) fn blamed(method: &impl Method, error: Error) -> Error {
    match error {
        Error::Invalid { place, expected, got } => {
            let tensor = method.non_finite().map(|name| format!(", first in {name}"));
            let got = got + &tensor.unwrap_or_default();
            Error::invalid(format!("{}, {place}", method.name()), expected, got)
        }
        other => other,
    }
}

/// How probable it is that two items of a similarity match.
pub struct MatchProbability {
    /// Share of matches before looking at the similarity.
    pub prior: f64,
    /// P(match | s).
    pub of: Box<dyn Fn(f64) -> f64>,
}

impl fmt::Debug for MatchProbability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MatchProbability").field("prior", &self.prior).finish_non_exhaustive()
    }
}

/// How close each word of a caption is to each patch of an image.
#[derive(Debug, Clone, PartialEq)]
pub struct WordMaps {
    /// Where the patches lie.
    pub grid: PatchGrid,
    /// The words in order, but for those that the method leaves out.
    pub words: Vec<WordMap>,
}

/// How close a word is to each patch of an image.
#[derive(Debug, Clone, PartialEq)]
pub struct WordMap {
    /// The word as the method reads it.
    pub word: String,
    /// Cosines, `[patches]`.
    pub values: Vec<f32>,
}

/// Embeddings of a split, row-major.
#[derive(Debug, Clone)]
pub struct Embedded {
    /// Width.
    pub dim: usize,
    /// `[images, dim]`
    pub images: Vec<f32>,
    /// `[texts, dim]`
    pub texts: Vec<f32>,
    /// How they are compared.
    pub similarity: Similarity,
}

/// What a step tells.
#[derive(Debug, Clone)]
pub struct Step {
    /// The loss.
    pub loss: f64,
    /// Norm of the gradient before clipping.
    pub grad_norm: f64,
    /// Share of drawn negatives with a positive hinge.
    pub active: f64,
    /// What was drawn, if asked and if a truth is known.
    pub draws: Option<Draws>,
    /// The candidates that survive the margin cut, if asked and if a truth is known.
    pub candidates: Option<Candidates>,
}

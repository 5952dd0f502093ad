//! The methods that can be trained: each has a file here, and an entry in [`ALL`].

mod fne;
mod hal;
mod naaf;
mod tags_dc;
mod targets;

use std::fmt;

use burn::tensor::Device;
use itm_core::data::WordVectors;
use itm_core::learn::{Items, Method};
use itm_core::start::{InputStatistics, Start};
use itm_core::text::{Marks, Word};
use itm_core::{Error, Relevance, Result};
use itm_kernels::Precision;
use toml::Table;

use crate::config::Config;
use crate::explanations::word_maps::Pair;
use crate::measures::Measure;
use crate::model::Model;
use crate::report::JudgedPair;
use crate::split::Split;
use crate::train::{self, Course};

pub use self::tags_dc::Negatives;
pub(crate) use self::tags_dc::{ModelSplit, TrainedModel, filler};
pub use crate::encoded::{Captions, Cleaning};
pub use crate::inputs::Sees;
pub use crate::pictures::View;
pub use crate::sizes::Sizes;
pub use crate::starts::StartAsked;

/// Every method.
pub const ALL: [&Kind; 4] = [&fne::KIND, &hal::KIND, &naaf::KIND, &tags_dc::KIND];

/// What is known about a method before there is a configuration.
#[derive(Debug)]
pub struct Kind {
    /// The method's name in `target.method`.
    pub name: &'static str,
    /// Whether its paper is about hubs, so that reports count them.
    pub about_hubs: bool,
    /// Reads a row.
    recipe: fn(&Config, &str) -> Result<Box<dyn Recipe>>,
    /// The sections of a preset by its name.
    preset: fn(&str) -> Table,
    /// What reports show only of this method.
    measures: fn(&Config) -> Vec<Box<dyn Measure>>,
    /// Judges the words of captions beside images, if the method does that.
    judge: Judge,
}

/// How a model judges pairs of a split; `None` if it judges none.
type Judge = fn(&Model, Split, &[Pair]) -> Result<Option<Vec<JudgedPair>>>;

impl Kind {
    /// The method of a target.
    ///
    /// # Errors
    /// If there is no such method; the error names all methods.
    pub fn of(config: &Config) -> Result<&'static Self> {
        let method = &config.target.method;
        ALL.into_iter().find(|kind| kind.name == method).ok_or_else(|| {
            let known = ALL.map(|kind| kind.name).join(", ");
            let place = config.place("target.method");
            Error::invalid(place, format!("one of {known}"), format!("`{method}`"))
        })
    }

    /// The method's own measures of a target.
    pub(crate) fn measures(&self, config: &Config) -> Vec<Box<dyn Measure>> {
        (self.measures)(config)
    }

    /// Pairs of a split as a model judges them, word by word; `None` if its method judges no words.
    ///
    /// # Errors
    /// If an item cannot be read.
    pub(crate) fn judge(
        &self,
        model: &Model,
        split: Split,
        pairs: &[Pair],
    ) -> Result<Option<Vec<JudgedPair>>> {
        (self.judge)(model, split, pairs)
    }
}

/// What a model is built from.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// Sizes of the data.
    pub sizes: &'a Sizes,
    /// Statistics of the training data, for encoders.
    pub inputs: &'a InputStatistics,
    /// The closed form that [`Recipe::start`] asks for.
    pub start: Option<&'a Start>,
    /// The ready word vectors that [`Recipe::needs_vectors`] asks for.
    pub vectors: Option<&'a WordVectors>,
    /// The training split as the row reads it.
    pub train: Items<'a>,
    /// The training captions as they are written.
    pub written: Written<'a>,
    /// True pairs of the training split; `None` unless the row [needs](Recipe::needs_truth) them.
    pub truth: Option<&'a Relevance>,
    /// Where the model computes.
    pub device: &'a Device,
}

/// Captions as they are written.
#[derive(Clone, Copy)]
pub struct Written<'a> {
    /// The captions.
    pub captions: &'a [String],
    /// The words of a caption as a row reads it, each with its range of the caption's numbers.
    pub words: &'a dyn Fn(&str) -> Result<Vec<Word>>,
}

impl fmt::Debug for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Written({} captions)", self.captions.len())
    }
}

/// The recipe of a row of a target.
///
/// # Errors
/// If the method or the row does not exist, or a key of the row is unknown, missing or impossible.
pub fn recipe(config: &Config, row: &str) -> Result<Box<dyn Recipe>> {
    (Kind::of(config)?.recipe)(config, row)
}

/// What the weights of a recipe are before the first step.
fn start_of(asked: Option<StartAsked>) -> train::Start {
    if asked.is_some() { train::Start::Ready } else { train::Start::Random }
}

/// A method's configuration of one row: what the runner must know before there is a model.
pub trait Recipe {
    /// Refuses values that make training impossible.
    ///
    /// # Errors
    /// Names a key, its range and its value.
    fn validate(&self) -> Result<()>;

    /// Refuses published weights that are missing or do not fit the configuration.
    ///
    /// # Errors
    /// Names the weights and the reason.
    fn find_weights(&self) -> Result<()> {
        Ok(())
    }

    /// Epochs and batches.
    fn course(&self) -> Course;

    /// The number of captions whose activations a step holds at once, and the key that lowers it.
    fn at_once(&self) -> (usize, &'static str) {
        (self.course().batch, "train.batch")
    }

    /// Sets the seed of the training.
    fn set_seed(&mut self, seed: u64);

    /// Whether the training uses the truth, and not only the audit of the training.
    fn needs_truth(&self) -> bool {
        false
    }

    /// Precision of the products in encoder blocks; `None` if no encoder has blocks.
    fn precision(&self) -> Option<Precision> {
        None
    }

    /// What the method sees of an image.
    fn sees(&self) -> Sees {
        Sees::Features
    }

    /// How the method reads captions.
    ///
    /// # Errors
    /// If published weights cannot be found.
    fn captions(&self) -> Result<Captions> {
        Ok(Captions::Words(Marks::Off))
    }

    /// The closed form that the weights begin with, if any.
    fn start(&self) -> Option<StartAsked> {
        None
    }

    /// Whether word embeddings begin with the vectors of the file that the target names.
    fn needs_vectors(&self) -> bool {
        false
    }

    /// A fresh model.
    ///
    /// # Errors
    /// If a value of the configuration makes training impossible, if `given` does not fit the configuration, or if published
    /// weights cannot be found.
    fn build(&self, given: &Given) -> Result<Box<dyn Method>>;
}

//! The methods that can be trained: each has a file here, an entry in [`ALL`], and a feature with its name.

#[cfg(feature = "fne")]
mod fne;
#[cfg(feature = "hal")]
mod hal;
#[cfg(feature = "naaf")]
mod naaf;
#[cfg(feature = "tags-dc")]
mod tags_dc;
mod targets;
mod towers;

use std::path::PathBuf;

use burn::tensor::Device;
use itm_core::data::{Regions, Split, WordVectors};
use itm_core::learn::{Items, Method};
use itm_core::start::{InputStatistics, Start};
use itm_core::text::Word;
use itm_core::{Error, Preset, Relevance, Result};
use itm_kernels::Precision;
use maud::Markup;
use serde::de::DeserializeOwned;
use toml::Table;

use crate::config::Config;
use crate::encoded::Reading;
use crate::measures::Measure;
use crate::model::Model;
use crate::report::Pair;
use crate::source::Source;
use crate::train::Course;

#[cfg(feature = "negatives")]
pub use self::tags_dc::Negatives;
#[cfg(feature = "negatives")]
pub(crate) use self::tags_dc::{TrainedModel, filler};
pub use crate::encoded::{Captions, Cleaning};
pub use crate::inputs::Sees;
pub use crate::pictures::View;
pub use crate::starts::ClosedForm;

/// The target that a search trains if nobody has made an index.
#[cfg(feature = "search")]
pub(crate) const SEARCHED: &str = "fne-scenes";

/// Every method of this build.
pub const ALL: &[&Kind] = &[
    #[cfg(feature = "fne")]
    &fne::KIND,
    #[cfg(feature = "hal")]
    &hal::KIND,
    #[cfg(feature = "naaf")]
    &naaf::KIND,
    #[cfg(feature = "tags-dc")]
    &tags_dc::KIND,
];

/// What is known about a method before there is a configuration.
#[derive(Debug)]
pub struct Kind {
    /// The method's name in `target.method`.
    pub name: &'static str,
    /// Whether its paper is about hubs, so that reports count them.
    pub about_hubs: bool,
    /// Reads a row.
    recipe: fn(&Config, &str) -> Result<Box<dyn Recipe>>,
    /// The sections of a preset.
    preset: fn(Preset) -> Table,
    /// What reports show only of this method.
    pub(crate) measures: fn(&Config) -> Vec<Box<dyn Measure>>,
    /// Shows how a model judges the words of captions beside images, if the method does that.
    pub(crate) judge: Judge,
}

/// Pairs of a split as a model judges them, word by word; `None` if its method judges no words. An error if an item cannot be read.
type Judge = fn(&Model, Split, &[Pair]) -> Result<Option<Markup>>;

impl Kind {
    /// The method of a target.
    ///
    /// # Errors
    /// If there is no such method; the error names all methods. A build without all methods cannot know, and names the feature.
    pub(crate) fn of(config: &Config) -> Result<&'static Self> {
        let method = &config.target.method;
        ALL.iter().copied().find(|kind| kind.name == method).ok_or_else(|| {
            let place = format!("{} = \"{method}\"", config.place("target.method"));
            if cfg!(not(feature = "methods")) {
                return Error::Feature { place, feature: "methods" };
            }
            let known: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
            let expected = format!("one of {}", known.join(", "));
            Error::invalid(config.place("target.method"), expected, format!("`{method}`"))
        })
    }
}

/// What a model is built from.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// Seed of the training.
    pub seed: u64,
    /// Sizes of the data.
    pub sizes: &'a Sizes,
    /// Statistics of the training data, for encoders.
    pub inputs: &'a InputStatistics,
    /// The closed form that [`Facts::start`] asks for.
    pub start: Option<&'a Start>,
    /// The ready word vectors that [`Facts::needs_vectors`] asks for.
    pub vectors: Option<&'a WordVectors>,
    /// The training split as the row reads it.
    pub train: Items<'a>,
    /// The training captions as they are written.
    pub captions: &'a [String],
    /// The words of a caption as a row reads it, each with its range of the caption's numbers.
    pub words: &'a dyn Fn(&str) -> Result<Vec<Word>>,
    /// True pairs of the training split; `None` unless the row [needs](Facts::needs_truth) them.
    pub truth: Option<&'a Relevance>,
    /// Where the model computes.
    pub device: &'a Device,
    /// Further devices, for parts of a step.
    pub replicas: &'a [Device],
}

/// Sizes that come from the data, not from the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Width of the image features, with the rows of other encoders beside them.
    pub features: usize,
    /// Width of the region features; 0 if there are none.
    pub region_width: usize,
    /// Number of words, word pieces or stems in the vocabulary.
    pub vocabulary: usize,
    /// Captions of the training split.
    pub captions: usize,
}

impl Sizes {
    pub(crate) fn of(source: &Source, reading: &Reading) -> Self {
        let train = source.part(Split::Train).0;
        Self {
            features: train.features.dim + train.embeddings.images.dim,
            region_width: train.regions.as_ref().map_or(0, Regions::dim),
            vocabulary: reading.vocabulary,
            captions: reading.texts(Split::Train).len(),
        }
    }
}

/// The recipe of a row of a target.
///
/// # Errors
/// If the method or the row does not exist, or a key of the row is unknown, missing or impossible.
pub fn recipe(config: &Config, row: &str) -> Result<Box<dyn Recipe>> {
    (Kind::of(config)?.recipe)(config, row)
}

/// A row's configuration, if `check` accepts it.
fn checked<R: Recipe + DeserializeOwned + 'static>(
    config: &Config,
    row: &str,
    check: fn(&R) -> Result<()>,
) -> Result<Box<dyn Recipe>> {
    let recipe: R = config.row(row)?;
    check(&recipe).map_err(config.inside(&format!("row.{row}")))?;
    Ok(Box::new(recipe))
}

/// A method's configuration of one row.
pub trait Recipe: Send + Sync {
    /// What the runner must know before there is a model.
    ///
    /// # Errors
    /// If published weights are missing or do not fit the configuration.
    fn facts(&self) -> Result<Facts>;

    /// A fresh model.
    ///
    /// # Errors
    /// If a value of the configuration makes training impossible, if `given` does not fit the configuration, or if published
    /// weights cannot be found.
    fn build(&self, given: &Given) -> Result<Box<dyn Method + Send>>;
}

/// What the runner must know of a row before there is a model.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Epochs and batches.
    pub course: Course,
    /// The number of captions whose activations a step holds at once, and the key that lowers it.
    pub at_once: (usize, &'static str),
    /// The number of parts of a step that may be on different devices.
    pub most_devices: usize,
    /// Whether the training uses the truth, and not only the audit of the training.
    pub needs_truth: bool,
    /// Precision of the products in encoder blocks; `None` if no encoder has blocks.
    pub precision: Option<Precision>,
    /// What the method sees of an image.
    pub sees: Sees,
    /// How the method reads captions.
    pub captions: Captions,
    /// The number of word pieces at which the text encoder cuts a caption.
    pub most_pieces: Option<usize>,
    /// Whether the same pictures come again and again, and the first blocks of their encoder do not learn.
    pub keeps_states: bool,
    /// Whether the weights begin as a published pair of towers, which can be evaluated as it is.
    pub published: bool,
    /// The closed form that the weights begin with, if any.
    pub start: Option<ClosedForm>,
    /// Folders of published weights whose rows the closed form joins.
    pub rows_of: Vec<PathBuf>,
    /// Whether heads that the report measures begin at random beside good weights. Then the weights before the first step are no candidate:
    /// their recall may be the best, but these heads have learnt nothing.
    pub new_heads: bool,
    /// Whether word embeddings begin with the vectors of the file that the target names.
    pub needs_vectors: bool,
}

impl Facts {
    /// A row of features and words that begins with random weights.
    pub(crate) fn new(course: Course) -> Self {
        let at_once = (course.batch, "train.batch");
        Self { course, at_once, most_devices: 1, ..Self::default() }
    }
}

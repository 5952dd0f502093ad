//! The methods that can be trained: a file each, and a line in [`ALL`].

mod fne;
mod hal;
mod naaf;
mod side;
mod tags_dc;

use std::fmt;

use burn::tensor::Device;
use itm_core::data::WordVectors;
use itm_core::learn::{Items, Method};
use itm_core::start::{InputStatistics, Start};
use itm_core::text::{Marks, Word};
use itm_core::{Relevance, Result};
use itm_kernels::Precision;

use crate::config::Config;
use crate::plan::{Bytes, Sizes};
use crate::train::{self, Course};

pub(crate) use self::tags_dc::{
    Caption, Reader, Sentence, Trained, TrainedPart, edited, judged, negatives, sentences,
};
pub use crate::encoded::{Captions, Cleaning};
pub use crate::inputs::Sees;
pub use crate::pictures::View;
pub use crate::starts::StartAsked;

/// Every method.
pub const ALL: [&Kind; 4] = [&fne::KIND, &hal::KIND, &naaf::KIND, &tags_dc::KIND];

/// What is known of a method before there is a configuration.
#[derive(Debug)]
pub struct Kind {
    /// As `target.method` names it.
    pub name: &'static str,
    /// Whether its paper is about hubs, so that reports count them.
    pub about_hubs: bool,
    /// Reads a row.
    recipe: fn(&Config, &str) -> Result<Box<dyn Recipe>>,
}

impl Kind {
    /// The method of a target.
    ///
    /// # Errors
    /// If there is no such method; those that there are.
    pub fn of(config: &Config) -> Result<&'static Self> {
        config.check_method(&ALL.map(|kind| kind.name))?;
        let known = |kind: &&Self| kind.name == config.target.method;
        Ok(ALL.into_iter().find(known).expect("it was checked"))
    }
}

/// What a model is made for.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// Sizes of the data.
    pub sizes: &'a Sizes,
    /// What encoders know of the training data besides.
    pub inputs: &'a InputStatistics,
    /// The closed form that [`Recipe::start`] asks for.
    pub start: Option<&'a Start>,
    /// The ready word vectors that [`Recipe::needs_vectors`] asks for.
    pub vectors: Option<&'a WordVectors>,
    /// The training split as the row reads it.
    pub train: Items<'a>,
    /// The training captions as they are written.
    pub written: Written<'a>,
    /// True pairs of the training split, for a method that [needs](Recipe::needs_truth) them.
    pub truth: Option<&'a Relevance>,
    /// Where it computes.
    pub device: &'a Device,
}

/// Captions as they are written.
#[derive(Clone, Copy)]
pub struct Written<'a> {
    /// The captions.
    pub captions: &'a [String],
    /// The words of a caption as a row reads it, and which of its numbers stand for each.
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

/// A method's configuration of one row: what the runner asks before there is a model.
pub trait Recipe {
    /// Refuses values that nothing can be trained with.
    ///
    /// # Errors
    /// A key, its range, its value.
    fn validate(&self) -> Result<()>;

    /// Refuses published weights that are missing or do not fit the configuration.
    ///
    /// # Errors
    /// Which weights, and why.
    fn find_weights(&self) -> Result<()> {
        Ok(())
    }

    /// Epochs and batches.
    fn course(&self) -> Course;

    /// Makes it the recipe of another seed.
    fn set_seed(&mut self, seed: u64);

    /// Whether it trains with the truth, not only beside it.
    fn needs_truth(&self) -> bool {
        false
    }

    /// Precision of its products; `None` where none of its encoders has blocks, whose precision can be chosen.
    fn precision(&self) -> Option<Precision> {
        None
    }

    /// What it sees of an image.
    fn sees(&self) -> Sees {
        Sees::Features
    }

    /// How it reads captions.
    ///
    /// # Errors
    /// If published weights are not to be found.
    fn captions(&self) -> Result<Captions> {
        Ok(Captions::Words(Marks::Off))
    }

    /// What a training takes in memory, without its data.
    ///
    /// # Errors
    /// If published weights are not to be found, or their sizes cannot be read.
    fn memory(&self, sizes: &Sizes) -> Result<Bytes>;

    /// Bytes that an evaluation holds beside its scores, for images and texts of these numbers of regions and words.
    fn evaluation(&self, _regions: &[usize], _words: &[usize]) -> u64 {
        0
    }

    /// The closed form that its weights begin with; `None` where they do not.
    fn start(&self) -> Option<StartAsked> {
        None
    }

    /// Whether its words begin with the vectors of the file that the target names.
    fn needs_vectors(&self) -> bool {
        false
    }

    /// Weights that it makes out of those it begins with, where it has more parts than the row that had these.
    fn made(&self, _sizes: &Sizes) -> u64 {
        0
    }

    /// A fresh model.
    ///
    /// # Errors
    /// If the configuration holds a value nothing can be trained with, what is given does not fit it, or published weights are
    /// not to be had.
    fn build(&self, given: &Given) -> Result<Box<dyn Method>>;
}

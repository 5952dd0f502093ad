//! The trait that a method's crate implements and a loop calls.

use std::any::Any;
use std::fmt;
use std::path::Path;

use super::{Batch, Items, Numbers};
use crate::audit::{Candidates, Draws};
use crate::encoders::Places;
use crate::scored::Scored;
use crate::text::Word;
use crate::{Relevance, Result};

/// A method under training. Whoever calls it writes the loop; whoever knows the method can find it behind the trait, as [`Any`].
pub trait Method: Any {
    /// Called before the first step of an epoch, counted from 0, with the training items.
    ///
    /// # Errors
    /// If an item cannot be read.
    fn begin_epoch(&mut self, epoch: usize, train: Items) -> Result<()>;

    /// One training step; all its randomness comes from `seed`.
    ///
    /// # Errors
    /// If the loss or the norm of its gradients is not finite: nothing that a next step depends on has changed then.
    fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step>;

    /// The scores of all images of a split against all its texts, in evaluation mode.
    ///
    /// # Errors
    /// If an item cannot be read.
    fn scored<'a>(&'a self, items: Items<'a>) -> Result<Box<dyn Scored + 'a>>;

    /// The first of its weights that holds a NaN or an infinity.
    fn non_finite(&self) -> Option<String>;

    /// Hands over the files with all that the next step depends on, each by name and contents.
    ///
    /// # Errors
    /// The errors of `write`.
    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()>;

    /// Takes up from a folder what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another model; the method stays as it was then.
    fn load(&mut self, folder: &Path) -> Result<()>;

    /// Takes up from such a folder, before the first step, what scores depend on; the optimiser and all counts begin anew.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another model; the method stays as it was then.
    fn start_from(&mut self, folder: &Path) -> Result<()>;

    /// P(match | similarity) as the method has learnt it; `None` if it learns none.
    fn posterior(&self) -> Option<MatchProbability> {
        None
    }

    /// The prior of that, whether or not it has learnt it yet.
    fn prior(&self) -> Option<f64> {
        None
    }

    /// How close the words of captions are to patches or regions of images, for each pair; `None` if the method compares no words
    /// with them.
    ///
    /// # Errors
    /// If a picture or a caption cannot be read.
    fn word_maps(&self, _pairs: WordPairs) -> Result<Option<Vec<WordMaps>>> {
        Ok(None)
    }
}

/// Whether a step also tells what it drew.
#[derive(Debug, Clone, Copy)]
pub enum Observe<'a> {
    /// Only loss, gradient and numbers.
    Off,
    /// Its negatives beside these true pairs of the training split, numbered as the ids of the batch: for an audit, never for
    /// the update.
    Against(&'a Relevance),
}

/// What a step tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The loss before the update.
    pub loss: f64,
    /// Norm of all gradients before clipping.
    pub grad_norm: f64,
    /// Share of the negatives that pull.
    pub active: f64,
    /// What the method has to say besides, by name.
    pub numbers: Numbers,
    /// What was drawn, if asked.
    pub draws: Option<Draws>,
    /// The candidates that a posterior has to tell apart, if asked and if there is one.
    pub candidates: Option<Candidates>,
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

/// Pairs whose words are to be looked at.
#[derive(Clone, Copy)]
pub struct WordPairs<'a> {
    /// The split.
    pub items: Items<'a>,
    /// Image and text of each pair.
    pub pairs: &'a [(usize, usize)],
    /// The words of a text, and which of its numbers stand for each.
    pub words: &'a dyn Fn(usize) -> Result<Vec<Word>>,
}

/// How close each word of a caption is to each place of an image.
#[derive(Debug, Clone, PartialEq)]
pub struct WordMaps {
    /// Where the places lie.
    pub places: Places,
    /// The pair's score, where it is made of the effects of words.
    pub score: Option<f32>,
    /// The words in order, but for those that the method leaves out; a mark that it reads as a word is one.
    pub words: Vec<WordMap>,
}

/// How close a word is to each place of an image.
#[derive(Debug, Clone, PartialEq)]
pub struct WordMap {
    /// The word as the method reads it.
    pub word: String,
    /// Cosines, `[places]`.
    pub values: Vec<f32>,
    /// What the word does to the score, where it is made of such effects.
    pub effect: Option<Effect>,
}

impl WordMap {
    /// The cosine of the closest place.
    pub fn best(&self) -> f32 {
        self.values.iter().copied().fold(f32::NEG_INFINITY, f32::max)
    }
}

/// What a word does to the score of a pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// What it takes, as a rule 0 or less; `None` if the method takes nothing for words without a match.
    pub negative: Option<f32>,
    /// What it adds.
    pub positive: f32,
    /// How much it attends to each place, `[places]`; all 0 if to none.
    pub weights: Vec<f32>,
}

impl Effect {
    /// The place that the word attends to most, the first of equal ones; `None` if it attends to none.
    ///
    /// ```
    /// use itm_core::learn::Effect;
    ///
    /// let of = |weights: [f32; 3]| Effect { negative: None, positive: 0.0, weights: weights.into() };
    /// assert_eq!(of([0.2, 0.4, 0.4]).place(), Some(1));
    /// assert_eq!(of([0.0; 3]).place(), None);
    /// ```
    pub fn place(&self) -> Option<usize> {
        let most = self.weights.iter().copied().fold(0.0, f32::max);
        self.weights.iter().position(|&w| w == most && w > 0.0)
    }
}

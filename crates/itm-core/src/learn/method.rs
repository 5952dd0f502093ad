//! The trait that the crate of a method implements and a training loop calls.

use std::any::Any;
use std::path::Path;

use super::{Batch, Items, Numbers};
use crate::audit::NegativeSet;
use crate::encoders::Places;
use crate::scored::Scored;
use crate::text::Word;
use crate::{Error, Result};

/// A method under training. The caller writes the training loop. As [`Any`], a trait object can be downcast to the
/// concrete method.
pub trait Method: Any {
    /// Starts an epoch, before its first step. Epochs count from 0; `train` is the training split.
    ///
    /// # Errors
    /// If an item cannot be read.
    fn begin_epoch(&mut self, epoch: usize, train: Items) -> Result<()>;

    /// Makes one training step; all its randomness comes from `seed`.
    ///
    /// # Errors
    /// If the loss or the norm of its gradients is not finite. Then nothing that a next step depends on has changed.
    fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step>;

    /// The scores of all images of a split against all its texts, in evaluation mode.
    ///
    /// # Errors
    /// If an item cannot be read.
    fn scored<'a>(&'a self, items: Items<'a>) -> Result<Box<dyn Scored + 'a>>;

    /// The first parameter that holds a NaN or an infinity.
    fn non_finite(&self) -> Option<String>;

    /// Passes the files with everything that the next step depends on to `write`, each with its name and contents.
    /// A name may begin with a folder: `adapter/adapter_config.json`.
    ///
    /// # Errors
    /// The errors of `write`.
    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()>;

    /// Restores the state that [`save`](Self::save) wrote into a folder.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another model. Then the method has not changed.
    fn load(&mut self, folder: &Path) -> Result<()>;

    /// Restores from such a folder, before the first step, only the state that scores depend on. The optimiser and all
    /// counts start anew.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another model. Then the method has not changed.
    fn start_from(&mut self, folder: &Path) -> Result<()>;

    /// Goes to the next phase of a training whose steps differ from phase to phase, as if the steps of this phase were made. `false` if
    /// there is none. A caller that measures steps measures each phase.
    fn next_phase(&mut self) -> bool {
        false
    }

    /// Lets the method keep states of pictures that no step changes, in at most these bytes, so that they are made once:
    /// [`Encoders::keep_states`](crate::towers::Encoders::keep_states). By default it keeps none, and none after [`load`](Self::load) and
    /// [`start_from`](Self::start_from).
    fn keep_states(&self, _bytes: u64) {}

    /// Writes the published model that learns, in its own files, which other programs read:
    /// [`Encoders::save`](crate::towers::Encoders::save).
    ///
    /// # Errors
    /// If what learns is not one published model, or the operating system refuses a write.
    fn export(&self, _folder: &Path) -> Result<()> {
        Err(Error::invalid("towers", "both of one published CLIP or SigLIP", "none"))
    }

    /// P(match | similarity) as the method has learnt it; `None` if the method does not learn it.
    fn posterior(&self) -> Option<MatchProbability> {
        None
    }

    /// The prior of this probability, also before the method has learnt the probability.
    fn prior(&self) -> Option<f64> {
        None
    }

    /// For each pair, the similarity of each word of the caption to each patch or region of the image; `None` if the
    /// method does not compare words with patches or regions.
    ///
    /// # Errors
    /// If a picture or a caption cannot be read.
    fn word_maps(&self, _pairs: WordPairs) -> Result<Option<Vec<WordMaps>>> {
        Ok(None)
    }
}

/// What a step reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observe {
    /// Loss, gradient and numbers.
    Off,
    /// Its negatives too, for an audit.
    Negatives,
}

/// The report of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The loss before the update.
    pub loss: f64,
    /// Norm of all gradients before clipping.
    pub grad_norm: f64,
    /// Share of the negatives that contribute to the gradient.
    pub active: f64,
    /// Other numbers of the method, by name.
    pub numbers: Numbers,
    /// The negatives that the step used, with images as anchors and with texts as anchors; `None` if they are not observed, or
    /// the method does not tell them. The caller may compare them with a truth: [`Draws::of`](crate::audit::Draws::of),
    /// [`Candidates::of`](crate::audit::Candidates::of).
    pub negatives: Option<[NegativeSet; 2]>,
}

/// The probability that two items match, given their similarity.
pub struct MatchProbability {
    /// Probability of a match before the similarity is known.
    pub prior: f64,
    /// P(match | s).
    pub of: Box<dyn Fn(f64) -> f64>,
}

/// The pairs whose words a caller wants to inspect.
#[derive(Clone, Copy)]
pub struct WordPairs<'a> {
    /// The split.
    pub items: Items<'a>,
    /// Image and text of each pair.
    pub pairs: &'a [(usize, usize)],
    /// The words of a text, with the positions of each word's numbers.
    pub words: &'a dyn Fn(usize) -> Result<Vec<Word>>,
}

/// The similarity of each word of a caption to each place of an image.
#[derive(Debug, Clone, PartialEq)]
pub struct WordMaps {
    /// The positions of the places in the image.
    pub places: Places,
    /// The score of the pair, if it is the sum of the effects of words.
    pub score: Option<f32>,
    /// The words in order, except words that the method leaves out. A mark that the method reads as a word counts as a
    /// word.
    pub words: Vec<WordMap>,
}

/// The similarity of a word to each place of an image.
#[derive(Debug, Clone, PartialEq)]
pub struct WordMap {
    /// The word as the method reads it.
    pub word: String,
    /// Cosines, `[places]`.
    pub values: Vec<f32>,
    /// The effect of the word on the score, if the score is made of such effects.
    pub effect: Option<Effect>,
}

impl WordMap {
    /// The cosine of the closest place.
    pub fn best(&self) -> f32 {
        self.values.iter().copied().fold(f32::NEG_INFINITY, f32::max)
    }
}

/// The effect of a word on the score of a pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The penalty, usually 0 or less; `None` if the method has no penalty for words without a match.
    pub negative: Option<f32>,
    /// What the word adds.
    pub positive: f32,
    /// Attention of the word to each place, `[places]`; all 0 if the word attends to no place.
    pub weights: Vec<f32>,
}

impl Effect {
    /// The place that the word attends to most, among equals the first; `None` if the word attends to no place.
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

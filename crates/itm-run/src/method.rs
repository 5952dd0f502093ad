//! What the loop asks of a method: a step, its scores, its state.

use std::path::Path;

use fne::audit::Candidates;
use itm_core::Result;
use serde::{Deserialize, Serialize};

use crate::checkpoint::Files;

/// The splits that a method is asked to embed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
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
    /// The share of drawn negatives that are true pairs.
    Draws,
    /// The same, and every candidate's posterior.
    Posterior,
}

/// A method under training.
pub trait Method {
    /// What a line about it begins with: row and seed.
    fn name(&self) -> &str;

    /// The first of its weights that holds a NaN or an infinity.
    fn non_finite(&self) -> Option<String>;

    /// Called before the first step of an epoch.
    fn begin_epoch(&mut self, epoch: usize);

    /// One training step on these captions and their images; all its randomness comes from `seed`.
    ///
    /// # Errors
    /// If the loss is not finite.
    fn step(&mut self, captions: &[usize], seed: u64, observe: Observe) -> Result<Step>;

    /// Unit-norm embeddings of a split.
    fn embed(&self, split: Split) -> Embedded;

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

/// Embeddings of a split, row-major.
#[derive(Debug, Clone)]
pub struct Embedded {
    /// Width.
    pub dim: usize,
    /// `[images, dim]`
    pub images: Vec<f32>,
    /// `[texts, dim]`
    pub texts: Vec<f32>,
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

/// Drawn negatives against the truth; sums, so that steps add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Draws {
    /// Anchors, both directions.
    pub anchors: f64,
    /// Sum over anchors: the drawn negative is a true pair.
    pub drawn: f64,
    /// Sum over anchors: share of true pairs among the candidates.
    pub uniform: f64,
    /// Sum over anchors: the hardest candidate is a true pair.
    pub hardest: f64,
}

impl Draws {
    /// Adds another step's sums.
    pub fn add(&mut self, other: &Self) {
        self.anchors += other.anchors;
        self.drawn += other.drawn;
        self.uniform += other.uniform;
        self.hardest += other.hardest;
    }
}

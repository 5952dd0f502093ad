//! Everything that was read, checked and understood.

use itm_core::data::Features;
use itm_core::scored::EmbeddingRows;
use itm_core::tiles::Embeddings;
use itm_core::{Pairs, Result, ScoreMatrix};

use super::messages::Messages;
use crate::report::PerDirection;
use crate::study::{Banks, ItemNames, TestScores};

/// The data that a command works on.
#[derive(Debug, Clone)]
pub struct InputData {
    /// Embeddings, a matrix or runs.
    pub scores: InputScores,
    /// Which texts belong to which image; none if a run came without judgements.
    pub pairs: Option<Pairs>,
    /// Names, if they are known; run files always have names.
    pub names: ItemNames,
    /// Held-out queries of each direction.
    pub bank: PerDirection<Features>,
    /// Notes, warnings and the files that were read.
    pub messages: Messages,
}

impl InputData {
    /// The scores as input of a study.
    pub(crate) fn test_scores(&self) -> TestScores<'_> {
        match &self.scores {
            InputScores::Embeddings(rows) => TestScores::All(rows),
            InputScores::Matrix(matrix) => TestScores::All(matrix),
            InputScores::Runs(runs) => TestScores::Runs(runs),
        }
    }

    /// Held-out embeddings as input of a study.
    ///
    /// # Errors
    /// If a value is not finite.
    pub(crate) fn banks(&self) -> Result<Banks<'_>> {
        let PerDirection { i2t: images, t2i: texts } = &self.bank;
        Ok(Banks {
            images: images.as_ref().map(|f| view("bank images", f)).transpose()?,
            texts: texts.as_ref().map(|f| view("bank texts", f)).transpose()?,
        })
    }
}

/// Rows as the tile engine takes them.
///
/// # Errors
/// If a value is not finite.
pub(crate) fn view<'a>(name: &str, features: &'a Features) -> Result<Embeddings<'a>> {
    Embeddings::new(name, features.rows(), features.dim, &features.values)
}

/// Where scores come from.
#[derive(Debug, Clone, PartialEq)]
pub enum InputScores {
    /// One row per image and one per text; of unit length unless `--raw` is set.
    Embeddings(EmbeddingRows),
    /// A precomputed matrix: every score is finite.
    Matrix(ScoreMatrix),
    /// One run file per direction, at least one; −∞ for pairs that the run does not hold.
    Runs(PerDirection<ScoreMatrix>),
}

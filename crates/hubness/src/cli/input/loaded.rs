//! Everything that was read, checked and understood.

use itm_core::data::{Features, FileHash};
use itm_core::tiles::{Embeddings, Tiles};
use itm_core::{Pairs, Result, ScoreMatrix};

use super::names::Names;
use super::runs::RunScores;

/// What a command works on.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Embeddings, a matrix or runs.
    pub scores: LoadedScores,
    /// Which texts belong to which image; none where a run came without judgements.
    pub pairs: Option<Pairs>,
    /// Names, where they are known; run files always have them.
    pub names: Names,
    /// Held-out embeddings.
    pub bank: LoadedBank,
    /// What was guessed, what was odd, what was read.
    pub messages: Messages,
}

impl Loaded {
    /// Number of images.
    pub fn images(&self) -> usize {
        match &self.scores {
            LoadedScores::Embeddings { images, .. } => images.rows(),
            LoadedScores::Matrix(matrix) => matrix.images(),
            LoadedScores::Runs { i2t, t2i } => any(i2t, t2i).map_or(0, |run| run.matrix.images()),
        }
    }

    /// Number of texts.
    pub fn texts(&self) -> usize {
        match &self.scores {
            LoadedScores::Embeddings { texts, .. } => texts.rows(),
            LoadedScores::Matrix(matrix) => matrix.texts(),
            LoadedScores::Runs { i2t, t2i } => any(i2t, t2i).map_or(0, |run| run.matrix.texts()),
        }
    }
}

fn any<'a>(a: &'a Option<RunScores>, b: &'a Option<RunScores>) -> Option<&'a RunScores> {
    a.as_ref().or(b.as_ref())
}

/// Where scores come from.
#[derive(Debug, Clone)]
pub enum LoadedScores {
    /// One row an image and one a text, of the same width; of unit length unless raw was asked for.
    Embeddings {
        /// `[images, d]`.
        images: Features,
        /// `[texts, d]`.
        texts: Features,
    },
    /// A precomputed matrix: every score is finite.
    Matrix(ScoreMatrix),
    /// One run file a direction, at least one of them.
    Runs {
        /// Images ask.
        i2t: Option<RunScores>,
        /// Texts ask.
        t2i: Option<RunScores>,
    },
}

/// Embeddings that are not those of the test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadedBank {
    /// Images: they ask the test texts.
    pub images: Option<Features>,
    /// Texts: they ask the test images.
    pub texts: Option<Features>,
}

/// Products of two sets of embeddings.
///
/// # Errors
/// If widths differ or a score could overflow.
pub fn tiles<'a>(images: &'a Features, texts: &'a Features) -> Result<Tiles<'a>> {
    let view = |name, f: &'a Features| Embeddings::new(name, f.rows(), f.dim, &f.values);
    Tiles::new(view("images", images)?, view("texts", texts)?)
}

/// What reading has to say beside its result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Messages {
    /// What was guessed or done on its own: to be said in every report.
    pub notes: Vec<String>,
    /// That of the notes which says how texts belong to images.
    pub pairs: Option<String>,
    /// What is odd, with counts: to be said where errors are.
    pub warnings: Vec<String>,
    /// Every file that was read.
    pub files: Vec<FileHash>,
}

impl Messages {
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// How texts belong to images, told or guessed.
    pub(crate) fn pairs(&mut self, note: String) {
        self.pairs = Some(note.clone());
        self.note(note);
    }

    pub(crate) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }
}

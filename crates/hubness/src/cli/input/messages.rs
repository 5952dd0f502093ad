//! What reading has to say beside its result.

use itm_core::data::FileHash;

/// What reading has to say beside its result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Messages {
    /// What was guessed or done on its own: to be said in every report.
    pub notes: Vec<String>,
    /// The note that says how texts belong to images.
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

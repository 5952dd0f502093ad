//! Notes and warnings from reading.

use crate::report::File;

/// Notes, warnings and file hashes from reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Messages {
    /// What the readers guessed or did unasked. Every report must say it.
    pub notes: Vec<String>,
    /// The note that says how texts belong to images.
    pub pairs: Option<String>,
    /// Whether nobody said how texts belong to images: the shapes decided.
    pub guessed: bool,
    /// What is odd in the data, with counts.
    pub warnings: Vec<String>,
    /// Every file that was read.
    pub files: Vec<File>,
}

impl Messages {
    /// Notes how texts belong to images, as given or as guessed.
    pub(crate) fn pairs(&mut self, note: String) {
        self.pairs = Some(note.clone());
        self.notes.push(note);
    }
}

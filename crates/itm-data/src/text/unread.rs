//! What replaces the reader of word pieces in a build without the feature `pieces`.

use std::ops::Range;
use std::path::Path;

use super::Word;
use crate::{Error, Result};

/// Captions to the numbers of BERT's word pieces: only in a build with the feature `pieces`.
#[derive(Debug, Clone)]
pub enum WordPieces {}

#[allow(missing_docs)] // the reader behind the feature documents them
impl WordPieces {
    /// # Errors
    /// Always: names the feature.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        Err(Error::Feature { place: folder.as_ref().display().to_string(), feature: "pieces" })
    }

    pub fn vocabulary(&self) -> usize {
        match *self {}
    }

    pub fn special(&self) -> Result<[u32; 5]> {
        match *self {}
    }

    pub fn words_and_parts(&self) -> Range<u32> {
        match *self {}
    }

    pub fn spelled(&self) -> Vec<String> {
        match *self {}
    }

    pub fn encode(&self, _: &str) -> Result<Vec<u32>> {
        match *self {}
    }

    pub fn words(&self, _: &str) -> Result<Vec<Word>> {
        match *self {}
    }
}

//! Replaces the word pieces of CLIP and SigLIP in a build without the feature `pieces`.

use std::path::Path;

use super::TextTowerShape;
use crate::{Error, Result};

/// Captions to the numbers of word pieces, in a build that cannot read them.
#[derive(Debug, Clone)]
pub enum DualPieces {}

impl DualPieces {
    /// Refuses the folder.
    ///
    /// # Errors
    /// Always: the build has no feature `pieces`.
    pub fn open(folder: impl AsRef<Path>, _: &TextTowerShape) -> Result<Self> {
        let place = folder.as_ref().display().to_string();
        Err(Error::Feature { place, feature: "pieces" })
    }

    /// Number of word pieces of the tower.
    pub fn vocabulary(&self) -> usize {
        match *self {}
    }

    /// The numbers of a caption's pieces, and whether the caption was cut.
    ///
    /// # Errors
    /// None.
    pub fn encode(&self, _: &str) -> Result<(Vec<u32>, bool)> {
        match *self {}
    }
}

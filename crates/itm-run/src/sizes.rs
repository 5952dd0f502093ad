//! Sizes of the data that a model is built for.

use itm_core::data::Regions;

use crate::encoded::Reading;
use crate::source::Source;
use crate::split::Split;

/// Sizes that come from the data, not from the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Width of the image features, with the rows of other encoders beside them.
    pub features: usize,
    /// Width of the region features; 0 if there are none.
    pub region_width: usize,
    /// Number of words, word pieces or stems in the vocabulary.
    pub vocabulary: usize,
    /// Captions of the training split.
    pub captions: usize,
}

impl Sizes {
    pub(crate) fn of(source: &Source, reading: &Reading) -> Self {
        let train = source.part(Split::Train).0;
        Self {
            features: train.features.dim + train.embeddings.images.dim,
            region_width: train.regions.as_ref().map_or(0, Regions::dim),
            vocabulary: reading.vocabulary,
            captions: reading.texts(Split::Train).len(),
        }
    }
}

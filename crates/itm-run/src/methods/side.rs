//! Memory of the encoders that several methods have.

use itm_core::encoders::ResidualShape;
use itm_core::encoders::sizes::{BagOfWords, GruText, Projection, Residual};

use crate::plan::Sizes;

/// Memory of an encoder.
pub(super) struct Side {
    /// Number of trainable values.
    pub(super) weights: u64,
    /// How many of the trainable values are in transformer blocks.
    pub(super) blocks: u64,
    /// Bytes of one item in a step.
    pub(super) item: u64,
    /// Bytes of one item that is ready before its step.
    pub(super) ahead: u64,
}

impl Side {
    /// Memory of an encoder whose items need no preparation before a step.
    fn at_hand(weights: u64, item: u64) -> Self {
        Self { weights, blocks: 0, item, ahead: 0 }
    }

    /// A map of features to a width, with or without a network beside it.
    pub(super) fn of_features(sizes: &Sizes, width: u64, beside: Option<&ResidualShape>) -> Self {
        let features = sizes.features as u64;
        let map = Projection { features, width };
        let beside = beside.map(|r| Residual { features, hidden: r.hidden as u64, width });
        let (weights, item) = beside.map_or((0, 0), |r| (r.weights(), r.activations()));
        Self::at_hand(map.weights() + weights, map.activations() + item)
    }

    /// Word vectors of a width and a gated recurrent unit.
    pub(super) fn of_words(sizes: &Sizes, word_width: u64, hidden: u64) -> Self {
        let text = GruText { vocabulary: sizes.vocabulary as u64, word_width, hidden };
        Self::at_hand(text.weights(), text.activations(sizes.words as u64))
    }

    /// A bag of words.
    pub(super) fn of_stems(sizes: &Sizes, width: u64) -> Self {
        let text = BagOfWords { terms: sizes.vocabulary as u64, width };
        Self::at_hand(text.weights(), text.activations(sizes.words as u64))
    }
}

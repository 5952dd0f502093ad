//! The splits as a method takes them in: transformed features, captions as numbers of words.

use itm_core::data::{CentredRoots, Dataset, Features, Part};
use itm_core::text::{Vocabulary, VocabularyOptions};

use crate::config::{ImageFeatures, Target};

/// One split.
pub(crate) struct EncodedPart {
    pub(crate) features: Features,
    pub(crate) words: Vec<Vec<u32>>,
}

/// All splits; vocabulary and mean come from the training split alone.
pub(crate) struct Encoded {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) train: EncodedPart,
    pub(crate) val: EncodedPart,
    pub(crate) test: EncodedPart,
}

impl Encoded {
    pub(crate) fn new(data: &Dataset, target: &Target) -> Self {
        let options = VocabularyOptions { min_count: target.min_word_count, ..Default::default() };
        let vocabulary = Vocabulary::build(&data.train.captions, options);
        let centred = match target.features {
            ImageFeatures::Given => None,
            ImageFeatures::CentredRoots => Some(CentredRoots::of(&data.train.features)),
        };
        let part = |part: &Part| EncodedPart {
            features: match &centred {
                None => part.features.clone(),
                Some(centred) => centred.apply(&part.features),
            },
            words: part.captions.iter().map(|c| vocabulary.encode(c, target.max_words)).collect(),
        };
        let (train, val, test) = (part(&data.train), part(&data.val), part(&data.test));
        Self { vocabulary, train, val, test }
    }
}

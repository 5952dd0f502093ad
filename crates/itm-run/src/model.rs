//! A model of a row and seed, with its data.

use itm_core::Result;
use itm_core::data::Split;
use itm_core::learn::{Method, Word, WordMaps, WordPairs};
use itm_core::scored::Scored;

use crate::encoded::Reading;
use crate::inputs::Inputs;
use crate::source::Source;
use crate::train::Plan;

/// A model of a row and seed, with its data.
pub(crate) struct Model<'a> {
    pub(crate) row: String,
    pub(crate) seed: u64,
    pub(crate) plan: Plan,
    pub(crate) method: Box<dyn Method + Send>,
    pub(crate) inputs: Inputs<'a>,
    pub(crate) source: &'a Source,
    /// The captions as the row reads them.
    pub(crate) reading: &'a Reading,
}

impl Model<'_> {
    /// Row and seed, as lines name the model.
    pub(crate) fn name(&self) -> String {
        format!("{}, seed {}", self.row, self.seed)
    }

    /// The scores of a split.
    ///
    /// # Errors
    /// If an item cannot be read.
    pub(crate) fn scored(&self, split: Split) -> Result<Box<dyn Scored + '_>> {
        self.method.scored(self.inputs.items(split))
    }

    /// Maps of the words of pairs of a split; `None` if the method makes no maps.
    ///
    /// # Errors
    /// If an item cannot be read.
    pub(crate) fn word_maps(
        &self,
        split: Split,
        pairs: &[(usize, usize)],
    ) -> Result<Option<Vec<WordMaps>>> {
        let captions = &self.source.part(split).0.captions;
        let words = |text: usize| -> Result<Vec<Word>> { self.reading.words(&captions[text]) };
        let items = self.inputs.items(split);
        self.method.word_maps(WordPairs { items, pairs, words: &words })
    }
}

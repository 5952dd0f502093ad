//! NAAF and the models beside it for the runner: their inputs, and how they are built.

mod word_scores;

use itm_core::learn::Method;
use itm_core::start::TextForm;
use itm_core::{Error, Result};
use naaf::{Boundary, Naaf, NaafConfig, NaafEncoders, NaafTrainConfig, Preset, VectorsFrom};

use self::word_scores::WordScores;
use super::targets::preset_sections;
use super::{Given, Kind, Recipe, Sees, StartAsked, start_of};
use crate::train::{Course, LastBatch};

pub(super) const KIND: Kind = Kind {
    name: "naaf",
    about_hubs: false,
    recipe: |config, row| Ok(Box::new(config.row::<NaafConfig>(row)?)),
    preset: |name| preset_sections(name, Preset::config),
    measures: |_| vec![Box::new(WordScores::default())],
    judge: |_, _, _| Ok(None),
};

impl Recipe for NaafConfig {
    fn validate(&self) -> Result<()> {
        self.check()
    }

    fn course(&self) -> Course {
        let NaafTrainConfig { epochs, batch, .. } = self.train;
        Course::of_epochs(epochs, batch, LastBatch::Kept, start_of(self.start()))
    }

    fn set_seed(&mut self, seed: u64) {
        self.train.seed = seed;
    }

    fn sees(&self) -> Sees {
        Sees::Regions
    }

    fn start(&self) -> Option<StartAsked> {
        let options = self.model.closed_form()?.clone();
        Some(StartAsked { options, width: self.model.embed_dim, form: TextForm::Words })
    }

    fn needs_vectors(&self) -> bool {
        self.model.word_vectors == VectorsFrom::Given
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method>> {
        let Given { sizes, start, vectors, device, .. } = *given;
        let (model, seed) = (&self.model, self.train.seed);
        let missing = |key, what| Error::invalid(key, what, "none");
        let mut encoders =
            NaafEncoders::new(model, sizes.region_width, sizes.vocabulary, seed, device)?;
        if model.closed_form().is_some() {
            let start = start.ok_or_else(|| missing("model.start", "maps of a closed form"))?;
            encoders = encoders.with_start(start)?;
        }
        if self.needs_vectors() {
            let vectors = vectors.ok_or_else(|| missing("model.word_vectors", "vectors"))?;
            encoders = encoders.with_vectors(vectors)?;
        }
        let naaf = Naaf::from_encoders(self, encoders, Boundary::default())?;
        Ok(Box::new(naaf.with_epochs_of(sizes.captions.div_ceil(self.train.batch))))
    }
}

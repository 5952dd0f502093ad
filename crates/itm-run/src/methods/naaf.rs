//! NAAF and the models beside it for the runner: their inputs, and how they are built.

use itm_core::learn::Method;
use itm_core::start::TextForm;
use itm_core::{Error, Result};
use naaf::{Naaf, NaafConfig, TrainConfig, VectorsFrom};

use super::{Given, Kind, Recipe, Sees, StartAsked, start_of};
use crate::train::{Course, LastBatch};

pub(super) const KIND: Kind = Kind {
    name: "naaf",
    about_hubs: false,
    recipe: |config, row| Ok(Box::new(config.row::<NaafConfig>(row)?)),
};

impl Recipe for NaafConfig {
    fn validate(&self) -> Result<()> {
        self.check()
    }

    fn course(&self) -> Course {
        let TrainConfig { epochs, batch, .. } = self.train;
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
        let model = Naaf::new(self, sizes.region_width, sizes.vocabulary, device)?;
        let model = model.with_epochs_of(sizes.captions.div_ceil(self.train.batch));
        let model = match start.filter(|_| self.model.closed_form().is_some()) {
            Some(start) => model.with_start(start)?,
            None => model,
        };
        Ok(Box::new(match (self.needs_vectors(), vectors) {
            (true, Some(vectors)) => model.with_vectors(vectors)?,
            (true, None) => return Err(Error::invalid("model.word_vectors", "vectors", "none")),
            (false, _) => model,
        }))
    }
}

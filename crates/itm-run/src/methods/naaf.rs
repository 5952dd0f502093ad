//! NAAF and the models beside it for the runner: their inputs, and how they are built.

mod word_scores;

use itm_core::learn::Method;
use itm_core::start::TextForm;
use itm_core::{Error, Result};
use naaf::{Boundary, Naaf, NaafConfig, NaafEncoders, NaafTrainConfig, VectorsFrom};

use self::word_scores::WordScores;
use super::targets::sections;
use super::{ClosedForm, Facts, Given, Kind, Recipe, Sees, checked, towers};
use crate::train::Course;

pub(super) const KIND: Kind = Kind {
    name: "naaf",
    about_hubs: false,
    recipe: |config, row| checked(config, row, NaafConfig::check),
    preset: |preset| sections(NaafConfig::preset(preset)),
    measures: |_| vec![Box::new(WordScores::default())],
    judge: |_, _, _| Ok(None),
};

impl Recipe for NaafConfig {
    fn facts(&self) -> Result<Facts> {
        let NaafTrainConfig { epochs, batch, .. } = self.train;
        let model = &self.model;
        let facts = Facts::new(Course { epochs, batch, ..Course::default() });
        if let Some(pair) = model.pair() {
            return Ok(Facts {
                at_once: (batch.min(self.train.micro_batch()), "train.micro_batch"),
                precision: Some(self.train.precision),
                ..towers::facts(&pair, &self.train.parts, facts)?
            });
        }
        Ok(Facts {
            sees: Sees::Regions,
            start: ClosedForm::of(model.closed_form(), model.embed_dim, TextForm::Words),
            needs_vectors: model.word_vectors == VectorsFrom::Given,
            ..facts
        })
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method + Send>> {
        let Given { seed, sizes, start, vectors, device, .. } = *given;
        let mut config = self.clone();
        config.train.seed = seed;
        let model = &config.model;
        let steps = sizes.captions.div_ceil(self.train.batch);
        if model.towers.is_some() {
            let naaf = Naaf::new(&config, 0, sizes.vocabulary, device)?;
            return Ok(Box::new(naaf.with_epochs_of(steps)));
        }
        let missing = |key, what| Error::invalid(key, what, "none");
        let mut encoders =
            NaafEncoders::new(model, sizes.region_width, sizes.vocabulary, seed, device)?;
        if model.closed_form().is_some() {
            let start = start.ok_or_else(|| missing("model.start", "maps of a closed form"))?;
            encoders = encoders.with_start(start)?;
        }
        if model.word_vectors == VectorsFrom::Given {
            let vectors = vectors.ok_or_else(|| missing("model.word_vectors", "vectors"))?;
            encoders = encoders.with_vectors(vectors)?;
        }
        let naaf = Naaf::from_encoders(&config, encoders, Boundary::default())?;
        Ok(Box::new(naaf.with_epochs_of(steps)))
    }
}

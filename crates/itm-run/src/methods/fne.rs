//! FNE for the runner: its inputs, and how its model is built.

use fne::{Exclude, Fne, FneConfig, TrainConfig};
use itm_core::Result;
use itm_core::learn::Method;

use super::targets::sections;
use super::{Facts, Given, Kind, Recipe, checked, towers};
use crate::train::{Course, LastBatch};

pub(super) const KIND: Kind = Kind {
    name: "fne",
    about_hubs: false,
    recipe: |config, row| checked(config, row, FneConfig::validate),
    preset: |preset| sections(FneConfig::preset(preset)),
    measures: |_| vec![],
    judge: |_, _, _| Ok(None),
};

impl Recipe for FneConfig {
    fn facts(&self) -> Result<Facts> {
        let TrainConfig { epochs, batch, micro_batch, precision, .. } = self.train;
        let last = LastBatch::Dropped;
        let facts = Facts::new(Course { epochs, batch, last, ..Course::default() });
        Ok(Facts {
            at_once: (batch.min(micro_batch), "train.micro_batch"),
            most_devices: batch.div_ceil(micro_batch.max(1)),
            needs_truth: self.sampler.exclude == Exclude::Truth,
            precision: self.model.has_blocks().then_some(precision),
            ..towers::facts(&self.model, &self.train.parts, facts)?
        })
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method + Send>> {
        let Given { seed, sizes, inputs, start, truth, device, replicas, .. } = *given;
        let mut config = self.clone();
        config.train.seed = seed;
        let model =
            Fne::new(&config, sizes.features, sizes.vocabulary, device)?.with_replicas(replicas);
        let mut model =
            model.with_epochs_of(sizes.captions / self.train.batch).with_inputs(inputs)?;
        if let Some(start) = start {
            model = model.with_start(start)?;
        }
        Ok(Box::new(match truth {
            Some(truth) => model.with_truth(truth.clone()),
            None => model,
        }))
    }
}

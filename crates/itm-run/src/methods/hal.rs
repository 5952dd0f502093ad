//! HAL and its rivals for the runner: their inputs, and how their models are built.

use hubness::training::{Hal, HalConfig, HalTrainConfig, Objective};
use itm_core::Result;
use itm_core::learn::Method;

use super::targets::sections;
use super::{Facts, Given, Kind, Recipe, checked, towers};
use crate::train::Course;

pub(super) const KIND: Kind = Kind {
    name: "hal",
    about_hubs: true,
    recipe: |config, row| checked(config, row, HalConfig::validate),
    preset: |preset| sections(HalConfig::preset(preset, Objective::Sum)),
    measures: |_| vec![],
    judge: |_, _, _| Ok(None),
};

impl Recipe for HalConfig {
    fn facts(&self) -> Result<Facts> {
        let HalTrainConfig { epochs, batch, .. } = self.train;
        let model = self.model.towers();
        let facts = Facts::new(Course { epochs, batch, ..Course::default() });
        Ok(Facts {
            at_once: (batch.min(self.train.micro_batch()), "train.micro_batch"),
            most_devices: batch.div_ceil(self.train.micro_batch().max(1)),
            precision: model.has_blocks().then_some(self.train.precision),
            ..towers::facts(&model, &self.train.parts, facts)?
        })
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method + Send>> {
        let Given { seed, sizes, inputs, start, device, replicas, .. } = *given;
        let mut config = self.clone();
        config.train.seed = seed;
        let model = Hal::new(&config, sizes.features, sizes.vocabulary, device, seed)?
            .with_replicas(replicas);
        let steps = sizes.captions.div_ceil(self.train.batch);
        let model = model.with_epochs_of(steps).with_inputs(inputs)?;
        Ok(Box::new(match start {
            Some(start) => model.with_start(start)?,
            None => model,
        }))
    }
}

//! HAL and its rivals for the runner: their inputs, and how their models are built.

use hubness::Preset;
use hubness::training::{Hal, HalConfig, HalTrainConfig, Objective, TextKind};
use itm_core::Result;
use itm_core::learn::Method;
use itm_core::start::TextForm;
use itm_core::text::Marks;

use super::targets::preset_sections;
use super::{Captions, Given, Kind, Recipe, StartAsked, start_of};
use crate::train::{Course, LastBatch};

pub(super) const KIND: Kind = Kind {
    name: "hal",
    about_hubs: true,
    recipe: |config, row| Ok(Box::new(config.row::<HalConfig>(row)?)),
    preset: |name| preset_sections(name, |preset: Preset| preset.training(Objective::Sum)),
    measures: |_| vec![],
    judge: |_, _, _| Ok(None),
};

impl Recipe for HalConfig {
    fn validate(&self) -> Result<()> {
        Self::validate(self)
    }

    fn course(&self) -> Course {
        let HalTrainConfig { epochs, batch, .. } = self.train;
        Course::of_epochs(epochs, batch, LastBatch::Kept, start_of(self.start()))
    }

    fn set_seed(&mut self, seed: u64) {
        self.train.seed = seed;
    }

    fn captions(&self) -> Result<Captions> {
        Ok(match self.model.text {
            TextKind::Gru => Captions::Words(Marks::Off),
            TextKind::Bag => Captions::Stems,
        })
    }

    fn start(&self) -> Option<StartAsked> {
        let options = self.model.closed_form()?.clone();
        let form = TextForm::Stems(self.model.bag_pooling);
        Some(StartAsked { options, width: self.model.embed_dim, form })
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method>> {
        let Given { sizes, inputs, start, device, .. } = *given;
        let seed = self.train.seed;
        let model = Hal::new(self, sizes.features, sizes.vocabulary, device, seed)?;
        let steps = sizes.captions.div_ceil(self.train.batch);
        let model = model.with_epochs_of(steps).with_inputs(inputs)?;
        Ok(Box::new(match start.filter(|_| self.model.closed_form().is_some()) {
            Some(start) => model.with_start(start)?,
            None => model,
        }))
    }
}

//! HAL and its rivals for the runner: their inputs, and how their models are built.

use hubness::Preset;
use hubness::training::{Hal, HalConfig, HalTrainConfig, Objective, TextKind};
use itm_core::Result;
use itm_core::learn::Method;
use itm_core::start::TextForm;
use itm_core::text::Marks;

use super::targets::preset_sections;
use super::{Captions, ClosedForm, Facts, Given, Kind, Recipe};
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

    fn facts(&self) -> Result<Facts> {
        let HalTrainConfig { epochs, batch, .. } = self.train;
        let (model, form) = (&self.model, TextForm::Stems(self.model.bag_pooling));
        Ok(Facts {
            captions: match model.text {
                TextKind::Gru => Captions::Words(Marks::Off),
                TextKind::Bag => Captions::Stems,
            },
            start: ClosedForm::of(model.closed_form(), model.embed_dim, form),
            ..Facts::new(Course::of_epochs(epochs, batch, LastBatch::Kept))
        })
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method>> {
        let Given { seed, sizes, inputs, start, device, .. } = *given;
        let mut config = self.clone();
        config.train.seed = seed;
        let model = Hal::new(&config, sizes.features, sizes.vocabulary, device, seed)?;
        let steps = sizes.captions.div_ceil(self.train.batch);
        let model = model.with_epochs_of(steps).with_inputs(inputs)?;
        Ok(Box::new(match start.filter(|_| self.model.closed_form().is_some()) {
            Some(start) => model.with_start(start)?,
            None => model,
        }))
    }
}

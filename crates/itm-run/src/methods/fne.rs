//! FNE for the runner: its inputs, and how its model is built.

use fne::{
    BagConfig, Exclude, Fne, FneConfig, ImageConfig, ModelConfig, Preset, TextConfig, TrainConfig,
};
use itm_core::Result;
use itm_core::learn::Method;
use itm_core::start::TextForm;
use itm_core::text::Marks;

use super::targets::preset_sections;
use super::{ClosedForm, Facts, Given, Kind, Recipe, Sees};
use crate::encoded::{Captions, Cleaning};
use crate::pictures::View;
use crate::train::{Course, LastBatch};

pub(super) const KIND: Kind = Kind {
    name: "fne",
    about_hubs: false,
    recipe: |config, row| Ok(Box::new(config.row::<FneConfig>(row)?)),
    preset: |name| preset_sections(name, Preset::config),
    measures: |_| vec![],
    judge: |_, _, _| Ok(None),
};

impl Recipe for FneConfig {
    fn validate(&self) -> Result<()> {
        Self::validate(self)
    }

    fn facts(&self) -> Result<Facts> {
        self.model.check_weights()?;
        let TrainConfig { epochs, batch, micro_batch, precision, .. } = self.train;
        Ok(Facts {
            at_once: (batch.min(micro_batch), "train.micro_batch"),
            needs_truth: self.sampler.exclude == Exclude::Truth,
            precision: self.model.has_blocks().then_some(precision),
            sees: sees(&self.model.image),
            captions: captions(&self.model.text)?,
            most_pieces: match &self.model.text {
                TextConfig::Bert(bert) => Some(bert.max_length),
                TextConfig::Gru(_) | TextConfig::Bag(_) => None,
            },
            start: start(&self.model),
            ..Facts::new(Course::of_epochs(epochs, batch, LastBatch::Dropped))
        })
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method>> {
        let Given { seed, sizes, inputs, start, truth, device, .. } = *given;
        let mut config = self.clone();
        config.train.seed = seed;
        let model = Fne::new(&config, sizes.features, sizes.vocabulary, device)?;
        let mut model =
            model.with_epochs_of(sizes.captions / self.train.batch).with_inputs(inputs)?;
        if let Some(start) = start.filter(|_| self.model.closed_form().is_some()) {
            model = model.with_start(start)?;
        }
        Ok(Box::new(match truth {
            Some(truth) => model.with_truth(truth.clone()),
            None => model,
        }))
    }
}

fn sees(image: &ImageConfig) -> Sees {
    let ImageConfig::Vit(vit) = image else { return Sees::Features };
    Sees::Pictures(View { augment: vit.augment(), transform: vit.transform() })
}

fn captions(text: &TextConfig) -> Result<Captions> {
    let bert = match text {
        TextConfig::Gru(_) => return Ok(Captions::Words(Marks::Off)),
        TextConfig::Bag(_) => return Ok(Captions::Stems),
        TextConfig::Bert(bert) => bert,
    };
    Ok(match bert.weights.folder()? {
        Some(folder) => Captions::Pieces(folder, Cleaning::Cleaned),
        None => Captions::Words(Marks::StartEnd),
    })
}

fn start(model: &ModelConfig) -> Option<ClosedForm> {
    let TextConfig::Bag(BagConfig { pooling }) = model.text else { return None };
    ClosedForm::of(model.closed_form(), model.embed_dim, TextForm::Stems(pooling))
}

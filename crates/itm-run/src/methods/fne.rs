//! FNE for the runner: its inputs, and how its model is built.

use fne::{BagConfig, Exclude, Fne, FneConfig, ImageConfig, Preset, TextConfig, TrainConfig};
use itm_core::Result;
use itm_core::learn::Method;
use itm_core::start::TextForm;
use itm_core::text::Marks;
use itm_kernels::Precision;

use super::targets::preset_sections;
use super::{Given, Kind, Recipe, Sees, StartAsked, start_of};
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

    fn find_weights(&self) -> Result<()> {
        self.model.check_weights()
    }

    fn course(&self) -> Course {
        let TrainConfig { epochs, batch, .. } = self.train;
        Course::of_epochs(epochs, batch, LastBatch::Dropped, start_of(self.start()))
    }

    fn at_once(&self) -> (usize, &'static str) {
        (self.train.batch.min(self.train.micro_batch), "train.micro_batch")
    }

    fn set_seed(&mut self, seed: u64) {
        self.train.seed = seed;
    }

    fn needs_truth(&self) -> bool {
        self.sampler.exclude == Exclude::Truth
    }

    fn precision(&self) -> Option<Precision> {
        self.model.has_blocks().then_some(self.train.precision)
    }

    fn sees(&self) -> Sees {
        let ImageConfig::Vit(vit) = &self.model.image else { return Sees::Features };
        Sees::Pictures(View { augment: vit.augment(), transform: vit.transform() })
    }

    fn captions(&self) -> Result<Captions> {
        let bert = match &self.model.text {
            TextConfig::Gru(_) => return Ok(Captions::Words(Marks::Off)),
            TextConfig::Bag(_) => return Ok(Captions::Stems),
            TextConfig::Bert(bert) => bert,
        };
        Ok(match bert.weights.folder()? {
            Some(folder) => Captions::Pieces(folder, Cleaning::Cleaned),
            None => Captions::Words(Marks::StartEnd),
        })
    }

    fn start(&self) -> Option<StartAsked> {
        let TextConfig::Bag(BagConfig { pooling }) = self.model.text else { return None };
        let options = self.model.closed_form()?.clone();
        Some(StartAsked { options, width: self.model.embed_dim, form: TextForm::Stems(pooling) })
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method>> {
        let Given { sizes, inputs, start, truth, device, .. } = *given;
        let model = Fne::new(self, sizes.features, sizes.vocabulary, device)?;
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

//! The state of a run on disk.

use std::path::Path;

use burn::tensor::{Tensor, TensorData};
use itm_core::Result;
use itm_core::checkpoint::Writer;
use itm_core::learn::SavedState;

use super::bank::MemoryBank;
use super::step::Hal;

/// The name of this method in the kinds of the files.
const METHOD: &str = "hal";

impl Hal {
    /// Writes all that the next step depends on, each file by name and contents.
    pub(super) fn write(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        let modules = |model: &mut Writer| model.module("encoders", self.encoders());
        self.learner.save(METHOD, write, modules, |state, updates| {
            let (n, d) = (self.bank.len(), self.config.model.embed_dim);
            let [images, texts] = self.bank.embeddings();
            state.f32s("bank.images", &[n, d], &images);
            state.f32s("bank.texts", &[n, d], &texts);
            state.i64s("bank.captions", self.bank.captions());
            [updates, n as i64]
        })
    }

    /// The model that [`write`](Self::write) wrote. On the same backend, its next step is bit for bit the step of an
    /// uninterrupted run.
    pub(super) fn read(&self, folder: &Path) -> Result<Self> {
        let saved = SavedState::open(METHOD, folder)?;
        let [.., updates, n] = saved.counts;
        let encoders = saved.model.module("encoders", self.encoders().clone())?;
        let learner = self.learner.restored(encoders, &saved, updates)?;
        let (n, d) = (n as usize, self.config.model.embed_dim);
        let device = self.encoders().image.linear.weight.val().device().inner();
        let rows = |name: &str| -> Result<Tensor<2>> {
            let values = saved.state.f32s(name, &[n, d])?;
            Ok(Tensor::from_data(TensorData::new(values, [n, d]), &device))
        };
        let (images, texts) = (rows("bank.images")?, rows("bank.texts")?);
        let captions = saved.state.i64s("bank.captions", n)?;
        saved.nothing_else()?;
        let mut bank = MemoryBank::default();
        if n > 0 {
            bank.push(images, texts, &captions);
        }
        let (config, steps_per_epoch) = (self.config.clone(), self.steps_per_epoch);
        Ok(Self { learner, bank, config, steps_per_epoch })
    }

    /// A model before its first step with the encoders that [`write`](Self::write) wrote.
    pub(super) fn begun_from(&self, folder: &Path) -> Result<Self> {
        let SavedState { model, .. } = SavedState::open(METHOD, folder)?;
        let encoders = model.module("encoders", self.encoders().clone())?;
        model.nothing_else()?;
        let (config, steps_per_epoch) = (self.config.clone(), self.steps_per_epoch);
        let (learner, bank) = (self.learner.begun(encoders), MemoryBank::default());
        Ok(Self { learner, bank, config, steps_per_epoch })
    }
}

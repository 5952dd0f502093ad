//! The state of a run on disk.

use std::path::Path;

use itm_core::Result;
use itm_core::checkpoint::CheckpointWriter;
use itm_core::learn::SavedState;

use super::TagsDc;
use super::models::Models;
use crate::model::Uniter;

/// The method's name in the kinds of the files.
const METHOD: &str = "tags-dc";
const MODULE: &str = "uniter";
const GENERATOR: &str = "generator";

impl TagsDc {
    /// Writes all that the next step depends on. `write` gets each file's name and contents.
    pub(super) fn write(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        let model = |model: &mut CheckpointWriter| {
            model.module(MODULE, self.model());
            if let Some(generator) = self.generator() {
                model.module(GENERATOR, generator);
            }
        };
        self.learner.save(METHOD, write, model, |_, updates| [updates, 0])
    }

    /// The model that [`write`](Self::write) wrote.
    pub(super) fn read(&self, folder: &Path) -> Result<Self> {
        let saved = SavedState::open(METHOD, folder)?;
        let [.., updates, _] = saved.counts;
        let generator = |known: &Option<Uniter>| {
            known.clone().map(|known| saved.model.module(GENERATOR, known)).transpose()
        };
        let matcher = saved.model.module(MODULE, self.model().clone())?;
        let (own, fixed) = (generator(&self.learner.module().own)?, generator(&self.fixed)?);
        let learner = self.learner.restored(Models { matcher, own }, &saved, updates)?;
        saved.nothing_else()?;
        Ok(Self { learner, fixed, ..self.clone() })
    }

    /// A model before its first step, with the weights that [`write`](Self::write) wrote for a row that may lack the word heads.
    pub(super) fn begun_from(&self, folder: &Path) -> Result<Self> {
        let SavedState { model: file, .. } = SavedState::open(METHOD, folder)?;
        let model = |module: &str| -> Result<Uniter> {
            let own = self.model().clone();
            file.module(
                module,
                match file.has(&format!("{module}.discrimination.weight")) {
                    true => own.with_word_heads(),
                    false => own.without_word_heads(),
                },
            )
        };
        let weights = model(MODULE)?;
        if file.has(&format!("{GENERATOR}.rank.weight")) {
            model(GENERATOR)?; // the generator of that row, which this row does not use
        }
        file.nothing_else()?;
        Ok(self.clone().begun(weights))
    }
}

//! The state of a run on disk.

use std::path::Path;

use itm_core::Result;
use itm_core::checkpoint::Writer;
use itm_core::learn::{Learner, Saved};

use super::TagsDc;
use crate::model::Uniter;

/// In the kinds of the files.
const METHOD: &str = "tags-dc";
const MODULE: &str = "uniter";

impl TagsDc {
    /// All that the next step depends on, each file by name and contents.
    pub(super) fn write(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        let model = |model: &mut Writer| model.module(MODULE, self.model());
        self.learner.save(METHOD, write, model, |_, updates| [updates, 0])
    }

    /// The model that [`write`](Self::write) wrote.
    pub(super) fn read(&self, folder: &Path) -> Result<Self> {
        let saved = Saved::open(METHOD, folder)?;
        let [.., updates, _] = saved.counts;
        let model = saved.model.module(MODULE, self.model().clone())?;
        let learner = self.learner.restored(model, &saved, updates)?;
        saved.nothing_else()?;
        Ok(self.with(learner))
    }

    /// A model before its first step with the weights that [`write`](Self::write) wrote.
    pub(super) fn begun_from(&self, folder: &Path) -> Result<Self> {
        let Saved { model, .. } = Saved::open(METHOD, folder)?;
        let weights = model.module(MODULE, self.model().clone())?;
        model.nothing_else()?;
        Ok(self.with(self.learner.begun(weights)))
    }

    fn with(&self, learner: Learner<Uniter>) -> Self {
        let Self { config, marks, masker, updates, .. } = self.clone();
        Self { config, learner, marks, masker, updates }
    }
}

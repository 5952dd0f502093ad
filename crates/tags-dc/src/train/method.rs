//! TAGS-DC as the method of a training loop.

use std::path::Path;

use itm_core::Result;
use itm_core::learn::{Batch, Items, Method, Observe, Step, check_texts, first_non_finite};
use itm_core::scored::Scored;

use super::TagsDc;
use crate::model::UniterScores;

impl Method for TagsDc {
    /// # Errors
    /// If the images are not regions, or are regions of another width.
    fn begin_epoch(&mut self, epoch: usize, train: Items) -> Result<()> {
        train.images.regions(self.model().shape.features)?;
        self.learner.begin_epoch(epoch);
        Ok(())
    }

    /// One update. Negatives come from the training split behind the batch.
    ///
    /// # Errors
    /// If the loss or the norm of its gradients is not finite, the batch has no split behind it, a region has no box, or a caption has no
    /// word or too many words for the position table.
    fn step(&mut self, batch: &Batch, seed: u64, _: Observe) -> Result<Step> {
        self.step_by(batch, seed)
    }

    fn next_phase(&mut self) -> bool {
        let first = self.caption_updates();
        let is_first = self.learner.steps() < first;
        if is_first {
            self.updates = self.updates.saturating_sub(first);
            self.config.captions = None;
        }
        is_first
    }

    fn scored<'a>(&'a self, items: Items<'a>) -> Result<Box<dyn Scored + 'a>> {
        let regions = items.images.regions(self.model().shape.features)?;
        check_texts(items.texts, Some(self.config.model.positions - self.marks.added()))?;
        let texts = self.marked(items.texts);
        Ok(Box::new(UniterScores::of_split(self.model(), regions, texts)?))
    }

    fn non_finite(&self) -> Option<String> {
        let own = self.learner.module().own.as_ref();
        first_non_finite("uniter", self.model()).or_else(|| first_non_finite("generator", own?))
    }

    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        self.write(write)
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        *self = self.read(folder)?;
        Ok(())
    }

    fn start_from(&mut self, folder: &Path) -> Result<()> {
        *self = self.begun_from(folder)?;
        Ok(())
    }
}

//! What a training loop calls: [`Method`] for [`Fne`].

use std::path::Path;

use itm_core::Result;
use itm_core::learn::{
    Batch, Items, MatchProbability, Method, Observe, Step, WordMaps, WordPairs, first_non_finite,
};
use itm_core::scored::Scored;

use crate::step::{Chance, Fne};

impl Method for Fne {
    /// Resets the statistics (`sampler.reset`). The bank stays as it is.
    fn begin_epoch(&mut self, epoch: usize, _: Items) -> Result<()> {
        self.learner.begin_epoch(epoch);
        self.statistics.begin_epoch();
        Ok(())
    }

    /// One update of the online encoders.
    ///
    /// # Errors
    /// If the parts of the batch do not have one row per pair; if the images are of another kind, width or size than the encoder's; if
    /// a value of an image, the loss or the norm of its gradients is not finite; if an image id is −100; if a caption has no word
    /// (except for a bag of words), a word's number outside the vocabulary, or more pieces than BERT has positions; if
    /// [`Exclude::Truth`](crate::Exclude::Truth) is set and there is no truth; if an option depends on the number of steps per
    /// epoch and [`with_epochs_of`](Fne::with_epochs_of) did not set this number. A step that fails changes nothing.
    fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        self.step_by(batch, &Chance::seeded(seed), observe)
    }

    fn scored<'a>(&'a self, items: Items<'a>) -> Result<Box<dyn Scored + 'a>> {
        Ok(Box::new(self.embed(items)?))
    }

    fn non_finite(&self) -> Option<String> {
        let online = first_non_finite("online", self.online());
        online.or_else(|| first_non_finite("momentum", &self.momentum))
    }

    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        self.write(write)
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        *self = self.read(folder)?;
        Ok(())
    }

    /// Takes over the statistics too, because the posterior depends on them.
    fn start_from(&mut self, folder: &Path) -> Result<()> {
        *self = self.begun_from(folder)?;
        Ok(())
    }

    /// By the current statistics, if they hold enough pairs.
    fn posterior(&self) -> Option<MatchProbability> {
        let sampler = &self.config.sampler;
        let posterior = self.statistics().posterior(sampler.prior, sampler.min_count)?;
        let of = Box::new(move |s| posterior.probability(s));
        Some(MatchProbability { prior: posterior.prior, of })
    }

    fn prior(&self) -> Option<f64> {
        Some(self.config.sampler.prior)
    }

    /// # Panics
    /// If a pair names an image or a text that does not exist.
    fn word_maps(&self, pairs: WordPairs) -> Result<Option<Vec<WordMaps>>> {
        self.maps(pairs)
    }
}

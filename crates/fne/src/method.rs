//! What a training loop asks of FNE.

use std::path::Path;

use itm_core::Result;
use itm_core::learn::{
    Batch, Items, MatchProbability, Method, Observe, Step, WordMaps, WordPairs, first_non_finite,
};
use itm_core::scored::Scored;

use crate::step::{Chance, Fne};

impl Method for Fne {
    /// Statistics start anew, the bank stays.
    fn begin_epoch(&mut self, epoch: usize, _: Items) -> Result<()> {
        self.learner.begin_epoch(epoch);
        self.statistics.begin_epoch();
        Ok(())
    }

    /// One update of the online encoders.
    ///
    /// # Errors
    /// If a value of an image, the loss or the norm of its gradients is not finite, if the images are of another kind than the
    /// encoder's, an image id is −100, a caption has no word or more than BERT has positions, or
    /// [`Exclude::Truth`](crate::Exclude::Truth) is asked for and no truth was told.
    ///
    /// # Panics
    /// If the parts of the batch differ in their number of rows, the images are of another size than the configuration says,
    /// or a word's number is outside the vocabulary.
    fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        let (step, observation) = self.step_by(batch, &Chance::seeded(seed), observe)?;
        let (Observe::Against(truth), Some(seen)) = (observe, observation) else { return Ok(step) };
        let (sampler, truth) = (&self.config.sampler, truth.by_id());
        let draws = Some(seen.draws(sampler.margin, sampler.min_count, &truth));
        let candidates = seen.candidates(sampler.margin, sampler.min_count, &truth);
        Ok(Step { draws, candidates, ..step })
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

    /// The statistics are taken up too: the posterior is of them.
    fn start_from(&mut self, folder: &Path) -> Result<()> {
        *self = self.begun_from(folder)?;
        Ok(())
    }

    /// With the statistics as they stand, if there are enough of them.
    fn posterior(&self) -> Option<MatchProbability> {
        let sampler = &self.config.sampler;
        let posterior = self.statistics().posterior(sampler.prior, sampler.min_count)?;
        let of = Box::new(move |s| posterior.probability(s));
        Some(MatchProbability { prior: posterior.prior, of })
    }

    fn prior(&self) -> Option<f64> {
        Some(self.config.sampler.prior)
    }

    fn word_maps(&self, pairs: WordPairs) -> Result<Option<Vec<WordMaps>>> {
        self.maps(pairs)
    }
}

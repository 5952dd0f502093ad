//! What a training loop calls: [`Method`] for [`Fne`].

use std::path::Path;

use itm_core::Result;
use itm_core::checkpoint::{CheckpointReader, CheckpointWriter};
use itm_core::learn::{
    Batch, Items, MatchProbability, Method, Observe, SavedState, Step, WordMaps, WordPairs,
    first_non_finite,
};
use itm_core::scored::{EmbeddingRows, Scored, Similarity};

use crate::bank::{Bank, BankState};
use crate::statistics::{Moments, Snapshot};
use crate::step::{Chance, Fne};

/// The method's name in the kind of each file.
const METHOD: &str = "fne";

impl Method for Fne {
    /// Resets the statistics (`sampler.reset`). The bank stays as it is.
    fn begin_epoch(&mut self, epoch: usize, _: Items) -> Result<()> {
        self.learner.epoch = epoch;
        self.statistics.begin_epoch();
        Ok(())
    }

    /// One update of the online encoders.
    ///
    /// # Errors
    /// If the parts of the batch do not have one row per pair; if the images are of another kind, width or size than the encoder's; if
    /// a value of an image, the loss or the norm of its gradients is not finite; if an image id is −100; if a caption has no word
    /// (except for a bag of words), a word's number outside the vocabulary, or more pieces than its encoder has positions; if
    /// [`Exclude::Truth`](crate::Exclude::Truth) is set and there is no truth, or the truth does not know an id; if an option depends on the number of steps per
    /// epoch and [`with_epochs_of`](Fne::with_epochs_of) did not set this number. A step that fails changes nothing.
    fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        self.step_by(batch, &Chance::seeded(seed), observe)
    }

    fn scored<'a>(&'a self, items: Items<'a>) -> Result<Box<dyn Scored + 'a>> {
        let (images, texts) = (self.embed_images(items.images)?, self.embed_texts(items.texts)?);
        let dim = self.config.model.embed_dim;
        Ok(Box::new(EmbeddingRows { dim, images, texts, similarity: Similarity::Cosine }))
    }

    fn non_finite(&self) -> Option<String> {
        let online = first_non_finite("online", self.online());
        online.or_else(|| first_non_finite("momentum", &self.momentum))
    }

    /// Beside its state: with LoRA also the [files of PEFT](itm_core::towers::LearningParts::save).
    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        self.config.train.parts.save(self.online(), &self.config.model, write)?;
        let modules = |model: &mut CheckpointWriter| {
            model.module("online", self.online());
            model.module("momentum", &self.momentum);
        };
        self.learner.save(METHOD, write, modules, |state, updates| {
            let (k, d) = (self.bank.capacity(), self.bank.width());
            let bank = self.bank.state();
            state.values("bank.images", &[k, d], &bank.images);
            state.values("bank.texts", &[k, d], &bank.texts);
            state.values("bank.ids", &[k], &bank.ids);
            state.values("bank.captions", &[k], &bank.captions);
            let seen = self.statistics.snapshot();
            for (name, m) in [("positive", seen.positive), ("negative", seen.negative)] {
                state.values(&format!("statistics.{name}.count"), &[1], &[m.count as i64]);
                state.values(&format!("statistics.{name}"), &[3], &[m.sum, m.mean, m.squares]);
            }
            [bank.cursor as i64, updates]
        })
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        let saved = SavedState::open(METHOD, folder)?;
        let (model, state) = (&saved.model, &saved.state);
        let [.., cursor, updates] = saved.counts;
        let online = model.module("online", self.online().clone())?;
        let learner = self.learner.restored(online, &saved, updates)?;
        let momentum = model.module("momentum", self.momentum.clone())?;
        let (k, d) = (self.bank.capacity(), self.bank.width());
        let bank = BankState {
            images: state.values("bank.images", &[k, d])?,
            texts: state.values("bank.texts", &[k, d])?,
            ids: state.values("bank.ids", &[k])?,
            captions: state.values("bank.captions", &[k])?,
            cursor: cursor as usize,
        };
        let bank = Bank::of_state(bank, d, &self.bank.images().device())?;
        let seen = statistics(state)?;
        saved.nothing_else()?;
        (self.learner, self.momentum, self.bank) = (learner, momentum, bank);
        self.keep_states(0);
        self.statistics.restore(seen);
        Ok(())
    }

    /// Takes over the statistics too, because the posterior depends on them.
    fn start_from(&mut self, folder: &Path) -> Result<()> {
        let SavedState { model, state, .. } = SavedState::open(METHOD, folder)?;
        let online = model.module("online", self.online().clone())?;
        let momentum = model.module("momentum", self.momentum.clone())?;
        model.nothing_else()?;
        let seen = statistics(&state)?;
        (self.learner, self.momentum) = (self.learner.begun(online), momentum);
        self.keep_states(0);
        self.statistics.restore(seen);
        Ok(())
    }

    fn keep_states(&self, bytes: u64) {
        self.online().keep_states(bytes);
    }

    fn export(&self, folder: &Path) -> Result<()> {
        self.online().save(&self.config.model, folder)
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

fn statistics(state: &CheckpointReader) -> Result<Snapshot> {
    let moments = |name: &str| -> Result<Moments> {
        let key = format!("statistics.{name}.count");
        let count = state.values::<i64>(&key, &[1])?[0];
        let negative = |_| state.refuse(&key, "a count of at least 0", count);
        let count = u64::try_from(count).map_err(negative)?;
        let f = state.values::<f64>(&format!("statistics.{name}"), &[3])?;
        Ok(Moments { count, sum: f[0], mean: f[1], squares: f[2] })
    };
    let seen = Snapshot { positive: moments("positive")?, negative: moments("negative")? };
    seen.check("statistics")?;
    Ok(seen)
}

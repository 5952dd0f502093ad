//! TAGS-DC as the method of a training loop.

use std::path::Path;

use burn::optim::{GradientsAccumulator, GradientsParams};
use itm_core::checkpoint::CheckpointWriter;
use itm_core::learn::{
    Batch, Items, Method, Numbers, Observe, SavedState, Step, check_texts, first_non_finite,
};
use itm_core::scored::Scored;
use itm_core::{Error, Result, host};

use super::models::Models;
use super::retrieval::Anchors;
use super::{MicroBatch, TagsDc};
use crate::model::{Uniter, UniterScores};

/// The method's name in the kinds of the files.
const METHOD: &str = "tags-dc";
const MODULE: &str = "uniter";
const GENERATOR: &str = "generator";

impl Method for TagsDc {
    /// # Errors
    /// If the images are not regions, or are regions of another width.
    fn begin_epoch(&mut self, epoch: usize, train: Items) -> Result<()> {
        train.images.regions(self.model().shape.features)?;
        self.learner.epoch = epoch;
        Ok(())
    }

    /// One update. Regions and negatives come from the training split behind the batch, by the numbers of its captions.
    ///
    /// # Errors
    /// If the loss or the norm of its gradients is not finite, the batch has no split behind it, its words or its kind of images are not the split's, a region has no box, or a caption has no
    /// word or too many words for the position table.
    fn step(&mut self, batch: &Batch, seed: u64, _: Observe) -> Result<Step> {
        batch.pairs()?;
        let train = batch.train.ok_or_else(|| {
            Error::invalid("batch", "the training split behind it, for negatives", "none")
        })?;
        let (regions, anchors) = self.check(batch, &train)?;
        if let Some(course) = self.config.captions.clone()
            && self.learner.steps() < self.caption_updates()
        {
            return self.caption_step(&course, &train, seed);
        }
        if self.config.loss.synthetic() {
            self.learn_filter(&train)?;
        }
        let of_step = Anchors::new(&anchors, &self.config.retrieval, &train, seed)?;
        let (mut numbers, mut active, mut before) = (Numbers::default(), 0.0, 0.0);
        let (mut sum, mut last) = (GradientsAccumulator::new(), None);
        let micro = self.config.train.micro_batch;
        for (part, some) in anchors.chunks(micro).enumerate() {
            let of_part = of_step.some(part * micro, some.len());
            let part = MicroBatch { number: part, captions: some, train, regions };
            let share = some.len() as f64 / anchors.len() as f64;
            let losses = self.losses(of_part, &part, seed)?;
            numbers.add(&losses.numbers);
            active += share * losses.active;
            let Some(value) = losses.value else { continue };
            if let Some(value) = last.replace(value * share) {
                before += f64::from(host(value.clone().inner())[0]);
                let models = self.learner.module();
                sum.accumulate(models, GradientsParams::from_grads(value.backward(), models));
            }
        }
        let before_pairs = self.caption_updates();
        let [n, all] =
            [self.learner.steps() + 1, self.updates].map(|n| n.saturating_sub(before_pairs));
        let rate = self.config.train.rate(n, all);
        let Some(value) = last else {
            return Err(self.learner.refuse("a synthetic sentence that passes the filter", 0.0));
        };
        let [last, grad_norm] = self.learner.update(rate, value + before, |model, loss| {
            sum.accumulate(model, GradientsParams::from_grads(loss.backward(), model));
            sum.grads()
        })?;
        numbers.add(&Numbers::from([("learning_rate", rate)]));
        Ok(Step { loss: last, grad_norm, active, numbers, negatives: None })
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
        let texts = items.texts.iter().map(|text| self.marks.around(text)).collect();
        Ok(Box::new(UniterScores::of_split(self.model(), regions, texts)?))
    }

    fn non_finite(&self) -> Option<String> {
        let own = self.learner.module().own.as_ref();
        first_non_finite("uniter", self.model()).or_else(|| first_non_finite("generator", own?))
    }

    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        let model = |model: &mut CheckpointWriter| {
            model.module(MODULE, self.model());
            if let Some(generator) = self.generator() {
                model.module(GENERATOR, generator);
            }
        };
        self.learner.save(METHOD, write, model, |_, updates| [updates, 0])
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        let saved = SavedState::open(METHOD, folder)?;
        let [.., updates, _] = saved.counts;
        let generator = |known: &Option<Uniter>| {
            known.clone().map(|known| saved.model.module(GENERATOR, known)).transpose()
        };
        let matcher = saved.model.module(MODULE, self.model().clone())?;
        let (own, fixed) = (generator(&self.learner.module().own)?, generator(&self.fixed)?);
        let learner = self.learner.restored(Models { matcher, own }, &saved, updates)?;
        saved.nothing_else()?;
        (self.learner, self.fixed) = (learner, fixed);
        Ok(())
    }

    /// The row that was saved may lack the word heads.
    fn start_from(&mut self, folder: &Path) -> Result<()> {
        let SavedState { model: file, .. } = SavedState::open(METHOD, folder)?;
        let model = |module: &str, own: Uniter| -> Result<Uniter> {
            let known = match file.has(&format!("{module}.discrimination.weight")) {
                true => own.with_word_heads(),
                false => own.without_word_heads(),
            };
            file.module(module, known)
        };
        let weights = model(MODULE, self.model().clone())?;
        if file.has(&format!("{GENERATOR}.rank.weight")) {
            // The generator of that row, which this row does not use. One that learnt from captions has no prior.
            let has_prior = file.has(&format!("{GENERATOR}.prior.scale"));
            let prior = self.model().prior.clone().filter(|_| has_prior);
            model(GENERATOR, Uniter { prior, ..self.model().clone() })?;
        }
        file.nothing_else()?;
        *self = self.clone().begun(weights);
        Ok(())
    }
}

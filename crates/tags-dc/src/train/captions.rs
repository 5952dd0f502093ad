//! Updates on captions alone, before all else.

use burn::optim::GradientsParams;
use itm_core::Result;
use itm_core::learn::{Items, Numbers, Step};
use itm_kernels::Noise;
use rand::seq::index;

use super::TagsDc;
use super::models::Models;
use super::objective::Losses;
use crate::Purpose;
use crate::config::CaptionsConfig;

impl TagsDc {
    /// The number of updates on captions alone.
    pub(super) fn caption_updates(&self) -> u64 {
        self.config.captions.as_ref().map_or(0, |captions| captions.first_updates as u64)
    }

    /// One update on captions of the split without their images: Eq. 1 with one masking of each caption. A generator of its own learns, if
    /// there is one, and else the model.
    pub(super) fn caption_step(
        &mut self,
        course: &CaptionsConfig,
        train: &Items,
        seed: u64,
    ) -> Result<Step> {
        let all = train.texts.len();
        let mut rng = Purpose::Captions.stream(seed, 0);
        let captions = index::sample(&mut rng, all, course.batch.min(all)).into_vec();
        self.check_captions(train, &captions)?;
        let masked = self.maskings(train, &captions, (0, 1), seed)?;
        let mut losses = Losses::default();
        let Models { matcher, own } = self.learner.module();
        let learns = own.as_ref().unwrap_or(matcher);
        losses.masked(learns, &masked, None, 1.0, Noise::Seeded(seed))?;
        let (n, updates) = (self.learner.steps() + 1, course.first_updates as u64);
        let rate = self.config.train.rate_below(course.learning_rate, n, updates);
        let loss = losses.value.expect("the loss of masked words");
        let [loss, grad_norm] = self.learner.update(rate, loss, |model, loss| {
            GradientsParams::from_grads(loss.backward(), model)
        })?;
        let mut numbers = losses.numbers;
        numbers.add(&Numbers::from([("learning_rate", rate)]));
        Ok(Step { loss, grad_norm, active: 0.0, numbers, negatives: None })
    }
}

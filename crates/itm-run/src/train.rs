//! The one training loop.

use std::path::Path;

use itm_core::audit::{Candidates, Draws};
use itm_core::eval::Evaluation;
use itm_core::{Error, Result};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{self, Checkpoints, Found};
use crate::log::{Line, Log};
use crate::method::{Course, Embedded, LastBatch, Method, Observe, Split};
use crate::results;

/// How long and how often; fixed by the configuration, never by the clock.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Epochs and batches.
    pub course: Course,
    /// Captions in the training split.
    pub captions: usize,
    /// Seed of the run.
    pub seed: u64,
    /// A checkpoint every so many steps, besides the one at each epoch's end.
    pub checkpoint_steps: usize,
    /// A line of the log every so many steps.
    pub log_steps: usize,
    /// An observation every so many steps; 0 for never.
    pub observe_steps: usize,
}

impl Plan {
    /// Steps of an epoch.
    pub fn epoch_steps(&self) -> usize {
        let Course { batch, last, .. } = self.course;
        match last {
            LastBatch::Dropped => self.captions / batch,
            LastBatch::Kept => self.captions.div_ceil(batch),
        }
    }

    /// Steps of the run.
    pub fn steps(&self) -> usize {
        self.course.epochs * self.epoch_steps()
    }

    /// Whether there is anything to train.
    ///
    /// # Errors
    /// If the training split has no caption, or does not fill one batch where a partial one is dropped.
    pub fn check(&self) -> Result<()> {
        if self.epoch_steps() == 0 {
            let expected = match self.course.last {
                LastBatch::Dropped => {
                    format!("at least one batch of {} captions", self.course.batch)
                }
                LastBatch::Kept => "at least one caption".into(),
            };
            return Err(Error::invalid("training split", expected, self.captions));
        }
        Ok(())
    }

    /// Captions of an epoch in their order, which depends on seed and epoch only.
    fn order(&self, epoch: usize) -> Vec<usize> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(epoch as u64 + 1);
        let mut order: Vec<_> = (0..self.captions).collect();
        order.shuffle(&mut rng);
        order
    }

    fn observe(&self, step: usize) -> Observe {
        let on = self.observe_steps > 0 && step.is_multiple_of(self.observe_steps);
        if on { Observe::Yes } else { Observe::No }
    }
}

/// Where training stands: what a checkpoint remembers besides the method's own state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Steps done, over all epochs.
    pub step: usize,
    /// The best epoch end so far.
    pub best: Option<Best>,
    /// Drawn negatives against the truth, over the whole run.
    pub draws: Draws,
    /// Candidates of the last epoch that has ended against the truth.
    pub candidates: Candidates,
    log_bytes: u64,
    since_log: Mean,
    epoch_draws: Draws,
    #[serde(default)] // checkpoints of before have none
    epoch_candidates: Candidates,
}

impl checkpoint::Progress for Progress {
    fn needs(&self) -> Option<u64> {
        self.best.map(|best| best.step as u64)
    }
}

/// What a training tells while it runs.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A line for a person, before the first step.
    Notice(&'a str),
    /// A step was made.
    Step(&'a Progress),
}

/// Checkpoints kept: the newest, and the one before in case that is damaged.
const KEPT: usize = 2;

/// An epoch end, by its validation rSum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Epoch, from 0.
    pub epoch: usize,
    /// Steps done then.
    pub step: usize,
    /// Validation rSum.
    pub rsum: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Mean {
    steps: f64,
    loss: f64,
    grad_norm: f64,
    active: f64,
}

/// Trains, or goes on training, and leaves the method as it was at its best epoch end. `watch` is called after every step.
///
/// # Errors
/// If the loss, the gradient or a weight is not finite (the last checkpoint stays, and it is of finite weights), or if
/// something cannot be written or read.
pub fn train(
    method: &mut impl Method,
    plan: &Plan,
    validate: impl Fn(&Embedded) -> Result<Evaluation>,
    checkpoints: &Checkpoints,
    log: &Path,
    mut watch: impl FnMut(Event),
) -> Result<Progress> {
    let mut at = match checkpoints.latest::<Progress>()? {
        Some(Found { folder, progress, notice, .. }) => {
            method.load(&folder)?;
            if let Some(line) = &notice {
                watch(Event::Notice(line));
            }
            progress
        }
        None => Progress::default(),
    };
    let mut log = Log::open(checkpoints.disk(), log, at.log_bytes)?;
    checkpoints.prune::<Progress>(at.step as u64, KEPT)?; // what a kill left behind
    while at.step < plan.steps() {
        let (epoch, first) = (at.step / plan.epoch_steps(), at.step % plan.epoch_steps());
        if first == 0 {
            method.begin_epoch(epoch);
        }
        let order = plan.order(epoch);
        let batches = order.chunks(plan.course.batch).take(plan.epoch_steps()).skip(first);
        let seeds = (at.step..).map(|step| step_seed(plan.seed, step));
        method.ahead(&mut batches.clone().zip(seeds));
        for captions in batches {
            step(method, plan, epoch, captions, &mut at, &mut log)?;
            watch(Event::Step(&at));
            if at.step.is_multiple_of(plan.checkpoint_steps) && at.step % plan.epoch_steps() != 0 {
                save(method, checkpoints, &mut at, &mut log)?;
            }
        }
        end_epoch(method, epoch, &validate, &mut at, &mut log)?;
        save(method, checkpoints, &mut at, &mut log)?;
    }
    restore_best(method, checkpoints, &at)?;
    Ok(at)
}

/// Leaves the method as a training that has ended left it. Nothing is trained and nothing written.
///
/// # Errors
/// If the training has not ended, or its checkpoints are damaged or of another run.
pub fn restore(
    method: &mut impl Method,
    plan: &Plan,
    checkpoints: &Checkpoints,
    place: &Path,
) -> Result<Progress> {
    let found = checkpoints.newest::<Progress>()?;
    let at = found.map(|found| found.progress).unwrap_or_default();
    if at.step < plan.steps() {
        let expected = format!("a training of {} steps", plan.steps());
        return Err(Error::invalid(place.display(), expected, format!("{} so far", at.step)));
    }
    restore_best(method, checkpoints, &at)?;
    Ok(at)
}

fn restore_best(method: &mut impl Method, checkpoints: &Checkpoints, at: &Progress) -> Result<()> {
    let Some(best) = at.best else { return Ok(()) };
    method.load(&checkpoints.read::<Progress>(best.step as u64)?.folder)
}

fn step(
    method: &mut impl Method,
    plan: &Plan,
    epoch: usize,
    captions: &[usize],
    at: &mut Progress,
    log: &mut Log,
) -> Result<()> {
    let done = method.step(captions, step_seed(plan.seed, at.step), plan.observe(at.step))?;
    for (what, value) in [("loss", done.loss), ("gradient norm", done.grad_norm)] {
        if !value.is_finite() {
            let tensor = method.non_finite().map(|name| format!(", first in {name}"));
            let place = format!("{}, epoch {epoch}, step {}", method.name(), at.step);
            let got = format!("{value}{}", tensor.unwrap_or_default());
            return Err(Error::invalid(place, format!("a finite {what}"), got));
        }
    }
    at.step += 1;
    let mean = &mut at.since_log;
    mean.steps += 1.0;
    mean.loss += done.loss;
    mean.grad_norm += done.grad_norm;
    mean.active += done.active;
    if let Some(draws) = done.draws {
        at.draws.add(&draws);
        at.epoch_draws.add(&draws);
    }
    if let Some(candidates) = done.candidates {
        at.epoch_candidates.add(&candidates);
    }
    if at.step.is_multiple_of(plan.log_steps) {
        let Mean { steps, loss, grad_norm, active } = std::mem::take(mean);
        log.write(&Line::Train {
            epoch,
            step: at.step,
            loss: loss / steps,
            grad_norm: grad_norm / steps,
            active: active / steps,
        })?;
    }
    Ok(())
}

fn end_epoch(
    method: &impl Method,
    epoch: usize,
    validate: &impl Fn(&Embedded) -> Result<Evaluation>,
    at: &mut Progress,
    log: &mut Log,
) -> Result<()> {
    let rsum = validate(&method.embed(Split::Val)?)?.rsum;
    log.write(&Line::Validation { epoch, step: at.step, rsum })?;
    if at.best.is_none_or(|best| rsum > best.rsum) {
        at.best = Some(Best { epoch, step: at.step, rsum });
    }
    at.candidates = std::mem::take(&mut at.epoch_candidates);
    if let Some(shares) = std::mem::take(&mut at.epoch_draws).shares() {
        log.write(&Line::Draws {
            epoch,
            drawn_true: shares.drawn,
            uniform_true: shares.uniform,
            hardest_true: shares.hardest,
            others_true: shares.others,
            detection: results::of_candidates(&at.candidates, method.prior()),
        })?;
    }
    Ok(())
}

fn save(
    method: &impl Method,
    checkpoints: &Checkpoints,
    at: &mut Progress,
    log: &mut Log,
) -> Result<()> {
    if let Some(tensor) = method.non_finite() {
        // A step can end in finite loss and gradient and infinite weights: not to be resumed from.
        let place = format!("{}, step {}", method.name(), at.step);
        return Err(Error::invalid(
            place,
            "finite weights",
            format!("a NaN or infinity in {tensor}"),
        ));
    }
    at.log_bytes = log.sync()?;
    let step = at.step as u64;
    checkpoints.write(step, &*at, |files| method.save(files))?;
    checkpoints.prune::<Progress>(step, KEPT)
}

/// One number from the run's seed and the step: SplitMix64's finaliser over both.
fn step_seed(seed: u64, step: usize) -> u64 {
    let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ (step as u64).wrapping_add(1).wrapping_mul(0xD1B5_4A32_D192_ED03);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;

//! The one training loop.

use std::path::{Path, PathBuf};

use itm_core::audit::{Candidates, Draws};
use itm_core::data::Split;
use itm_core::eval::{Protocol, TiePolicy};
use itm_core::learn::{Method, Numbers, Observe, Step};
use itm_core::scored::ranks_among;
use itm_core::{Error, Result};
use itm_kernels::random::mix;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::audit;
use crate::checkpoint::{self, Checkpoints, WholeCheckpoint};
use crate::inputs::Inputs;
use crate::log::{Line, Log};
use crate::stop;

/// How long a method trains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Course {
    /// Largest number of passes over all captions.
    pub epochs: usize,
    /// Largest number of updates; without it only the epochs decide.
    pub updates: Option<usize>,
    /// Captions in a batch.
    pub batch: usize,
    /// What happens to captions that do not fill a batch.
    pub(crate) last: LastBatch,
    /// Updates from one validation to the next; by default validation runs at each epoch's end. It always runs at the end of a training.
    pub validate_every: Option<usize>,
    /// In a validation each text ranks its image among this number of images, [`ranks_among`]; by default all pairs are ranked, in both
    /// directions.
    pub validate_among: Option<usize>,
}

/// What happens to an epoch's captions that do not fill a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LastBatch {
    /// They are left out; every epoch leaves out other captions.
    Dropped,
    /// They form a smaller batch.
    #[default]
    Kept,
}

/// How long a training takes, and how often it saves, logs and observes. The configuration decides this, never the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Epochs and batches.
    pub course: Course,
    /// Whether the weights are good before the first step: validation judges them too, and they are kept if no epoch is better. Random
    /// weights are not evaluated.
    pub ready: bool,
    /// Captions in the training split.
    pub captions: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Steps from one checkpoint to the next, besides the checkpoint at each epoch's end.
    pub checkpoint_steps: usize,
    /// Steps from one line of the log to the next.
    pub log_steps: usize,
    /// Steps from one observation to the next; 0 for never.
    pub observe_steps: usize,
}

impl Plan {
    /// Steps of an epoch.
    pub(crate) fn epoch_steps(&self) -> usize {
        let Course { batch, last, .. } = self.course;
        match last {
            LastBatch::Dropped => self.captions / batch,
            LastBatch::Kept => self.captions.div_ceil(batch),
        }
    }

    /// Steps of the run.
    pub(crate) fn steps(&self) -> usize {
        let all = self.course.epochs * self.epoch_steps();
        self.course.updates.map_or(all, |updates| all.min(updates))
    }

    /// The epoch of the step after this number of steps, from 0; also how many epochs are done then.
    fn epoch(&self, steps: usize) -> usize {
        steps / self.epoch_steps()
    }

    /// Whether validation runs after this number of steps.
    fn validates(&self, step: usize) -> bool {
        let every = self.course.validate_every.unwrap_or(self.epoch_steps());
        step.is_multiple_of(every) || step == self.steps()
    }

    /// Whether there is anything to train.
    ///
    /// # Errors
    /// If the training split has no caption, or does not fill one batch and a partial batch is dropped; if the weights would stay
    /// random.
    pub(crate) fn check(&self) -> Result<()> {
        let Course { epochs, updates, batch, last, .. } = self.course;
        if !self.ready {
            let expected = "at least 1, or published weights, weights of another row or a closed form to begin with";
            for (key, length) in [("train.epochs", Some(epochs)), ("train.updates", updates)] {
                Error::unless(length != Some(0), key, expected, 0)?;
            }
        }
        let expected = match last {
            LastBatch::Dropped => format!("at least one batch of {batch} captions"),
            LastBatch::Kept => "at least one caption".into(),
        };
        Error::unless(self.epoch_steps() > 0, "training split", expected, self.captions)
    }

    /// Captions of an epoch in their order, which depends on seed and epoch only.
    fn order(&self, epoch: usize) -> Vec<usize> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(epoch as u64 + 1);
        let mut order: Vec<_> = (0..self.captions).collect();
        order.shuffle(&mut rng);
        order
    }

    fn observes(&self, step: usize) -> bool {
        self.observe_steps > 0 && step.is_multiple_of(self.observe_steps)
    }
}

/// The progress of a training: what a checkpoint stores besides the method's state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Progress {
    /// Steps done, over all epochs.
    pub step: usize,
    /// The best validation so far.
    pub best: Option<Best>,
    /// Drawn negatives compared with the truth, over the whole run.
    pub draws: Draws,
    /// Candidates of the last finished epoch, compared with the truth.
    pub candidates: Candidates,
    log_bytes: u64,
    since_log: Mean,
    epoch_draws: Draws,
    #[serde(default)] // older checkpoints have none
    epoch_candidates: Candidates,
}

impl checkpoint::Progress for Progress {
    fn needs(&self) -> Option<u64> {
        self.best.map(|best| best.step as u64)
    }
}

/// What a training reports while it runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event<'a> {
    /// A line for a person, before the first step.
    Notice(&'a str),
    /// A step was made.
    Step(&'a Progress),
}

/// Number of checkpoints kept: the newest, and the one before it in case the newest is damaged.
const KEPT: usize = 2;

/// A validation: at an epoch's end, between two ends, or before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Best {
    /// Epochs done then; 0 before the first step.
    pub epochs: usize,
    /// Steps done then.
    pub step: usize,
    /// Validation rSum; with [`Course::validate_among`], the sum of three recalls.
    pub rsum: f64,
}

/// Sums over the steps since the last line of the log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Mean {
    steps: f64,
    loss: f64,
    grad_norm: f64,
    active: f64,
    #[serde(default)] // older checkpoints have none
    numbers: Numbers,
}

impl Mean {
    fn add(&mut self, step: &Step) {
        self.steps += 1.0;
        self.loss += step.loss;
        self.grad_norm += step.grad_norm;
        self.active += step.active;
        self.numbers.add(&step.numbers);
    }

    fn line(&self, epoch: usize, step: usize) -> Line {
        let Self { steps, loss, grad_norm, active, numbers } = self;
        Line::Train {
            epoch,
            step,
            loss: loss / steps,
            grad_norm: grad_norm / steps,
            active: active / steps,
            numbers: numbers.means().map(|(name, mean)| (name.to_owned(), mean)).collect(),
        }
    }
}

/// One training: a method, its inputs, and where it is saved.
pub(crate) struct Training<'a, 'd> {
    /// The beginning of a line about the training: row and seed.
    pub name: &'a str,
    /// How long and how often.
    pub plan: &'a Plan,
    /// What is trained.
    pub method: &'a mut dyn Method,
    /// The inputs of the method.
    pub inputs: &'a mut Inputs<'d>,
    /// Where the training is saved.
    pub checkpoints: &'a Checkpoints,
    /// The checkpoint of another training whose weights this training begins with.
    pub from: Option<&'a Path>,
    /// Bytes for states of pictures that no step changes.
    pub states: u64,
}

impl Training<'_, '_> {
    /// Trains, or resumes training, and leaves the method with the weights that validation found best. `watch` is called
    /// after every step.
    ///
    /// # Errors
    /// If the loss, the gradient or a weight is not finite (the last checkpoint stays, and its weights are finite), or if
    /// something cannot be written or read.
    pub(crate) fn run(mut self, log: &Path, mut watch: impl FnMut(Event)) -> Result<Progress> {
        let (plan, checkpoints) = (self.plan, self.checkpoints);
        let mut at = match checkpoints.latest::<Progress>()? {
            Some(WholeCheckpoint { folder, progress, notice, .. }) => {
                self.method.load(&folder)?;
                if let Some(line) = &notice {
                    watch(Event::Notice(line));
                }
                progress
            }
            None => {
                self.from.map_or(Ok(()), |folder| self.method.start_from(folder))?;
                Progress::default()
            }
        };
        self.method.keep_states(self.states);
        let mut log = Log::open(checkpoints.disk.clone(), log, at.log_bytes)?;
        checkpoints.prune::<Progress>(at.step as u64, KEPT)?; // what a kill left behind
        if plan.ready && at.best.is_none() {
            self.validate(&mut at, &mut log)?;
            self.save(&mut at, &mut log)?;
        }
        while at.step < plan.steps() {
            let (epoch, first) = (plan.epoch(at.step), at.step % plan.epoch_steps());
            if first == 0 {
                self.method.begin_epoch(epoch, self.inputs.items(Split::Train))?;
            }
            let order = plan.order(epoch);
            let batches = order.chunks(plan.course.batch).take(plan.epoch_steps()).skip(first);
            let seeds = (at.step..).map(|step| step_seed(plan.seed, step));
            self.inputs.ahead(batches.clone().zip(seeds));
            for captions in batches {
                self.step(captions, &mut at, &mut log)?;
                watch(Event::Step(&at));
                let ends = at.step == plan.steps();
                let ends_epoch = ends || at.step.is_multiple_of(plan.epoch_steps());
                let validates = plan.validates(at.step);
                if validates {
                    self.validate(&mut at, &mut log)?;
                }
                if ends_epoch {
                    end_epoch(self.method, epoch, &mut at, &mut log)?;
                }
                if ends_epoch || validates || at.step.is_multiple_of(plan.checkpoint_steps) {
                    self.save(&mut at, &mut log)?;
                }
                if ends {
                    break;
                }
                if stop::is_asked() {
                    self.save(&mut at, &mut log)?;
                    let place = format!("{}, step {} of {}", self.name, at.step, plan.steps());
                    let got = "a signal; all is saved, and `--resume` goes on";
                    return Err(Error::invalid(place, "an end of the training", got));
                }
            }
        }
        best(checkpoints, &at)?.map_or(Ok(()), |folder| self.method.load(&folder))?;
        Ok(at)
    }

    fn step(&mut self, captions: &[usize], at: &mut Progress, log: &mut Log) -> Result<()> {
        let (epoch, seed) = (self.plan.epoch(at.step), step_seed(self.plan.seed, at.step));
        let truth = self.inputs.truth.filter(|_| self.plan.observes(at.step));
        let observe = truth.map_or(Observe::Off, |_| Observe::Negatives);
        let done = self.inputs.step(captions, seed, |batch| self.method.step(batch, seed, observe));
        let done = done?.map_err(|e| self.blamed(e))?;
        for (what, value) in [("loss", done.loss), ("gradient norm", done.grad_norm)] {
            if !value.is_finite() {
                let place = format!("epoch {epoch}, step {}", at.step);
                return Err(self.blamed(Error::invalid(place, format!("a finite {what}"), value)));
            }
        }
        at.step += 1;
        at.since_log.add(&done);
        if let (Some(truth), Some(negatives)) = (truth, &done.negatives) {
            let draws = Draws::of(negatives, truth);
            at.draws.add(&draws);
            at.epoch_draws.add(&draws);
            at.epoch_candidates.add(&Candidates::of(negatives, truth));
        }
        if at.step.is_multiple_of(self.plan.log_steps) {
            log.write(&std::mem::take(&mut at.since_log).line(epoch, at.step))?;
        }
        Ok(())
    }

    /// An error of a step, with the name of the training and the first weight that is not finite.
    fn blamed(&self, error: Error) -> Error {
        let Error::Invalid { place, expected, got } = error else { return error };
        let tensor = self.method.non_finite().map(|name| format!(", first in {name}"));
        let got = got + &tensor.unwrap_or_default();
        Error::invalid(format!("{}, {place}", self.name), expected, got)
    }

    /// Validates the weights after the last step, or before the first.
    fn validate(&self, at: &mut Progress, log: &mut Log) -> Result<()> {
        let items = self.inputs.items(Split::Val);
        let scored = self.method.scored(items)?;
        let among = self.plan.course.validate_among;
        let rsum = match among {
            None => scored.evaluate(Protocol::Full, items.pairs, TiePolicy::Index)?.rsum,
            Some(n) => ranks_among(&*scored, items.pairs, n)?.recalls().iter().sum(),
        };
        let (step, epoch) = (at.step, self.plan.epoch(at.step.saturating_sub(1)));
        log.write(&Line::Validation { epoch, step, rsum, among })?;
        if at.best.is_none_or(|best| rsum > best.rsum) {
            at.best = Some(Best { epochs: self.plan.epoch(step), step, rsum });
        }
        Ok(())
    }

    fn save(&self, at: &mut Progress, log: &mut Log) -> Result<()> {
        if let Some(tensor) = self.method.non_finite() {
            // A step can have a finite loss and gradient and leave infinite weights; no training may resume from them.
            let place = format!("{}, step {}", self.name, at.step);
            let got = format!("a NaN or infinity in {tensor}");
            return Err(Error::invalid(place, "finite weights", got));
        }
        at.log_bytes = log.sync()?;
        let step = at.step as u64;
        self.checkpoints.write(step, &*at, |write| self.method.save(write))?;
        self.checkpoints.prune::<Progress>(step, KEPT)
    }
}

/// Writes the draws of an epoch into the log.
fn end_epoch(method: &dyn Method, epoch: usize, at: &mut Progress, log: &mut Log) -> Result<()> {
    at.candidates = std::mem::take(&mut at.epoch_candidates);
    if let Some(shares) = std::mem::take(&mut at.epoch_draws).shares() {
        log.write(&Line::Draws {
            epoch,
            drawn_true: shares.drawn,
            uniform_true: shares.uniform,
            hardest_true: shares.hardest,
            others_true: shares.others,
            detection: audit::of_candidates(&at.candidates, method.prior()),
        })?;
    }
    Ok(())
}

/// The folder of the checkpoint that validation chose in a finished training.
///
/// # Errors
/// If the training has not ended, its checkpoints are damaged or of another run, or validation chose no checkpoint.
pub(crate) fn chosen(plan: &Plan, checkpoints: &Checkpoints, place: &Path) -> Result<PathBuf> {
    let found = checkpoints.newest::<Progress>()?;
    let at = found.map(|found| found.progress).unwrap_or_default();
    let expected = format_args!("a training of {} steps", plan.steps());
    let got = format_args!("{} so far", at.step);
    Error::unless(at.step >= plan.steps(), place.display(), expected, got)?;
    let best = best(checkpoints, &at)?;
    best.ok_or_else(|| Error::invalid(place.display(), "a trained row", "nothing"))
}

fn best(checkpoints: &Checkpoints, at: &Progress) -> Result<Option<PathBuf>> {
    let folder = |best: Best| Ok(checkpoints.read::<Progress>(best.step as u64)?.folder);
    at.best.map(folder).transpose()
}

/// One number from the run's seed and the step: SplitMix64's finaliser over both.
fn step_seed(seed: u64, step: usize) -> u64 {
    const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
    let step = (step as u64).wrapping_add(1).wrapping_mul(0xD1B5_4A32_D192_ED03);
    mix((seed.wrapping_mul(GAMMA) ^ step).wrapping_sub(GAMMA)) // `mix` adds it first
}

#[cfg(test)]
mod tests;

//! The one training loop.

use std::path::Path;

use fne::audit::Candidates;
use itm_core::eval::Evaluation;
use itm_core::{Error, Result};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoints;
use crate::log::{Line, Log};
use crate::method::{Draws, Embedded, Method, Observe, Split};

/// How long and how often; fixed by the configuration, never by the clock.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Number of epochs.
    pub epochs: usize,
    /// Captions in a batch; the last partial batch of an epoch is dropped.
    pub batch: usize,
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
        self.captions / self.batch
    }

    /// Steps of the run.
    pub fn steps(&self) -> usize {
        self.epochs * self.epoch_steps()
    }

    /// Whether there is anything to train.
    ///
    /// # Errors
    /// If the training split does not fill one batch.
    pub fn check(&self) -> Result<()> {
        if self.captions < self.batch {
            let expected = format!("at least one batch of {} captions", self.batch);
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

    fn observe(&self, epoch: usize, step: usize) -> Observe {
        if self.observe_steps == 0 || !step.is_multiple_of(self.observe_steps) {
            Observe::No
        } else if epoch + 1 == self.epochs {
            Observe::Posterior
        } else {
            Observe::Draws
        }
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
    /// Candidates of the last epoch against the truth.
    pub candidates: Candidates,
    log_bytes: u64,
    since_log: Mean,
    epoch_draws: Draws,
}

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
/// If the loss is not finite, or something cannot be written or read.
pub fn train(
    method: &mut impl Method,
    plan: &Plan,
    validate: impl Fn(&Embedded) -> Result<Evaluation>,
    checkpoints: &Checkpoints,
    log: &Path,
    mut watch: impl FnMut(&Progress),
) -> Result<Progress> {
    let mut at = match checkpoints.latest::<Progress>()? {
        Some((folder, progress)) => {
            method.load(&folder)?;
            progress
        }
        None => Progress::default(),
    };
    checkpoints.prune(1, at.best.map(|best| best.step as u64))?; // what a kill left behind
    let mut log = Log::open(log, at.log_bytes)?;
    while at.step < plan.steps() {
        let (epoch, first) = (at.step / plan.epoch_steps(), at.step % plan.epoch_steps());
        if first == 0 {
            method.begin_epoch(epoch);
        }
        let order = plan.order(epoch);
        for captions in order.chunks_exact(plan.batch).skip(first) {
            step(method, plan, epoch, captions, &mut at, &mut log)?;
            watch(&at);
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
    let found = checkpoints.latest::<Progress>()?;
    let at = found.map(|(_, at)| at).unwrap_or_default();
    if at.step < plan.steps() {
        let expected = format!("a training of {} steps", plan.steps());
        return Err(Error::invalid(place.display(), expected, format!("{} so far", at.step)));
    }
    restore_best(method, checkpoints, &at)?;
    Ok(at)
}

fn restore_best(method: &mut impl Method, checkpoints: &Checkpoints, at: &Progress) -> Result<()> {
    let Some(best) = at.best else { return Ok(()) };
    let (folder, _) = checkpoints.read::<Progress>(&format!("step-{}", best.step))?;
    method.load(&folder)
}

fn step(
    method: &mut impl Method,
    plan: &Plan,
    epoch: usize,
    captions: &[usize],
    at: &mut Progress,
    log: &mut Log,
) -> Result<()> {
    let done =
        method.step(captions, step_seed(plan.seed, at.step), plan.observe(epoch, at.step))?;
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
        at.candidates.add(&candidates);
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
    let rsum = validate(&method.embed(Split::Val))?.rsum;
    log.write(&Line::Validation { epoch, step: at.step, rsum })?;
    if at.best.is_none_or(|best| rsum > best.rsum) {
        at.best = Some(Best { epoch, step: at.step, rsum });
    }
    let Draws { anchors, drawn, uniform, hardest } = std::mem::take(&mut at.epoch_draws);
    if anchors > 0.0 {
        log.write(&Line::Draws {
            epoch,
            drawn_true: drawn / anchors,
            uniform_true: uniform / anchors,
            hardest_true: hardest / anchors,
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
    at.log_bytes = log.sync()?;
    checkpoints.write(&format!("step-{}", at.step), &*at, |folder| method.save(folder))?;
    checkpoints.prune(1, at.best.map(|best| best.step as u64))
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
mod tests {
    use std::cell::RefCell;
    use std::fs;

    use itm_core::eval::{Protocol, TiePolicy, evaluate};
    use itm_core::{Pairs, ScoreMatrix};

    use super::*;
    use crate::method::Step;

    /// Its state is a hash of every call it has seen, in order; embeddings carry the epoch.
    #[derive(Debug, Clone, Default, PartialEq)]
    struct Toy {
        state: u64,
        epoch: usize,
        batches: Vec<(Vec<usize>, u64)>,
        observed: Vec<Observe>,
        /// Fails at this step, as if the machine had stopped.
        stop_at: Option<usize>,
        saves: RefCell<usize>,
    }

    impl Method for Toy {
        fn begin_epoch(&mut self, epoch: usize) {
            self.epoch = epoch;
            self.state = step_seed(self.state, 1_000_000 + epoch);
        }

        fn step(&mut self, captions: &[usize], seed: u64, observe: Observe) -> Result<Step> {
            if self.stop_at == Some(self.batches.len()) {
                return Err(Error::invalid("toy", "to go on", "a kill"));
            }
            captions.iter().for_each(|&c| self.state = step_seed(self.state ^ seed, c));
            self.batches.push((captions.to_vec(), seed));
            self.observed.push(observe);
            let value = (self.state >> 40) as f64 / 3.0;
            let draws = Draws { anchors: 2.0, drawn: value, uniform: 1.0, hardest: 0.5 };
            let draws = (observe != Observe::No).then_some(draws);
            let candidates = (observe == Observe::Posterior).then(|| {
                let mut candidates = Candidates::default();
                candidates.push(value.ln(), true);
                candidates
            });
            Ok(Step { loss: value, grad_norm: 2.0 * value, active: 0.5, draws, candidates })
        }

        fn embed(&self, split: Split) -> Embedded {
            assert_eq!(split, Split::Val, "epochs are chosen on validation");
            Embedded { dim: 1, images: vec![self.epoch as f32], texts: vec![] }
        }

        fn save(&self, folder: &Path) -> Result<()> {
            *self.saves.borrow_mut() += 1;
            let text = format!("{} {}", self.state, self.epoch);
            fs::write(folder.join("toy"), text).map_err(Error::io(folder))
        }

        fn load(&mut self, folder: &Path) -> Result<()> {
            let text = fs::read_to_string(folder.join("toy")).map_err(Error::io(folder))?;
            let (state, epoch) = text.split_once(' ').unwrap();
            (self.state, self.epoch) = (state.parse().unwrap(), epoch.parse().unwrap());
            Ok(())
        }
    }

    const PLAN: Plan = Plan {
        epochs: 3,
        batch: 4,
        captions: 23,
        seed: 7,
        checkpoint_steps: 2,
        log_steps: 3,
        observe_steps: 2,
    };

    /// Validation by epoch: the second is the best, and the last equals it.
    fn validate(embedded: &Embedded) -> Result<Evaluation> {
        let one = ScoreMatrix::from_rows([[1.0]]);
        let evaluation = evaluate(&one, &Pairs::uniform(1, 1), Protocol::Full, TiePolicy::Index)?;
        Ok(Evaluation { rsum: [100.0, 300.0, 300.0][embedded.images[0] as usize], ..evaluation })
    }

    fn trained(toy: &mut Toy, plan: &Plan, folder: &Path) -> Result<Progress> {
        let checkpoints = Checkpoints::new(folder.join("checkpoints"), "toy".into())?;
        train(toy, plan, validate, &checkpoints, &folder.join("log.jsonl"), |_| {})
    }

    fn seen(plan: Plan) -> Toy {
        let dir = tempfile::tempdir().unwrap();
        let mut toy = Toy::default();
        trained(&mut toy, &plan, dir.path()).unwrap();
        toy
    }

    fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let mut files = vec![];
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            match path.is_dir() {
                false => files.push((name, fs::read(&path).unwrap())),
                true => files.extend(
                    tree(&path).into_iter().map(|(f, bytes)| (format!("{name}/{f}"), bytes)),
                ),
            }
        }
        files.sort();
        files
    }

    #[test]
    fn the_order_depends_on_seed_and_epoch_and_the_partial_batch_is_dropped() {
        let toy = seen(PLAN);
        assert_eq!(toy.batches.len(), 3 * (23 / 4));
        let epochs: Vec<Vec<usize>> = toy
            .batches
            .chunks(5)
            .map(|epoch| epoch.iter().flat_map(|(captions, _)| captions.clone()).collect())
            .collect();
        for (number, epoch) in epochs.iter().enumerate() {
            assert_eq!(epoch[..], PLAN.order(number)[..20]);
            let mut sorted = epoch.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert!(sorted.len() == 20 && sorted[19] < 23, "no caption twice: {epoch:?}");
        }
        assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2]);
        let longer = Plan { epochs: 9, checkpoint_steps: 1, log_steps: 1, ..PLAN };
        assert_eq!(longer.order(1), PLAN.order(1));
        assert!(Plan { seed: 8, ..PLAN }.order(1) != PLAN.order(1));
        let mut seeds: Vec<_> = toy.batches.iter().map(|&(_, seed)| seed).collect();
        let other = seen(Plan { seed: 8, ..PLAN });
        seeds.extend(other.batches.iter().map(|&(_, seed)| seed));
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 30, "each step has a seed of its own");
    }

    #[test]
    fn the_first_best_epoch_is_restored() {
        let dir = tempfile::tempdir().unwrap();
        let mut toy = Toy::default();
        let progress = trained(&mut toy, &PLAN, dir.path()).unwrap();
        assert_eq!(progress.best, Some(Best { epoch: 1, step: 10, rsum: 300.0 }));
        let mut half = Toy::default();
        let two = Plan { epochs: 2, observe_steps: 0, ..PLAN };
        trained(&mut half, &two, tempfile::tempdir().unwrap().path()).unwrap();
        assert_eq!((toy.state, toy.epoch), (half.state, 1));
        let names: Vec<_> =
            tree(&dir.path().join("checkpoints")).into_iter().map(|f| f.0).collect();
        let want = ["step-10/manifest.json", "step-10/toy", "step-15/manifest.json", "step-15/toy"];
        assert_eq!(names, want);
    }

    #[test]
    fn an_ended_training_is_restored_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let place = Path::new("rows/full/seed-0");
        let checkpoints = Checkpoints::new(dir.path().join("checkpoints"), "toy".into()).unwrap();
        let restored = |toy: &mut Toy| restore(toy, &PLAN, &checkpoints, place);
        let mut stopped = Toy { stop_at: Some(11), ..Toy::default() };
        trained(&mut stopped, &PLAN, dir.path()).unwrap_err();
        let line = restored(&mut Toy::default()).unwrap_err().to_string();
        let want = "rows/full/seed-0: expected a training of 15 steps, got 10 so far";
        assert_eq!(line, want);
        let mut toy = Toy::default();
        let progress = trained(&mut toy, &PLAN, dir.path()).unwrap();
        let (before, mut other) = (tree(dir.path()), Toy::default());
        assert_eq!(restored(&mut other).unwrap(), progress);
        assert_eq!((other.state, other.epoch), (toy.state, 1), "its best epoch, not its last");
        assert!(other.batches.is_empty() && tree(dir.path()) == before, "something was done");
    }

    /// Stopped after every possible step: what is on disk in the end is the same, bit for bit.
    #[test]
    fn a_resumed_run_ends_as_an_uninterrupted_one() {
        let whole_dir = tempfile::tempdir().unwrap();
        let mut whole = Toy::default();
        let want = trained(&mut whole, &PLAN, whole_dir.path()).unwrap();
        for stop in 0..PLAN.steps() {
            let dir = tempfile::tempdir().unwrap();
            let mut stopped = Toy { stop_at: Some(stop), ..Toy::default() };
            assert!(trained(&mut stopped, &PLAN, dir.path()).is_err());
            let mut resumed = Toy { state: 99, ..Toy::default() };
            if stop < PLAN.checkpoint_steps {
                resumed.state = 0; // nothing is loaded: as at the start
            }
            let got = trained(&mut resumed, &PLAN, dir.path()).unwrap();
            assert_eq!(got, want, "stopped at {stop}");
            assert_eq!((resumed.state, resumed.epoch), (whole.state, whole.epoch));
            let lost = stop + resumed.batches.len() - PLAN.steps();
            assert!(lost < PLAN.checkpoint_steps, "{lost} steps lost, stopped at {stop}");
            assert!(tree(dir.path()) == tree(whole_dir.path()), "stopped at {stop}");
        }
    }

    /// A kill after the last checkpoint's rename and before the older ones are gone.
    #[test]
    fn what_a_kill_left_behind_is_cleared_by_a_resume() {
        let dir = tempfile::tempdir().unwrap();
        let mut toy = Toy::default();
        trained(&mut toy, &PLAN, dir.path()).unwrap();
        let want = tree(dir.path());
        for name in ["step-14", "step-14.tmp", "step-2"] {
            fs::create_dir(dir.path().join("checkpoints").join(name)).unwrap();
        }
        fs::write(dir.path().join("checkpoints/step-14/toy"), "half").unwrap();
        let mut again = Toy::default();
        trained(&mut again, &PLAN, dir.path()).unwrap();
        assert_eq!((again.state, again.batches.len()), (toy.state, 0));
        assert!(tree(dir.path()) == want);
    }

    #[test]
    fn the_log_holds_means_and_every_step_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut toy = Toy::default();
        let progress = trained(&mut toy, &PLAN, dir.path()).unwrap();
        let log = Log::read(&dir.path().join("log.jsonl")).unwrap();
        let steps = |line: &Line| match *line {
            Line::Train { step, grad_norm, loss, .. } => {
                assert!((grad_norm - 2.0 * loss).abs() < 1e-6 * grad_norm);
                Some(step)
            }
            _ => None,
        };
        assert_eq!(log.iter().filter_map(steps).collect::<Vec<_>>(), [3, 6, 9, 12, 15]);
        let rsums = |line: &Line| match *line {
            Line::Validation { epoch, step, rsum } => Some((epoch, step, rsum)),
            _ => None,
        };
        let rsums: Vec<_> = log.iter().filter_map(rsums).collect();
        assert_eq!(rsums, [(0, 5, 100.0), (1, 10, 300.0), (2, 15, 300.0)]);
        // Steps 0, 2, …, 14 are observed, those of the last epoch with their posterior.
        let posterior = |o: &Observe| *o == Observe::Posterior;
        assert_eq!(toy.observed.iter().filter(|&&o| o == Observe::Draws).count(), 5);
        assert_eq!(toy.observed[10..].iter().filter(|o| posterior(o)).count(), 3);
        assert_eq!(progress.candidates.count(), 3);
        assert_eq!(progress.draws.anchors, 16.0);
        let uniform = |line: &Line| match *line {
            Line::Draws { uniform_true, hardest_true, .. } => Some((uniform_true, hardest_true)),
            _ => None,
        };
        assert_eq!(log.iter().filter_map(uniform).collect::<Vec<_>>(), [(0.5, 0.25); 3]);
    }

    #[test]
    fn a_split_without_a_whole_batch_is_refused() {
        assert!(Plan { captions: 4, ..PLAN }.check().is_ok());
        let line = Plan { captions: 3, ..PLAN }.check().unwrap_err().to_string();
        assert_eq!(line, "training split: expected at least one batch of 4 captions, got 3");
    }
}

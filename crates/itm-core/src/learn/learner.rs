//! A module that learns: its updates, which must be finite, and its files.

use std::path::Path;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use itm_kernels::{AdamOptions, AdamW};

use crate::checkpoint::{CheckpointReader, CheckpointWriter};
use crate::{Error, Result, host};

const MODEL: &str = "model.safetensors";
const STATE: &str = "state.safetensors";
/// Entry with epoch and steps, in both files. In the state file, the counts of the method follow.
const PROGRESS: &str = "progress";

/// A module that learns, its optimiser, and their progress.
#[derive(Debug, Clone)]
pub struct Trainer<M> {
    /// `None` only while the optimiser has the module: a module with two owners is not updated in place.
    module: Option<M>,
    optimizer: AdamW,
    /// The epoch of the next step, counted from 0.
    pub epoch: usize,
    /// The number of steps of an epoch, if it is known.
    pub steps_of_epoch: Option<u64>,
    steps: u64,
}

impl<M: Module> Trainer<M> {
    /// A learner before its first step.
    ///
    /// # Panics
    /// As [`AdamW::new`].
    pub fn new(module: M, options: AdamOptions) -> Self {
        let optimizer = AdamW::new(options);
        Self { module: Some(module), optimizer, epoch: 0, steps_of_epoch: None, steps: 0 }
    }

    /// The learner with a factor of the rate for each parameter: [`AdamW::with_factors`].
    #[must_use]
    pub(crate) fn with_factors(self, factors: Vec<f64>) -> Self {
        Self { optimizer: self.optimizer.with_factors(factors), ..self }
    }

    /// A learner before its first step, with another module and the same options and factors of the optimiser.
    pub fn begun(&self, module: M) -> Self {
        let factors = self.optimizer.factors().to_vec();
        let begun = Self::new(module, *self.optimizer.options()).with_factors(factors);
        Self { steps_of_epoch: self.steps_of_epoch, ..begun }
    }

    /// The module.
    pub fn module(&self) -> &M {
        self.module.as_ref().expect("taken only within an update")
    }

    /// A learner with a changed module, before its first step. The module keeps its parameters' number and order.
    ///
    /// # Errors
    /// If a step was made; the errors of `change`.
    pub fn changed(self, change: impl FnOnce(M) -> Result<M>) -> Result<Self> {
        let got = format_args!("a model after step {}", self.steps);
        let expected = "a model before its first step";
        Error::unless(self.steps == 0, "inputs or start", expected, got)?;
        Ok(Self { module: self.module.map(change).transpose()?, ..self })
    }

    /// Number of updates so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The part of the updates of this many epochs that were made; `None` if the number of steps of an epoch is unknown.
    pub fn done(&self, epochs: usize) -> Option<f64> {
        let all = (epochs as u64).saturating_mul(self.steps_of_epoch?);
        Some(self.steps as f64 / all.max(1) as f64)
    }

    /// An error in the next step.
    pub fn refuse(&self, expected: &str, got: f64) -> Error {
        Error::invalid(format!("epoch {}, step {}", self.epoch, self.steps), expected, got)
    }

    /// Makes one update in place at a learning rate. Returns the loss before the update, and the norm of all gradients
    /// before clipping.
    ///
    /// `gradients` must own everything that holds the graph of the loss, because a parameter in a graph cannot be
    /// updated in place.
    ///
    /// # Errors
    /// If the rate is negative or not finite, or the loss or the norm is not finite. Then nothing has changed.
    pub fn update(
        &mut self,
        rate: f64,
        loss: Tensor<1>,
        gradients: impl FnOnce(&M, Tensor<1>) -> GradientsParams,
    ) -> Result<[f64; 2]> {
        if !(0.0..f64::INFINITY).contains(&rate) {
            return Err(self.refuse("a learning rate of at least 0", rate));
        }
        let value = f64::from(host(loss.clone())[0]);
        if !value.is_finite() {
            return Err(self.refuse("a finite loss", value));
        }
        let grads = gradients(self.module(), loss);
        let module = self.module.take().expect("put back after each update");
        let (module, norm) = self.optimizer.step(module, grads, rate);
        self.module = Some(module);
        if !norm.is_finite() {
            return Err(self.refuse("gradients of a finite norm", norm));
        }
        self.steps += 1;
        Ok([value, norm])
    }

    /// Changes the module after an update, without a step of the optimiser.
    pub fn adjust(&mut self, change: impl FnOnce(M) -> M) {
        self.module = self.module.take().map(change);
    }

    /// Passes the two files of a method's state to `write`: what the method has learnt, and everything else that the
    /// next step depends on.
    ///
    /// `modules` writes the modules into the first file. `rest` writes the other state of the method into the second
    /// file. It gets the number of updates of the optimiser and returns two counts, which are stored after epoch and
    /// steps.
    ///
    /// # Errors
    /// The errors of `write`.
    pub fn save(
        &self,
        method: &str,
        write: &mut dyn FnMut(&str, &[u8]) -> Result<()>,
        modules: impl FnOnce(&mut CheckpointWriter),
        rest: impl FnOnce(&mut CheckpointWriter, i64) -> [i64; 2],
    ) -> Result<()> {
        let progress = [self.epoch as i64, self.steps as i64];
        let mut model = CheckpointWriter::default();
        modules(&mut model);
        model.values(PROGRESS, &[2], &progress);
        write(MODEL, &model.contents(&format!("{method} model 1"))?)?;
        drop(model); // as large as the file

        let mut state = CheckpointWriter::default();
        let counts = rest(&mut state, self.optimizer.steps() as i64);
        state.values(PROGRESS, &[4], &[progress, counts].concat());
        state.optimizer(&self.optimizer, self.module());
        write(STATE, &state.contents(&format!("{method} state 1"))?)
    }

    /// The learner that the files describe, with a module that was read from them, after `updates` updates of the
    /// optimiser.
    ///
    /// # Errors
    /// If moments of an updated parameter are missing, moments have another size, or a count of updates is not from 0 to `updates`.
    pub fn restored(&self, module: M, saved: &SavedState, updates: u64) -> Result<Self> {
        let optimizer = saved.state.optimizer(*self.optimizer.options(), &module, updates)?;
        let optimizer = optimizer.with_factors(self.optimizer.factors().to_vec());
        let ([epoch, steps, ..], steps_of_epoch) = (saved.counts, self.steps_of_epoch);
        Ok(Self { module: Some(module), optimizer, epoch: epoch as usize, steps_of_epoch, steps })
    }
}

/// The two opened files of a state, of the same method and the same step.
#[derive(Debug)]
pub struct SavedState {
    /// What was learnt.
    pub model: CheckpointReader,
    /// Everything else that the next step depends on.
    pub state: CheckpointReader,
    /// Epoch, steps, and the two counts of the method.
    pub counts: [u64; 4],
}

impl SavedState {
    /// Refuses files with an entry that was never read.
    ///
    /// # Errors
    /// Names the first such entry.
    pub fn nothing_else(&self) -> Result<()> {
        self.model.nothing_else()?;
        self.state.nothing_else()
    }

    /// Opens the files that [`Trainer::save`] wrote.
    ///
    /// # Errors
    /// If a file is missing, truncated or of another method, or if the two files are of different steps.
    pub fn open(method: &str, folder: &Path) -> Result<Self> {
        let model = CheckpointReader::open(&folder.join(MODEL), &format!("{method} model 1"))?;
        let state = CheckpointReader::open(&folder.join(STATE), &format!("{method} state 1"))?;
        let counts = state.values::<i64>(PROGRESS, &[4])?;
        let both = model.values::<i64>(PROGRESS, &[2])?;
        if counts[..2] != both[..] {
            let of = |c: &[i64]| format!("epoch {}, step {}", c[0], c[1]);
            return Err(state.refuse(PROGRESS, of(&both), of(&counts)));
        }
        let mut natural = [0; 4];
        for (to, from) in natural.iter_mut().zip(counts) {
            let refused = |_| state.refuse(PROGRESS, "counts of at least 0", from);
            *to = u64::try_from(from).map_err(refused)?;
        }
        Ok(Self { model, state, counts: natural })
    }
}

#[cfg(test)]
mod tests {
    use burn::backend::Flex;
    use burn::tensor::Device;
    use itm_kernels::Linear;

    use super::*;

    fn learner(seed: u64) -> Trainer<Linear> {
        let linear = Linear::seeded(2, 1, seed, &Device::flex().autodiff());
        Trainer::new(linear, AdamOptions::default())
    }

    /// loss = x · W₀ + W₁ + b, so that its gradient is (x, 1, 1).
    fn update(learner: &mut Trainer<Linear>, x: f32) -> Result<[f64; 2]> {
        update_by(learner, x, 1)
    }

    /// The loss of [`update`], summed `times` times.
    fn update_by(learner: &mut Trainer<Linear>, x: f32, times: usize) -> Result<[f64; 2]> {
        let row = Tensor::<2>::from_floats([[x, 1.0]], &Device::flex().autodiff());
        let loss = learner.module().forward(row.repeat_dim(0, times)).sum();
        learner
            .update(0.1, loss, |module, loss| GradientsParams::from_grads(loss.backward(), module))
    }

    fn weights(learner: &Trainer<Linear>) -> Vec<f32> {
        [host(learner.module().weight.val()), host(learner.module().bias.val())].concat()
    }

    fn save(learner: &Trainer<Linear>, folder: &Path, method: &str) {
        let write = &mut |name: &str, contents: &[u8]| {
            std::fs::write(folder.join(name), contents).map_err(Error::io(folder))
        };
        let modules = |model: &mut CheckpointWriter| model.module("linear", learner.module());
        let rest = |state: &mut CheckpointWriter, updates| {
            state.values("own", &[1], &[0.5f32]);
            [7, updates]
        };
        learner.save(method, write, modules, rest).unwrap();
    }

    /// By hand: Adam's first step moves every weight by the learning rate against the sign of the gradient. The norm is
    /// √(2² + 1 + 1).
    #[test]
    fn an_update_works_in_place() {
        let mut learner = learner(1);
        let before = weights(&learner);
        let place = |learner: &Trainer<Linear>| {
            let weight = learner.module().weight.val().inner();
            weight.try_into_primitive::<Flex>().unwrap().bytes().as_ptr()
        };
        let at = place(&learner);
        let [loss, norm] = update(&mut learner, 2.0).unwrap();
        assert!((loss - f64::from(2.0 * before[0] + before[1] + before[2])).abs() < 1e-6);
        assert!((norm - 6f64.sqrt()).abs() < 1e-6);
        let moved = weights(&learner).into_iter().zip(before).map(|(now, then)| then - now);
        assert!(moved.into_iter().all(|by| (by - 0.1).abs() < 1e-5));
        assert_eq!((place(&learner), learner.steps()), (at, 1));
        assert_eq!(learner.done(2), None);
        learner.steps_of_epoch = Some(2);
        assert_eq!([2, 0].map(|epochs| learner.done(epochs)), [Some(0.25), Some(1.0)]);
        learner.steps_of_epoch = Some(u64::MAX);
        assert!(learner.done(2).is_some_and(|done| done < 1e-18), "no overflow");
    }

    #[test]
    fn what_is_not_finite_changes_nothing() {
        let mut learner = learner(1);
        learner.epoch = 2;
        update(&mut learner, 2.0).unwrap();
        let (before, mut twin) = (weights(&learner), learner.clone());
        // Twice 2e38 is above the largest f32, but the loss stays finite: an infinite gradient of a finite loss.
        for (x, times, want) in [
            (f32::NAN, 1, "epoch 2, step 1: expected a finite loss, got NaN"),
            (2e38, 2, "epoch 2, step 1: expected gradients of a finite norm, got inf"),
        ] {
            assert_eq!(update_by(&mut learner, x, times).unwrap_err().to_string(), want);
            assert_eq!((weights(&learner), learner.steps()), (before.clone(), 1));
        }
        for rate in [f64::NAN, -1.0, f64::INFINITY] {
            let loss = Tensor::zeros([1], &Device::flex().autodiff());
            let never = |_: &Linear, _: Tensor<1>| -> GradientsParams { unreachable!() };
            let line = learner.update(rate, loss, never).unwrap_err().to_string();
            assert!(line.starts_with("epoch 2, step 1: expected a learning rate"), "{line}");
        }
        for l in [&mut learner, &mut twin] {
            update(l, -1.0).unwrap();
        }
        assert_eq!(weights(&learner), weights(&twin), "the moments too");
    }

    #[test]
    fn a_saved_learner_goes_on_as_it_would_have() {
        let folder = tempfile::tempdir().unwrap();
        let learner = |seed| learner(seed).with_factors(vec![0.5, 0.25]);
        let mut whole = learner(1);
        whole.epoch = 3;
        update(&mut whole, 2.0).unwrap();
        save(&whole, folder.path(), "toy");
        let mut fresh = learner(2);
        fresh.steps_of_epoch = Some(7);
        let start = weights(&fresh);
        let mut begun = fresh.begun(fresh.module().clone());
        assert_eq!(begun.steps_of_epoch, Some(7));
        update(&mut begun, 2.0).unwrap();
        let moved = start.iter().zip(weights(&begun)).map(|(then, now)| then - now);
        let by_hand = [0.05, 0.05, 0.025]; // the rate of 0.1, halved for W, a quarter for b
        assert!(moved.zip(by_hand).all(|(by, want)| (by - want).abs() < 1e-5));
        let saved = SavedState::open("toy", folder.path()).unwrap();
        assert_eq!(
            (saved.counts, saved.state.values("own", &[1]).unwrap()),
            ([3, 1, 7, 1], vec![0.5f32])
        );
        let module = saved.model.module("linear", fresh.module().clone()).unwrap();
        let mut again = fresh.restored(module, &saved, saved.counts[3]).unwrap();
        for l in [&mut whole, &mut again] {
            update(l, -1.0).unwrap();
        }
        assert_eq!(weights(&whole), weights(&again));
        assert_eq!((again.epoch, again.steps()), (3, 2));
    }

    #[test]
    fn files_that_do_not_go_together_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused =
            |method: &str| SavedState::open(method, folder.path()).unwrap_err().to_string();
        assert!(refused("toy").contains("model.safetensors: No such file"), "{}", refused("toy"));
        let mut learner = learner(1);
        save(&learner, folder.path(), "toy");
        assert!(refused("other").ends_with("expected other model 1, got toy model 1"));
        let kept = std::fs::read(folder.path().join(MODEL)).unwrap();
        update(&mut learner, 2.0).unwrap();
        save(&learner, folder.path(), "toy");
        std::fs::write(folder.path().join(MODEL), kept).unwrap();
        assert!(refused("toy").ends_with("expected epoch 0, step 0, got epoch 0, step 1"));
        learner.epoch = usize::MAX; // −1 in a file
        save(&learner, folder.path(), "toy");
        assert!(refused("toy").ends_with("progress: expected counts of at least 0, got -1"));
    }
}

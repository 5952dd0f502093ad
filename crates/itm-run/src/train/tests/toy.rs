//! A method without a model: what the loop asks of it leaves a trace.

use std::fs;

use super::super::*;
use crate::checkpoint::Files;
use crate::method::Step;

/// Its state is a hash of every call it has seen, in order; embeddings carry the epoch.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Toy {
    pub(super) state: u64,
    pub(super) epoch: usize,
    pub(super) batches: Vec<(Vec<usize>, u64)>,
    pub(super) observed: Vec<Observe>,
    /// Fails at this step, as if the machine had stopped.
    pub(super) stop_at: Option<usize>,
    /// Calls, from 1, that give a loss or a gradient that is not finite.
    pub(super) bad_loss_at: Option<usize>,
    pub(super) bad_gradient_at: Option<usize>,
    /// Its weights are not finite from this step on.
    pub(super) infinite_from: Option<usize>,
}

impl Method for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    fn non_finite(&self) -> Option<String> {
        let broken = self.infinite_from.is_some_and(|from| self.batches.len() >= from);
        broken.then(|| "toy.weight".into())
    }

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
        let at = |step: Option<usize>| step == Some(self.batches.len());
        let loss = if at(self.bad_loss_at) { f64::NAN } else { value };
        let grad_norm = if at(self.bad_gradient_at) { f64::INFINITY } else { 2.0 * value };
        let draws =
            Draws { anchors: 2.0, drawn: value, uniform: 1.0, hardest: 0.5, ..Draws::default() };
        let draws = (observe != Observe::No).then_some(draws);
        let candidates = (observe == Observe::Yes).then(|| {
            let mut candidates = Candidates::default();
            candidates.push(value.ln(), true);
            candidates
        });
        Ok(Step { loss, grad_norm, active: 0.5, draws, candidates })
    }

    fn prior(&self) -> Option<f64> {
        Some(0.5)
    }

    fn embed(&self, split: Split) -> Result<Embedded> {
        assert_eq!(split, Split::Val, "epochs are chosen on validation");
        Ok(Embedded {
            dim: 1,
            images: vec![self.epoch as f32],
            texts: vec![],
            similarity: hubness::training::Similarity::Cosine,
        })
    }

    fn save(&self, files: &mut Files) -> Result<()> {
        files.add("toy", format!("{} {}", self.state, self.epoch).as_bytes())
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        let text = fs::read_to_string(folder.join("toy")).map_err(Error::io(folder))?;
        let (state, epoch) = text.split_once(' ').unwrap();
        (self.state, self.epoch) = (state.parse().unwrap(), epoch.parse().unwrap());
        Ok(())
    }
}

//! A method without a model: every call of the loop leaves a trace.

use std::fs;

use itm_core::ScoreMatrix;
use itm_core::audit::{NegativeSet, PairIds};
use itm_core::learn::{Batch, Items};
use itm_core::scored::Scored;
use itm_core::tiles::Side;

use super::super::*;

/// The state is a hash of all epochs and steps, in order; the scores depend on the epoch.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Toy {
    pub(super) state: u64,
    pub(super) epoch: usize,
    pub(super) batches: Vec<(Vec<usize>, u64)>,
    pub(super) observed: Vec<bool>,
    /// Whether the scores are right before the first step.
    pub(super) ready: bool,
    /// The checkpoint that the toy begins with.
    pub(super) from: Option<PathBuf>,
    /// Whether the toy began with `from`.
    pub(super) started: bool,
    /// Fails at this step, as if the machine had stopped.
    pub(super) stop_at: Option<usize>,
    /// The step, from 1, whose loss or gradient norm is not finite.
    pub(super) bad_loss_at: Option<usize>,
    pub(super) bad_gradient_at: Option<usize>,
    /// The weights are not finite from this step on.
    pub(super) infinite_from: Option<usize>,
}

/// One anchor: pair 0. Its partner, which nothing excludes, pulls, and has a ratio if the anchor is the image. The hardest
/// candidate is of pair 1.
fn negatives(side: Side, ratio: f64) -> NegativeSet {
    let pair = |of: i64| PairIds { image: of, caption: of };
    NegativeSet {
        side,
        anchors: vec![pair(0)],
        candidates: vec![Some(pair(0)), Some(pair(1))],
        scores: vec![0.1, 0.9],
        positive: vec![0.5],
        excluded: vec![false; 2],
        weights: vec![1.0, 0.0],
        margin: 0.2,
        others: vec![],
        log_ratios: if side == Side::Images { vec![(0, ratio)] } else { vec![] },
    }
}

impl Method for Toy {
    fn non_finite(&self) -> Option<String> {
        let broken = self.infinite_from.is_some_and(|from| self.batches.len() >= from);
        broken.then(|| "toy.weight".into())
    }

    fn begin_epoch(&mut self, epoch: usize, _: Items) -> Result<()> {
        self.epoch = epoch;
        self.state = step_seed(self.state, 1_000_000 + epoch);
        Ok(())
    }

    fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        let captions: Vec<_> = batch.caption_ids.iter().map(|&c| c as usize).collect();
        let observed = observe == Observe::Negatives;
        if self.stop_at == Some(self.batches.len()) {
            return Err(Error::invalid("toy", "to go on", "a kill"));
        }
        captions.iter().for_each(|&c| self.state = step_seed(self.state ^ seed, c));
        self.batches.push((captions, seed));
        self.observed.push(observed);
        let value = (self.state >> 40) as f64 / 3.0;
        let at = |step: Option<usize>| step == Some(self.batches.len());
        let loss = if at(self.bad_loss_at) { f64::NAN } else { value };
        let grad_norm = if at(self.bad_gradient_at) { f64::INFINITY } else { 2.0 * value };
        let negatives = observed.then(|| {
            let ratio = value.ln();
            [Side::Images, Side::Texts].map(|side| negatives(side, ratio))
        });
        let numbers = Numbers::from([("value", value)]);
        Ok(Step { loss, grad_norm, active: 0.5, numbers, negatives })
    }

    fn prior(&self) -> Option<f64> {
        Some(0.5)
    }

    /// The scores are right, except in the first epoch, in which they are equal. A ready toy's scores are also right before it.
    fn scored<'a>(&'a self, items: Items<'a>) -> Result<Box<dyn Scored + 'a>> {
        let n = items.pairs.images();
        let good = self.epoch > 0 || self.ready && self.state == 0;
        let right = |at: usize| good && at / n == items.pairs.image_of(at % n);
        let values = (0..n * n).map(|at| f32::from(u8::from(right(at)))).collect();
        Ok(Box::new(ScoreMatrix::new(n, n, values)?))
    }

    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        write("toy", format!("{} {}", self.state, self.epoch).as_bytes())
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        let text = fs::read_to_string(folder.join("toy")).map_err(Error::io(folder))?;
        let (state, epoch) = text.split_once(' ').unwrap();
        (self.state, self.epoch) = (state.parse().unwrap(), epoch.parse().unwrap());
        Ok(())
    }

    /// The state differs from the state after a load. The loaded epoch is a trained one, so the scores are right.
    fn start_from(&mut self, folder: &Path) -> Result<()> {
        self.load(folder)?;
        (self.state, self.started) = (!self.state, true);
        Ok(())
    }
}

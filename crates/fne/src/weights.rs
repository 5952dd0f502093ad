//! How likely each candidate is to be drawn as the negative of its anchor: Eq. 11–13, with the cut and the
//! fallback of the released code.

use itm_core::audit::hardest;
use itm_core::learn::at_least_zero;
use itm_core::{Error, Result};

use crate::checks;
use crate::config::{Density, SamplerConfig, Tie};
use crate::exp::{exp_nonpositive, sigmoid};
use crate::posterior::{Posterior, log_odds};
use crate::statistics::Snapshot;

/// X by images: the candidates of each anchor's own image are never its negatives, `[b, n]` row-major.
///
/// `anchors` has the image id of each anchor, `[b]`. `candidates` has the image id of each candidate, `[n]`;
/// [`NEVER`](crate::NEVER), −100, for a bank row that was never written. Such a row belongs to no image, so it is a candidate of
/// every anchor.
///
/// # Errors
/// If an anchor has the id [`NEVER`](crate::NEVER).
pub fn same_image(anchors: &[i64], candidates: &[i64]) -> Result<Vec<bool>> {
    checks::ids("image id of anchor", anchors)?;
    let mut same = Vec::with_capacity(anchors.len() * candidates.len());
    anchors.iter().for_each(|anchor| same.extend(candidates.iter().map(|id| id == anchor)));
    Ok(same)
}

/// The candidates of one direction, on the host: b anchors, n candidates.
#[derive(Debug, Clone, Copy)]
pub struct CandidatePool<'a> {
    /// S: similarity of each anchor to each candidate, `[b, n]` row-major. Finite, except for excluded candidates, whose scores
    /// are never read.
    pub scores: &'a [f32],
    /// s⁺: similarity of each anchor to its own partner, `[b]`.
    pub positive: &'a [f32],
    /// X: whether a candidate is never a negative of the anchor, `[b, n]` row-major; [`same_image`] makes it from image ids.
    ///
    /// To leave a candidate out, name it here. A very low score does not leave it out: without the margin cut every finite score
    /// may have a weight, and Eq. 11 may even call a very low score a match.
    pub excluded: &'a [bool],
}

impl CandidatePool<'_> {
    /// Number b of anchors: the length of `positive`.
    pub(crate) fn anchors(&self) -> usize {
        self.positive.len()
    }

    /// Number n of candidates: the number of scores per anchor.
    pub(crate) fn candidates(&self) -> usize {
        self.scores.len() / self.anchors().max(1)
    }

    /// Whether candidate `j` is excluded as a negative of anchor `i`.
    ///
    /// # Panics
    /// If there is no such anchor or candidate.
    pub fn excluded(&self, i: usize, j: usize) -> bool {
        let (b, n) = (self.anchors(), self.candidates());
        assert!(i < b && j < n, "anchor {i} of {b}, candidate {j} of {n}");
        self.excluded[i * n + j]
    }

    /// Similarities of anchor `i`.
    fn row(&self, i: usize) -> &[f32] {
        let n = self.candidates();
        &self.scores[i * n..(i + 1) * n]
    }

    /// For each anchor the first candidate with the largest hinge `[γ + s − s⁺]₊`: the choice of the row "w/o FNE", and the
    /// fallback of a row without weights. The hinge of an excluded candidate counts as 0. If no hinge of a row is above 0, the
    /// choice is column 0, even if column 0 is excluded.
    ///
    /// # Errors
    /// As [`weights`], and if `margin` is negative or not finite.
    pub fn hardest(&self, margin: f64) -> Result<Vec<usize>> {
        at_least_zero("margin", margin)?;
        self.check()?;
        Ok((0..self.anchors()).map(|i| self.hardest_of(i, margin)).collect())
    }

    fn hardest_of(&self, i: usize, margin: f64) -> usize {
        hardest(self.row(i), margin as f32 - self.positive[i], |j| self.excluded(i, j))
    }

    /// Weight 1 for every candidate that is not excluded: a baseline for the sampler. A row whose candidates are all excluded
    /// has weight 1 at column 0.
    ///
    /// # Errors
    /// As [`weights`].
    pub fn uniform(&self) -> Result<Vec<f32>> {
        self.check()?;
        let n = self.candidates();
        let weight = |k: usize| if self.excluded(k / n, k % n) { 0.0 } else { 1.0 };
        let mut out: Vec<f32> = (0..self.scores.len()).map(weight).collect();
        for row in out.chunks_exact_mut(n).filter(|row| row.iter().all(|&w| w == 0.0)) {
            row[0] = 1.0;
        }
        Ok(out)
    }

    /// `scores` and `positive` determine b and n; the mask must fit them.
    fn check(&self) -> Result<()> {
        let (b, n, all) = (self.anchors(), self.candidates(), self.scores.len());
        let expected =
            format_args!("rows of equal length, at least one score in each, for {b} anchors");
        let fits = b > 0 && n > 0 && all == b * n;
        Error::unless(fits, "scores", expected, format_args!("{all} scores"))?;
        checks::count("mask", b * n, "one per score", self.excluded.len())?;
        let place = |i: usize| format!("positive score of anchor {i}");
        Error::unless_finite(self.positive, place, "a finite number")?;
        if self.scores.iter().fold(true, |all, s| all & s.is_finite()) {
            return Ok(()); // the usual case has no branch for each score
        }
        let bad = |&(k, s): &(usize, &f32)| !s.is_finite() && !self.excluded(k / n, k % n);
        let Some((k, score)) = self.scores.iter().enumerate().find(bad) else { return Ok(()) };
        let place = format!("score of anchor {} and candidate {}", k / n, k % n);
        Err(Error::invalid(place, "a finite number", score))
    }
}

/// Sampling weights of one direction: Eq. 13 with a cut, a mask and a fallback.
///
/// ```text
/// ρ = exp(−τ P(c|s))       non-easy: n⁺ > min_count and P > λ      (11)
/// ρ = exp(−α (s − s⁺)²)    easy: everything else                   (12)
/// ρ = 0                    same image, or s ≤ μ⁺ − γ
/// a row of zeros           1 at the column of the largest hinge
/// ```
///
/// | symbol | here            | shape    |
/// |--------|-----------------|----------|
/// | s      | `pool.scores`   | `[b, n]` |
/// | s⁺     | `pool.positive` | `[b]`    |
/// | μ⁺, n⁺ | `seen.positive` |          |
///
/// `rule` says p, λ and its tie, τ, α, the margin and its cut, `min_count` and the density; its other numbers are not read.
/// Returns ρ, `[b, n]`, without randomness; [`draw`](crate::draw()) draws from it. λ is compared in log-odds, or in 1 − P with
/// [`Density::F32`]. `seen` must be the statistics of this step: take a new snapshot for each step.
///
/// # Errors
/// If the slices of `pool` do not fit together, or hold no anchor or no candidate; if a score that is not excluded is NaN or
/// infinite; if an anchor has the id [`NEVER`](crate::NEVER), −100; if a number of `rule` is out of its range, or a number of
/// `seen` is not finite. The message names the place, what was expected and what was found.
///
/// # Departures
/// The paper has neither cut nor fallback, prints exp(−P) (τ = 1) and λ = 0.01; the released code
/// takes τ = 0.5 and λ = 0.001. The cut, τ and λ are fields of [`SamplerConfig`].
///
/// ```
/// use fne::{CandidatePool, Preset, SamplerConfig, Snapshot, weights};
///
/// let pool = CandidatePool {
///     scores: &[0.6, 0.5, 0.1, f32::NAN], // the last one is excluded: nothing reads it
///     positive: &[0.7],
///     excluded: &[false, false, false, true],
/// };
/// let rho = weights(&pool, &SamplerConfig::preset(Preset::Default), &Snapshot::default())?;
/// assert!((rho[0] - (-0.5f32 * 0.1 * 0.1).exp()).abs() < 1e-6); // Eq. 12
/// assert!(rho[0] > rho[1] && rho[1] > rho[2] && rho[3] == 0.0);
/// # Ok::<(), fne::Error>(())
/// ```
pub fn weights(pool: &CandidatePool, rule: &SamplerConfig, seen: &Snapshot) -> Result<Vec<f32>> {
    pool.check()?;
    rule.check("rule")?;
    seen.check("statistics")?;
    let n = pool.candidates();
    let posterior = seen.posterior(rule.prior, rule.min_count);
    let cut =
        if rule.margin_cut { (seen.positive.mean - rule.margin) as f32 } else { f32::NEG_INFINITY };
    let mut out = vec![0.0; pool.anchors() * n];
    let mut kept = RowCandidates::default();
    for (i, row) in out.chunks_exact_mut(n).enumerate() {
        let excluded = &pool.excluded[i * n..(i + 1) * n];
        kept.select(pool.row(i), cut, excluded);
        kept.weigh(pool.positive[i], rule, posterior.as_ref());
        for (&j, &w) in kept.columns.iter().zip(&kept.weights) {
            row[j as usize] = w;
        }
        if kept.weights.iter().all(|&w| w == 0.0) {
            row[pool.hardest_of(i, rule.margin)] = 1.0;
        }
    }
    Ok(out)
}

/// The candidates of one row that are neither masked nor cut, packed so that the loops over them
/// vectorise. With the cut, a few dozen of thousands are left.
#[derive(Default)]
struct RowCandidates {
    columns: Vec<u32>,
    scores: Vec<f32>,
    logits: Vec<f32>,
    weights: Vec<f32>,
}

impl RowCandidates {
    fn select(&mut self, row: &[f32], cut: f32, excluded: &[bool]) {
        self.columns.resize(row.len(), 0);
        self.scores.resize(row.len(), 0.0);
        let mut kept = 0; // each candidate is written, some are kept: no branch to mispredict
        for (j, (&s, &excluded)) in row.iter().zip(excluded).enumerate() {
            self.columns[kept] = j as u32;
            self.scores[kept] = s;
            kept += usize::from((s > cut) & !excluded);
        }
        self.columns.truncate(kept);
        self.scores.truncate(kept);
    }

    fn weigh(&mut self, positive: f32, rule: &SamplerConfig, posterior: Option<&Posterior>) {
        let (alpha, tau) = (rule.alpha as f32, rule.tau as f32);
        self.weights.clear();
        self.weights.extend(self.scores.iter().map(|&s| {
            let d = s - positive;
            exp_nonpositive(-alpha * d * d)
        }));
        let Some(posterior) = posterior else { return };
        if rule.density == Density::F32 {
            return self.weigh_by_quotients(rule, posterior);
        }
        self.logits.resize(self.scores.len(), 0.0);
        posterior.log_odds_into(&self.scores, &mut self.logits);
        let lambda = log_odds(rule.lambda) as f32;
        let tie = rule.tie == Tie::NonEasy;
        for (w, &logit) in self.weights.iter_mut().zip(&self.logits) {
            let non_easy = (logit > lambda) | (tie & (logit == lambda));
            let rho = exp_nonpositive(-tau * sigmoid(logit));
            *w = if non_easy { rho } else { *w };
        }
    }

    /// A comparison with NaN is false, so a candidate whose P is NaN keeps the weight of an easy negative.
    fn weigh_by_quotients(&mut self, rule: &SamplerConfig, posterior: &Posterior) {
        let (easy, tau) = ((1.0 - rule.lambda) as f32, rule.tau as f32);
        let tie = rule.tie == Tie::NonEasy;
        for (w, &s) in self.weights.iter_mut().zip(&self.scores) {
            let p = posterior.quotient(s);
            let mismatch = 1.0 - p;
            if mismatch < easy || (tie && mismatch == easy) {
                *w = (-tau * p).exp();
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! How likely each candidate is to be drawn as the negative of its anchor: Eq. 11–13, with the cut and the
//! fallback of the released code.

use serde::{Deserialize, Serialize};

use crate::exp::{exp_nonpositive, sigmoid};
use crate::posterior::{Posterior, log_odds};
use crate::statistics::Snapshot;

/// What a candidate is whose posterior is exactly λ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tie {
    /// Eq. 12 (released code).
    Easy,
    /// Eq. 11 (the printed Eq. 13: easy means P < λ).
    NonEasy,
}

/// How P(c|s) is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Density {
    /// In log-odds, which saturate.
    #[default]
    LogOdds,
    /// As a quotient of f32 densities (released code): far from both means 0/0, and the candidate stays easy.
    F32,
}

/// The numbers of Eq. 11–13.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// p of Eq. 10.
    pub prior: f64,
    /// λ of Eq. 13: below it a candidate is an easy negative.
    pub lambda: f64,
    /// Which side P = λ belongs to.
    pub tie: Tie,
    /// τ: 0.5 in the released code, 1 in print.
    pub tau: f64,
    /// α of Eq. 12.
    pub alpha: f64,
    /// γ of Eq. 3.
    pub margin: f64,
    /// Whether candidates with s ≤ μ⁺ − γ get no weight (released code; not in the paper).
    pub margin_cut: bool,
    /// The posterior is used once n⁺ exceeds this.
    pub min_count: u64,
    /// How P(c|s) is evaluated.
    pub density: Density,
}

/// X: which candidates are no negatives of which anchors.
#[derive(Debug, Clone, Copy)]
pub enum Excluded<'a> {
    /// Where both show the same image.
    SameImage {
        /// Image id of each anchor, `[b]`.
        anchors: &'a [i64],
        /// Image id of each candidate, `[n]`; −100 for a row that was never written.
        candidates: &'a [i64],
    },
    /// Where it says so, `[b, n]`.
    Mask(&'a [bool]),
}

/// The candidates of one direction, on the host.
#[derive(Debug, Clone, Copy)]
pub struct Pool<'a> {
    /// S: similarity of each anchor to each candidate, `[b, n]` row-major.
    pub scores: &'a [f32],
    /// s⁺: similarity of each anchor to its own partner, `[b]`.
    pub positive: &'a [f32],
    /// X.
    pub excluded: Excluded<'a>,
}

impl Pool<'_> {
    /// Number b of anchors.
    pub fn anchors(&self) -> usize {
        self.positive.len()
    }

    /// Number n of candidates.
    pub fn candidates(&self) -> usize {
        match self.excluded {
            Excluded::SameImage { candidates, .. } => candidates.len(),
            Excluded::Mask(mask) => mask.len() / self.anchors().max(1),
        }
    }

    /// Whether candidate `j` is no negative of anchor `i`.
    pub fn excluded(&self, i: usize, j: usize) -> bool {
        match self.excluded {
            Excluded::SameImage { anchors, candidates } => anchors[i] == candidates[j],
            Excluded::Mask(mask) => mask[i * self.candidates() + j],
        }
    }

    /// Similarities of anchor `i`.
    pub fn row(&self, i: usize) -> &[f32] {
        let n = self.candidates();
        &self.scores[i * n..(i + 1) * n]
    }

    /// For each anchor the first candidate with the largest hinge `[γ + s − s⁺]₊`, excluded ones
    /// counting 0: the choice of the row "w/o FNE", and the fallback of a row without weights.
    /// If no hinge of a row is active it is column 0.
    ///
    /// # Panics
    /// As [`weights`].
    pub fn hardest(&self, margin: f64) -> Vec<usize> {
        self.check();
        (0..self.anchors()).map(|i| self.hardest_of(i, margin)).collect()
    }

    fn hardest_of(&self, i: usize, margin: f64) -> usize {
        let (mut best, mut column) = (0.0, 0);
        let slack = margin as f32 - self.positive[i];
        for (j, &s) in self.row(i).iter().enumerate() {
            if slack + s > best && !self.excluded(i, j) {
                (best, column) = (slack + s, j);
            }
        }
        column
    }

    /// Weight 1 for every candidate of another image: what the sampler is compared with.
    ///
    /// # Panics
    /// As [`weights`].
    pub fn uniform(&self) -> Vec<f32> {
        self.check();
        let n = self.candidates();
        let mut out = vec![0.0; self.anchors() * n];
        for (i, row) in out.chunks_exact_mut(n).enumerate() {
            row.iter_mut().enumerate().for_each(|(j, w)| {
                *w = if self.excluded(i, j) { 0.0 } else { 1.0 };
            });
            if row.iter().all(|&w| w == 0.0) {
                row[0] = 1.0;
            }
        }
        out
    }

    fn check(&self) {
        let (b, n) = (self.anchors(), self.candidates());
        assert!(n > 0, "a pool of [{b}, {n}] holds no candidate");
        assert_eq!(self.scores.len(), b * n, "scores are [{b}, {n}]");
        match self.excluded {
            Excluded::SameImage { anchors, .. } => {
                assert_eq!(anchors.len(), b, "ids of the anchors: one for each of {b} positives");
            }
            Excluded::Mask(mask) => assert_eq!(mask.len(), b * n, "the mask is [{b}, {n}]"),
        }
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
/// Returns ρ, `[b, n]`, without randomness; [`draw`](crate::draw()) draws from it. λ is compared
/// in log-odds, or in 1 − P with [`Density::F32`].
///
/// # Panics
/// If the slices of `pool` do not fit together, or there is no candidate.
///
/// # Departures
/// The paper has neither cut nor fallback, prints exp(−P) (τ = 1) and λ = 0.01; the released code
/// takes τ = 0.5 and λ = 0.001. All are fields of [`Rule`].
pub fn weights(pool: &Pool, rule: &Rule, seen: &Snapshot) -> Vec<f32> {
    pool.check();
    let n = pool.candidates();
    let posterior = seen.posterior(rule.prior, rule.min_count);
    let cut =
        if rule.margin_cut { (seen.positive.mean - rule.margin) as f32 } else { f32::NEG_INFINITY };
    let mut out = vec![0.0; pool.anchors() * n];
    let mut kept = Kept::new(n);
    for (i, row) in out.chunks_exact_mut(n).enumerate() {
        match pool.excluded {
            Excluded::SameImage { anchors, candidates } => {
                kept.select(pool.row(i), cut, candidates.iter().map(|&id| id == anchors[i]));
            }
            Excluded::Mask(mask) => {
                kept.select(pool.row(i), cut, mask[i * n..(i + 1) * n].iter().copied());
            }
        }
        kept.weigh(pool.positive[i], rule, posterior.as_ref());
        for (&j, &w) in kept.columns.iter().zip(&kept.weights) {
            row[j as usize] = w;
        }
        if kept.weights.iter().all(|&w| w == 0.0) {
            row[pool.hardest_of(i, rule.margin)] = 1.0;
        }
    }
    out
}

/// The candidates of one row that are neither masked nor cut, packed so that the loops over them
/// vectorise; with the cut on it is a few dozen of thousands.
struct Kept {
    columns: Vec<u32>,
    scores: Vec<f32>,
    logits: Vec<f32>,
    weights: Vec<f32>,
}

impl Kept {
    fn new(n: usize) -> Self {
        let floats = || Vec::with_capacity(n);
        Self { columns: vec![], scores: floats(), logits: floats(), weights: floats() }
    }

    fn select(&mut self, row: &[f32], cut: f32, excluded: impl Iterator<Item = bool>) {
        self.columns.resize(row.len(), 0);
        self.scores.resize(row.len(), 0.0);
        let mut kept = 0; // written always, kept sometimes: no branch to mispredict
        for (j, (&s, excluded)) in row.iter().zip(excluded).enumerate() {
            self.columns[kept] = j as u32;
            self.scores[kept] = s;
            kept += usize::from((s > cut) & !excluded);
        }
        self.columns.truncate(kept);
        self.scores.truncate(kept);
    }

    fn weigh(&mut self, positive: f32, rule: &Rule, posterior: Option<&Posterior>) {
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

    /// No comparison with NaN holds: such a candidate keeps the weight of an easy one.
    fn weigh_by_quotients(&mut self, rule: &Rule, posterior: &Posterior) {
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

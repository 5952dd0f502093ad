//! Running mean and variance of matched and mismatched similarities, §3.2 of the paper.

use itm_core::learn::within;
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::checks;
use crate::posterior::{Gaussian, Posterior};

/// How the variance is accumulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Variance {
    /// Σ (x − μ)² / (n − 1), where μ is the running mean after the batch of x.
    Official,
    /// The sample variance, by Welford's recurrence.
    Welford,
}

/// When the accumulators are reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reset {
    /// At the start of every epoch.
    Epoch,
    /// Never.
    Never,
}

/// Count, mean and squared deviations of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moments {
    /// n.
    pub count: u64,
    /// Σ x.
    pub sum: f64,
    /// μ, 0 before the first value.
    pub mean: f64,
    /// Σ of squared deviations.
    pub squares: f64,
}

impl Moments {
    /// `squares / (n − 1)`, 0 while n ≤ 1.
    pub fn variance(&self) -> f64 {
        if self.count > 1 { self.squares / (self.count - 1) as f64 } else { 0.0 }
    }

    /// The normal density with these moments.
    pub(crate) fn gaussian(&self) -> Gaussian {
        Gaussian::new(self.mean, self.variance())
    }

    /// Adds one batch: all means first, then the deviations from the new mean.
    fn extend(&mut self, values: &[f64], variance: Variance) {
        for &x in values {
            self.sum += x;
            self.count += 1;
            let before = x - self.mean;
            match variance {
                Variance::Official => self.mean = self.sum / self.count as f64,
                Variance::Welford => {
                    self.mean += before / self.count as f64;
                    self.squares += before * (x - self.mean);
                }
            }
        }
        if variance == Variance::Official {
            self.squares += values.iter().map(|x| (x - self.mean).powi(2)).sum::<f64>();
        }
    }
}

/// The statistics at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Matched pairs: μ⁺, σ⁺, n⁺.
    pub positive: Moments,
    /// Mismatched pairs: μ⁻, σ⁻, n⁻.
    pub negative: Moments,
}

impl Snapshot {
    /// The posterior of Eq. 9; `None` until **more than** `min_count` matched pairs were seen. `prior` is p of Eq. 10, above 0 and
    /// below 1.
    ///
    /// # Panics
    /// If the prior is not above 0 and below 1. If there is a posterior, also if a mean is not finite, or a variance is negative or not
    /// finite.
    pub fn posterior(&self, prior: f64, min_count: u64) -> Option<Posterior> {
        assert!(prior > 0.0 && prior < 1.0, "a prior above 0 and below 1, got {prior}");
        (self.positive.count > min_count).then(|| Posterior {
            prior,
            positive: self.positive.gaussian(),
            negative: self.negative.gaussian(),
        })
    }

    /// Refuses numbers from outside that are not finite.
    pub(crate) fn check(&self, place: &str) -> Result<()> {
        for (class, moments) in [("positive", self.positive), ("negative", self.negative)] {
            let Moments { sum, mean, squares, .. } = moments;
            for (name, value) in [("sum", sum), ("mean", mean)] {
                within(&format!("{place}.{class}.{name}"), value, "a finite number", |_| true)?;
            }
            let key = format!("{place}.{class}.squares");
            within(&key, squares, "a finite number of at least 0", |x| x >= 0.0)?;
        }
        Ok(())
    }
}

/// Accumulates Eq. 4's S⁺ and S⁻ over the batches of an epoch, in f64.
///
/// ```text
/// pair i is taken     iff  i = argmax_j S[i,j]  and  i = argmax_j S[j,i]
/// its positive value       S[i,i]
/// its negative values      max(0, max_{j≠i} S[i,j]),  max(0, max_{j≠i} S[j,i])
/// μ = Σx / n,   variance = Σ (x − μ)² / (n − 1), each x with the μ after the batch of x
/// ```
///
/// # Departures
/// In the paper a pair must rank first among the mismatched pairs of its batch. In the released code
/// and here the pair must rank first in both directions. At n = 1 the code divides by zero; here the
/// variance is 0 and the posterior is not used. [`Variance::Welford`] and [`Reset::Never`] are ours.
///
/// ```
/// use fne::{Reset, Statistics, Variance};
///
/// let mut statistics = Statistics::new(Variance::Official, Reset::Epoch);
/// #[rustfmt::skip]
/// statistics.update(&[
///     0.9, 0.2, // pair 0 is the best of its row and its column
///     0.3, 0.1, // pair 1 is not: 0.3 > 0.1
/// ], 2)?;
/// let seen = statistics.snapshot();
/// assert_eq!((seen.positive.count, seen.negative.count), (1, 2));
/// assert!((seen.negative.mean - 0.25).abs() < 1e-7);
/// # Ok::<(), fne::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    variance: Variance,
    reset: Reset,
    seen: Snapshot,
}

impl Statistics {
    /// Empty statistics.
    pub fn new(variance: Variance, reset: Reset) -> Self {
        Self { variance, reset, seen: Snapshot::default() }
    }

    /// Call it at the start of each epoch: forgets everything, unless the reset is [`Reset::Never`].
    pub fn begin_epoch(&mut self) {
        if self.reset == Reset::Epoch {
            self.seen = Snapshot::default();
        }
    }

    /// The numbers accumulated so far.
    pub fn snapshot(&self) -> Snapshot {
        self.seen
    }

    /// Continues from these numbers.
    pub(crate) fn restore(&mut self, seen: Snapshot) {
        self.seen = seen;
    }

    /// Takes in the scores of one batch, `[b, b]` row-major: row i is image i, column j is text j. Call it once per step.
    ///
    /// # Errors
    /// If `scores` does not hold `b · b` values, or one of them is not finite. The statistics are then unchanged.
    pub fn update(&mut self, scores: &[f32], b: usize) -> Result<()> {
        self.update_masked(scores, b, |_, _| false)
    }

    /// [`update`](Self::update) without the pairs (i, j), i ≠ j, for which `skip` holds.
    ///
    /// # Errors
    /// The errors of [`update`](Self::update).
    pub(crate) fn update_masked(
        &mut self,
        scores: &[f32],
        b: usize,
        skip: impl Fn(usize, usize) -> bool,
    ) -> Result<()> {
        let each = format!("one for each of {b} images and {b} texts");
        checks::count("scores of the batch", b.saturating_mul(b), &each, scores.len())?;
        let place = |at| format!("score of image {} and text {} of the batch", at / b, at % b);
        Error::unless_finite(scores, place, "a finite number")?;
        let (mut positive, mut negative) = (Vec::with_capacity(b), Vec::with_capacity(2 * b));
        for i in 0..b {
            let own = scores[i * b + i];
            let row = rival(own, i, b, |j| (!skip(i, j)).then(|| scores[i * b + j]));
            let column = rival(own, i, b, |j| (!skip(j, i)).then(|| scores[j * b + i]));
            if let Some((row, column)) = row.zip(column) {
                positive.push(f64::from(own));
                negative.extend([row, column]);
            }
        }
        self.seen.positive.extend(&positive, self.variance);
        self.seen.negative.extend(&negative, self.variance);
        Ok(())
    }
}

/// The largest score of the others, at least 0, if `own`, with the index `i`, is the argmax. The lowest index wins a tie.
fn rival(own: f32, i: usize, b: usize, score: impl Fn(usize) -> Option<f32>) -> Option<f64> {
    let best =
        |range: std::ops::Range<usize>| range.filter_map(&score).fold(f32::NEG_INFINITY, f32::max);
    let (before, after) = (best(0..i), best(i + 1..b));
    (own > before && own >= after).then(|| f64::from(before.max(after).max(0.0)))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::golden::{floats, golden};

    fn official() -> Statistics {
        Statistics::new(Variance::Official, Reset::Epoch)
    }

    fn check(name: &str, got: &Moments, want: &serde_json::Value) {
        assert_eq!(got.count, want["count"].as_u64().unwrap(), "{name}: count");
        for (what, g, w) in
            [("mean", got.mean, &want["mean"]), ("variance", got.variance(), &want["variance"])]
        {
            let w = w.as_f64().unwrap();
            assert!((g - w).abs() < 1e-6, "{name}: {what}: got {g}, want {w}");
        }
    }

    /// `tests/reference/fne.py`, `statistics`: several batches, with the start of an epoch between two.
    #[test]
    fn golden_statistics() {
        let golden = golden();
        for (name, variance, reset) in [
            ("official", Variance::Official, Reset::Epoch),
            ("welford", Variance::Welford, Reset::Epoch),
            ("never", Variance::Official, Reset::Never),
        ] {
            let mut statistics = Statistics::new(variance, reset);
            for (k, step) in golden["statistics"]["steps"].as_array().unwrap().iter().enumerate() {
                if step["begin_epoch"].as_bool().unwrap() {
                    statistics.begin_epoch();
                }
                let b = step["b"].as_u64().unwrap() as usize;
                statistics.update(&floats(&step["scores"]), b).unwrap();
                let seen = statistics.snapshot();
                check(&format!("{name} step {k} +"), &seen.positive, &step[name]["positive"]);
                check(&format!("{name} step {k} -"), &seen.negative, &step[name]["negative"]);
            }
        }
    }

    /// By hand. Positives 0.8 then 0.6: μ 0.8 → 0.7; squares 0² + (0.6 − 0.7)² = 0.01, n − 1 = 1.
    /// With the passes swapped (deviation from the old mean) the variance would be 0.2² = 0.04. The
    /// sample variance is 0.02.
    #[test]
    fn trap_01_variance_against_the_mean_of_its_batch() {
        let mut statistics = official();
        statistics.update(&[0.8], 1).unwrap();
        assert_eq!(statistics.snapshot().positive.variance(), 0.0);
        statistics.update(&[0.6], 1).unwrap();
        assert!((statistics.snapshot().positive.variance() - 0.01).abs() < 1e-7);

        let mut exact = Statistics::new(Variance::Welford, Reset::Epoch);
        exact.update(&[0.8], 1).unwrap();
        exact.update(&[0.6], 1).unwrap();
        assert!((exact.snapshot().positive.variance() - 0.02).abs() < 1e-7);
    }

    #[test]
    fn trap_02_reset_per_epoch() {
        let mut statistics = official();
        statistics.update(&[0.8], 1).unwrap();
        statistics.begin_epoch();
        assert_eq!(statistics.snapshot(), Snapshot::default());

        let mut kept = Statistics::new(Variance::Official, Reset::Never);
        kept.update(&[0.8], 1).unwrap();
        kept.begin_epoch();
        assert_eq!(kept.snapshot().positive.count, 1);
    }

    #[test]
    fn trap_03_gate_is_strict() {
        let mut statistics = official();
        for n in 1..=201 {
            statistics.update(&[0.5 + 0.001 * n as f32], 1).unwrap();
            assert_eq!(statistics.snapshot().posterior(1e-4, 200).is_some(), n > 200, "n+ = {n}");
        }
    }

    #[test]
    fn trap_18_negatives_are_floored_at_zero() {
        let mut statistics = official();
        statistics.update(&[0.5, -0.3, -0.2, 0.4], 2).unwrap();
        let seen = statistics.snapshot();
        assert_eq!((seen.positive.count, seen.negative.count), (2, 4));
        assert_eq!((seen.negative.mean, seen.negative.variance()), (0.0, 0.0));

        let mut single = official();
        single.update(&[-0.5], 1).unwrap();
        let seen = single.snapshot();
        assert_eq!((seen.positive.count, seen.negative.count, seen.negative.mean), (1, 2, 0.0));
    }

    /// Ties go to the lowest index: a later rival with the same score loses, an earlier one wins.
    #[test]
    fn ties_select_the_lowest_index() {
        for (scores, want) in [([0.6, 0.6, 0.1, 0.7], 2), ([0.7, 0.6, 0.1, 0.6], 1)] {
            let mut statistics = official();
            statistics.update(&scores, 2).unwrap();
            assert_eq!(statistics.snapshot().positive.count, want, "{scores:?}");
        }
    }

    #[test]
    fn best_in_both_directions() {
        let mut statistics = official();
        // Pair 0 leads its row (0.5 > 0.4) but not its column (0.6). Pair 1 leads only its column.
        statistics.update(&[0.5, 0.4, 0.6, 0.55], 2).unwrap();
        assert_eq!(statistics.snapshot().positive.count, 0);
        // Without the pair (1, 0), pair 0 is taken, and so is pair 1.
        statistics.update_masked(&[0.5, 0.4, 0.6, 0.55], 2, |i, j| (i, j) == (1, 0)).unwrap();
        assert_eq!(statistics.snapshot().positive.count, 2);
    }

    #[test]
    fn scores_that_do_not_fit_change_nothing() {
        let mut statistics = official();
        statistics.update(&[0.8], 1).unwrap();
        let before = statistics.clone();
        let line = statistics.update(&[0.5; 3], 2).unwrap_err().to_string();
        let expected = "4 values, one for each of 2 images and 2 texts";
        assert_eq!(line, format!("scores of the batch: expected {expected}, got 3"));
        for bad in [f32::NAN, f32::INFINITY] {
            let line = statistics.update(&[0.5, 0.1, bad, 0.4], 2).unwrap_err().to_string();
            let place = "score of image 1 and text 0 of the batch";
            assert_eq!(line, format!("{place}: expected a finite number, got {bad}"));
        }
        assert_eq!(statistics, before);
    }

    proptest! {
        /// Welford's numbers equal the plain two-pass formula over everything.
        #[test]
        fn welford_is_the_sample_variance(batches in vec(vec(-1.0f64..1.0, 1..8), 1..6)) {
            let mut moments = Moments::default();
            batches.iter().for_each(|b| moments.extend(b, Variance::Welford));
            let all: Vec<f64> = batches.concat();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let ss: f64 = all.iter().map(|x| (x - mean).powi(2)).sum();
            prop_assert!((moments.mean - mean).abs() < 1e-12);
            prop_assert!((moments.squares - ss).abs() < 1e-10);
        }

        /// In one batch both variances agree. Transposing the scores changes nothing.
        #[test]
        fn one_batch_laws(s in vec(-1.0f32..1.0, 16)) {
            let mut transposed = vec![0.0; 16];
            for (k, x) in s.iter().enumerate() { transposed[(k % 4) * 4 + k / 4] = *x; }
            let run = |s: &[f32], v| {
                let mut st = Statistics::new(v, Reset::Epoch);
                st.update(s, 4).unwrap();
                st.snapshot()
            };
            let (a, b) = (run(&s, Variance::Official), run(&s, Variance::Welford));
            prop_assert!((a.positive.variance() - b.positive.variance()).abs() < 1e-9);
            prop_assert!((a.negative.variance() - b.negative.variance()).abs() < 1e-9);
            let t = run(&transposed, Variance::Official);
            prop_assert_eq!(t.positive, a.positive);
            prop_assert!((t.negative.mean - a.negative.mean).abs() < 1e-9);
            prop_assert_eq!(a.negative.count, 2 * a.positive.count);
        }
    }
}

//! The probability that a negative is a false negative, given its similarity: Eq. 4–10.

use serde::{Deserialize, Serialize};

/// Smallest standard deviation a density may have.
pub(crate) const SIGMA_FLOOR: f64 = 1e-4;

/// Normal density of similarities, Eq. 5.
///
/// ```text
/// f(s) = exp(−((s − μ)/σ)²/2) / (σ √(2π)),   σ = max(√variance, 1e-4)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gaussian {
    /// μ.
    pub mean: f64,
    /// σ, above 0.
    pub deviation: f64,
}

impl Gaussian {
    /// From mean and variance; the deviation is at least 1e-4.
    ///
    /// # Panics
    /// If the mean is not finite, or the variance is negative or not finite.
    pub fn new(mean: f64, variance: f64) -> Self {
        let fine = mean.is_finite() && variance >= 0.0 && variance.is_finite();
        assert!(fine, "a density of mean {mean} and variance {variance}");
        Self { mean, deviation: variance.sqrt().max(SIGMA_FLOOR) }
    }
}

/// Probability that a candidate of similarity `s` matches its anchor, Eq. 6–10, in log-odds.
///
/// ```text
/// logit(s) = ln p − ln(1−p) + ln f(s|c) − ln f(s|c̄)
/// P(c|s)   = 1 / (1 + exp(−logit(s)))
/// ```
///
/// | symbol   | here       |
/// |----------|------------|
/// | p        | `prior`    |
/// | f(s\|c)  | `positive` |
/// | f(s\|c̄)  | `negative` |
///
/// P(c|s) is monotone in `s` only if both deviations are equal. With σ⁺ > σ⁻ it rises again for very
/// low `s`; with σ⁺ < σ⁻ it falls for very high `s`. This follows from the equations.
///
/// # Departures
/// The released code divides the densities themselves, in f32. The result is 0/0 if both |z| exceed 13.
/// The scan of the paper drops the square of σ in Eq. 5's exponent; it is 2σ².
///
/// ```
/// use fne::{Gaussian, Posterior};
///
/// let posterior = Posterior {
///     prior: 1e-4,
///     positive: Gaussian::new(0.6, 0.01),
///     negative: Gaussian::new(0.2, 0.01),
/// };
/// // Half-way between the means the densities are equal and the prior remains.
/// assert!((posterior.probability(0.4) - 1e-4).abs() < 1e-12);
/// assert!(posterior.probability(0.8) > 0.99);
/// assert_eq!(posterior.probability(-50.0), 0.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Posterior {
    /// p of Eq. 10: the share of matches among candidates before looking at `s`.
    pub prior: f64,
    /// Similarities of matching pairs.
    pub positive: Gaussian,
    /// Similarities of pairs that do not match.
    pub negative: Gaussian,
}

impl Posterior {
    /// logit(s) = ln P(c|s) − ln P(c̄|s).
    ///
    /// # Panics
    /// If the prior is not above 0 and below 1, or a deviation is not above 0.
    pub fn log_odds(&self, s: f64) -> f64 {
        let z = |g: &Gaussian| (s - g.mean) / g.deviation;
        let (zp, zn) = (z(&self.positive), z(&self.negative));
        self.offset() + (zn * zn - zp * zp) / 2.0
    }

    /// P(c|s).
    ///
    /// # Panics
    /// As [`log_odds`](Self::log_odds).
    pub fn probability(&self, s: f64) -> f64 {
        let logit = self.log_odds(s);
        let small = (-logit.abs()).exp();
        if logit < 0.0 { small / (1.0 + small) } else { 1.0 / (1.0 + small) }
    }

    /// [`log_odds`](Self::log_odds) of every score.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub(crate) fn log_odds_into(&self, scores: &[f32], out: &mut [f32]) {
        assert_eq!(scores.len(), out.len(), "scores and log-odds differ in length");
        let offset = self.offset() as f32;
        let (mp, ip) = (self.positive.mean as f32, (1.0 / self.positive.deviation) as f32);
        let (mn, in_) = (self.negative.mean as f32, (1.0 / self.negative.deviation) as f32);
        for (o, &s) in out.iter_mut().zip(scores) {
            let (zp, zn) = ((s - mp) * ip, (s - mn) * in_);
            // (zn − zp)(zn + zp): no ∞ − ∞, and exactly 0 where both densities agree.
            *o = offset + 0.5 * ((zn - zp) * (zn + zp));
        }
    }

    /// P(c|s) by Eq. 9 as printed, with densities in f32. NaN where both densities are 0: about 13 deviations from both means.
    pub(crate) fn quotient(&self, s: f32) -> f32 {
        let density = |g: &Gaussian| {
            let (mean, deviation) = (g.mean as f32, g.deviation as f32);
            let z = (s - mean) / deviation;
            (-0.5 * z * z - deviation.ln() - 0.5 * std::f32::consts::TAU.ln()).exp()
        };
        let (positive, negative) = (density(&self.positive), density(&self.negative));
        positive / (positive + ((1.0 - self.prior) / self.prior) as f32 * negative)
    }

    /// The part of the log-odds that does not depend on `s`.
    fn offset(&self) -> f64 {
        let prior = self.prior;
        assert!(prior > 0.0 && prior < 1.0, "a prior above 0 and below 1, got {prior}");
        let (matched, mismatched) = (self.positive.deviation, self.negative.deviation);
        let least = matched.min(mismatched);
        assert!(least > 0.0, "deviations above 0, got {matched} and {mismatched}");
        log_odds(self.prior) + (mismatched.ln() - matched.ln())
    }
}

/// ln p − ln(1−p); −∞ at 0, ∞ at 1.
pub(crate) fn log_odds(p: f64) -> f64 {
    p.ln() - (-p).ln_1p()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::exp::sigmoid;
    use crate::golden::golden;

    fn example(prior: f64, sp: f64, sn: f64) -> Posterior {
        Posterior { prior, positive: Gaussian::new(0.55, sp), negative: Gaussian::new(0.2, sn) }
    }

    /// `tests/reference/fne.py`, `posterior`.
    #[test]
    fn golden_posterior() {
        for case in golden()["posterior"].as_array().unwrap() {
            let g = |k: &str| {
                Gaussian::new(
                    case[k]["mean"].as_f64().unwrap(),
                    case[k]["variance"].as_f64().unwrap(),
                )
            };
            let prior = case["prior"].as_f64().unwrap();
            let posterior = Posterior { prior, positive: g("positive"), negative: g("negative") };
            let list = |k: &str| -> Vec<f64> {
                case[k].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
            };
            let (s, logit, p) = (list("s"), list("logit"), list("p"));
            let scores: Vec<f32> = s.iter().map(|&s| s as f32).collect();
            let mut fast_logit = vec![0.0; s.len()];
            posterior.log_odds_into(&scores, &mut fast_logit);
            let fast_p: Vec<f32> = fast_logit.iter().map(|&logit| sigmoid(logit)).collect();
            for i in 0..s.len() {
                let scale = 1.0 + logit[i].abs();
                assert!(
                    (posterior.log_odds(s[i]) - logit[i]).abs() < 1e-11 * scale,
                    "logit {}",
                    s[i]
                );
                assert!((posterior.probability(s[i]) - p[i]).abs() < 1e-12, "P({})", s[i]);
                assert!(
                    (f64::from(fast_logit[i]) - logit[i]).abs() < 1e-5 * scale,
                    "f32 logit {}",
                    s[i]
                );
                let slack = 1e-6 + 1e-5 * scale * p[i] * (1.0 - p[i]);
                assert!((f64::from(fast_p[i]) - p[i]).abs() < slack, "f32 P({})", s[i]);
            }
        }
    }

    /// Bayes by hand: f(s|c) = 2 f(s|c̄) at the mean of both when σ⁻ = 2σ⁺; odds 1/9999 · 2.
    #[test]
    fn golden_by_hand() {
        let posterior = Posterior {
            prior: 1e-4,
            positive: Gaussian::new(0.3, 0.01),
            negative: Gaussian::new(0.3, 0.04),
        };
        let odds = 2.0 / 9999.0;
        assert!((posterior.probability(0.3) - odds / (1.0 + odds)).abs() < 1e-15);
    }

    #[test]
    fn trap_05_far_from_both_means_is_finite() {
        for (sp, sn) in [(0.01, 0.01), (0.01, 0.0004), (0.0004, 0.01), (0.0, 0.0)] {
            let posterior = example(1e-4, sp, sn);
            let sigma = posterior.positive.deviation.max(posterior.negative.deviation);
            for z in [-1e4, -20.0, -13.5, 13.5, 20.0, 1e4] {
                let s = 0.4 + z * sigma;
                let mut fast = [f32::NAN];
                posterior.log_odds_into(&[s as f32], &mut fast);
                for p in [posterior.probability(s), f64::from(sigmoid(fast[0]))] {
                    assert!(p.is_finite() && (0.0..=1.0).contains(&p), "s = {s}: P = {p}");
                    let saturated = p.min(1.0 - p);
                    assert!(saturated < 1e-6, "s = {s}: {p} is not saturated");
                }
            }
        }
    }

    /// P20: near the means the quotient of f32 densities is the posterior. 20 deviations from both means it is 0/0.
    #[test]
    fn the_quotient_of_f32_densities_is_nan_far_away() {
        let posterior = example(1e-4, 0.0004, 0.0004); // deviations 0.02, means 0.55 and 0.2
        for s in [0.3f32, 0.36, 0.4, 0.5] {
            let (got, want) = (f64::from(posterior.quotient(s)), posterior.probability(s.into()));
            assert!((got - want).abs() < 1e-4 * want.max(1e-3), "{s}: {got} and {want}");
        }
        assert!(posterior.quotient(0.95).is_nan(), "20 deviations above the higher mean");
        assert!(posterior.probability(0.95) > 0.999);
    }

    proptest! {
        #[test]
        fn prior_shifts_log_odds(s in -1.0..1.0, sp in 0.001..0.2, sn in 0.001..0.2) {
            let (a, b) = (example(1e-4, sp, sn).log_odds(s), example(0.5, sp, sn).log_odds(s));
            prop_assert!((b - a - 9999f64.ln()).abs() < 1e-9 * (1.0 + a.abs()));
        }

        #[test]
        fn monotone_when_deviations_agree(s in -1.0..1.0, step in 0.0..0.5, v in 0.001..0.2) {
            let p = example(1e-4, v, v);
            prop_assert!(p.log_odds(s + step) >= p.log_odds(s));
            prop_assert!(p.probability(s + step) >= p.probability(s));
        }

        #[test]
        fn probability_is_the_ratio_of_equation_9(s in -0.5..1.0, sp in 0.02..0.2, sn in 0.02..0.2) {
            let post = example(1e-3, sp, sn);
            let f = |g: &Gaussian| {
                let z: f64 = (s - g.mean) / g.deviation;
                (-z * z / 2.0).exp() / g.deviation
            };
            let (c, n) = (1e-3 * f(&post.positive), (1.0 - 1e-3) * f(&post.negative));
            prop_assert!((post.probability(s) - c / (c + n)).abs() < 1e-12);
        }

        #[test]
        fn exchanging_the_classes_gives_the_complement(s in -1.0..1.0, p in 0.001..0.999) {
            let a = example(p, 0.02, 0.01);
            let b = Posterior { prior: 1.0 - p, positive: a.negative, negative: a.positive };
            prop_assert!((a.probability(s) + b.probability(s) - 1.0).abs() < 1e-9);
        }
    }
}

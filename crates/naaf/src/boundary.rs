//! The boundary between mismatched and matched word scores: Eq. 3 to 5.

use itm_core::Result;
use itm_core::learn::within;
use serde::{Deserialize, Serialize};

/// Smallest deviation that is used. It is needed if all scores of a batch are equal.
pub(crate) const DEVIATION_FLOOR: f64 = 1e-4;

/// Mean and standard deviation of sampled scores.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreDistribution {
    /// μ
    pub mean: f64,
    /// σ, with the divisor n − 1
    pub deviation: f64,
    /// n
    pub count: usize,
}

impl ScoreDistribution {
    /// Moments of all samples; the deviation of fewer than two is 0.
    ///
    /// # Panics
    /// If a sample is not finite.
    pub fn of(samples: &[f32]) -> Self {
        if let Some(bad) = samples.iter().find(|s| !s.is_finite()) {
            panic!("a sampled score of {bad}");
        }
        let n = samples.len();
        let values = || samples.iter().map(|&s| f64::from(s));
        let mean = values().sum::<f64>() / n.max(1) as f64;
        let squares = values().map(|s| (s - mean).powi(2)).sum::<f64>();
        Self { mean, deviation: (squares / n.saturating_sub(1).max(1) as f64).sqrt(), count: n }
    }

    /// The fields are public. Comparisons with NaN would give an answer.
    fn check(&self) {
        let Self { mean, deviation, .. } = *self;
        let fine = mean.is_finite() && deviation >= 0.0 && deviation.is_finite();
        assert!(fine, "scores of mean {mean} and deviation {deviation}");
    }

    fn floored(&self) -> f64 {
        self.deviation.max(DEVIATION_FLOOR)
    }
}

/// How the root of Eq. 4 is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Without cancellation, in f64.
    Stable,
    /// As in the released program: β₁ to β₃ in f32, 1e-8 in the logarithm, 1e-10 in the divisor.
    Official,
}

/// The boundary at the local minimum of Eq. 3, before it is limited to 0 and 1; no boundary at all (`t` = ∞) may be better. `None` if there is no such
/// minimum; then the old boundary stays.
///
/// ```text
/// g(t) = α ∫_t^∞ f⁻ + ∫_{−∞}^t f⁺,       g′(t) = f⁺(t) − α f⁻(t) = 0
/// Δ = μ⁺ − μ⁻,   β₁ = σ⁺² − σ⁻²,   L = ln σ⁻ − ln σ⁺ − ln α,   r = Δ² − 2 β₁ L
/// t = μ⁻ + σ⁻ (Δ² − 2 σ⁺² L) / (σ⁻ Δ + σ⁺ √r)
/// ```
///
/// | symbol | here |
/// |---|---|
/// | μ⁺ σ⁺, μ⁻ σ⁻ | `matched`, `mismatched` |
/// | ln α | `ln_alpha`: α itself may overflow |
///
/// # Panics
/// If a mean is not finite, a deviation is negative or not finite, or ln α is NaN.
///
/// # Departures
/// The paper misprints β₂ (the squares on σ are missing) and β₃ (μ⁺ and μ⁻ are exchanged); the released program has both right. In
/// [`Form::Official`] equal deviations cancel to 0 or to noise. Where that program gets NaN, the old boundary stays.
///
/// ```
/// use naaf::{Form, ScoreDistribution, optimal};
///
/// let scores = |mean| ScoreDistribution { mean, deviation: 0.1, count: 300 };
/// let t = optimal(&scores(0.6), &scores(0.2), 2f64.ln(), Form::Stable).unwrap();
/// assert!((t - (0.4 + 0.01 * 2f64.ln() / 0.4)).abs() < 1e-12); // equal deviations
/// ```
pub fn optimal(
    matched: &ScoreDistribution,
    mismatched: &ScoreDistribution,
    ln_alpha: f64,
    form: Form,
) -> Option<f64> {
    matched.check();
    mismatched.check();
    assert!(!ln_alpha.is_nan(), "ln α of NaN");
    if matched.count < 2 || mismatched.count < 2 {
        return None;
    }
    let t = match form {
        Form::Stable => stable(matched, mismatched, ln_alpha),
        Form::Official => official(matched, mismatched, ln_alpha),
    };
    t.filter(|t| t.is_finite())
}

fn stable(
    matched: &ScoreDistribution,
    mismatched: &ScoreDistribution,
    ln_alpha: f64,
) -> Option<f64> {
    let (sp, sn) = (matched.floored(), mismatched.floored());
    let delta = matched.mean - mismatched.mean;
    let b1 = sp * sp - sn * sn;
    let l = sn.ln() - sp.ln() - ln_alpha;
    let r = delta * delta - 2.0 * b1 * l;
    if r < 0.0 {
        return None;
    }
    if delta > 0.0 {
        let above = delta * delta - 2.0 * sp * sp * l;
        return Some(mismatched.mean + sn * above / (sn * delta + sp * r.sqrt()));
    }
    // The distributions are swapped. This is the same root as printed, (√D − β₂) / 2β₁ with D = 4 σ⁺² σ⁻² r.
    let b2 = 2.0 * (matched.mean * sn * sn - mismatched.mean * sp * sp);
    let solvable = b1.abs() >= 1e-8 * (sp * sp + sn * sn);
    solvable.then(|| (2.0 * sp * sn * r.sqrt() - b2) / (2.0 * b1))
}

fn official(
    matched: &ScoreDistribution,
    mismatched: &ScoreDistribution,
    ln_alpha: f64,
) -> Option<f64> {
    let [mp, sp, mn, sn] =
        [matched.mean, matched.deviation, mismatched.mean, mismatched.deviation].map(|x| x as f32);
    let alpha = ln_alpha.exp() as f32;
    let b1 = sp * sp - sn * sn;
    let b2 = 2.0 * (mp * sn * sn - mn * sp * sp);
    let b3 = (sp * mn).powi(2) - (sn * mp).powi(2)
        + 2.0 * (sp * sn).powi(2) * (sn / (alpha * sp) + 1e-8).ln();
    let d = b2 * b2 - 4.0 * b1 * b3;
    (d > 0.0).then(|| f64::from((d.sqrt() - b2) / (2.0 * b1 + 1e-10)))
}

/// Three deviations below the mean of the matched scores: `μ⁺ − 3σ⁺`.
///
/// # Panics
/// If the mean is not finite, or the deviation is negative or not finite.
pub fn lower_bound(matched: &ScoreDistribution) -> f64 {
    matched.check();
    matched.mean - 3.0 * matched.floored()
}

/// `ln α*` of Eq. 5: with α*, the solution of Eq. 4 is [`lower_bound`]. `None` if the lower bound is not a minimum of Eq. 3.
///
/// ```text
/// ln α* = ln σ⁻ − ln σ⁺ + (Δ − 3σ⁺)² / (2σ⁻²) − 9/2       if σ⁺Δ > 3 (σ⁺² − σ⁻²)
/// ```
///
/// # Panics
/// If a mean is not finite, or a deviation is negative or not finite.
///
/// # Departures
/// The paper exchanges the terms of β₄ and lacks three pairs of parentheses. This formula is derived again; it has no singularity at
/// equal deviations.
pub fn ln_alpha_star(matched: &ScoreDistribution, mismatched: &ScoreDistribution) -> Option<f64> {
    matched.check();
    mismatched.check();
    let (sp, sn) = (matched.floored(), mismatched.floored());
    let delta = matched.mean - mismatched.mean;
    let is_minimum = sp * delta > 3.0 * (sp * sp - sn * sn);
    is_minimum.then(|| sn.ln() - sp.ln() + ((delta - 3.0 * sp) / sn).powi(2) / 2.0 - 4.5)
}

/// The numbers that training learns beside the weights. They are in the checkpoint, never in a config. An untrained model scores
/// with a boundary of 0.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boundary {
    /// t, the boundary of training.
    pub t: f64,
    /// t_s, the boundary of inference: μ⁺ − 3σ⁺, smoothed.
    pub t_s: f64,
    /// Matched scores at the last update.
    pub matched: ScoreDistribution,
    /// Mismatched scores at the last update.
    pub mismatched: ScoreDistribution,
    /// ln α* at the last update, if it exists.
    pub ln_alpha_star: Option<f64>,
}

impl Boundary {
    /// Refuses a t or a t_s that no training gives.
    pub(crate) fn check(&self) -> Result<()> {
        let is_cosine = |t| (0.0..=1.0).contains(&t);
        within("boundary t", self.t, "in [0, 1]", is_cosine)?;
        within("boundary t_s", self.t_s, "in [0, 1]", is_cosine)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::golden::{golden, numbers};

    fn moments(value: &Value) -> ScoreDistribution {
        let [mean, deviation] = numbers(value)[..] else { panic!("{value}") };
        ScoreDistribution { mean, deviation, count: 300 }
    }

    fn normal(mean: f64, deviation: f64) -> ScoreDistribution {
        ScoreDistribution { mean, deviation, count: 300 }
    }

    /// Every case of the golden table. The reference script finds the minimum of Eq. 3 by brute force.
    #[test]
    fn golden_boundaries() {
        for (name, case) in golden()["boundary"].as_object().unwrap() {
            let (matched, mismatched) = (moments(&case["matched"]), moments(&case["mismatched"]));
            let ln_alpha = case["alpha"].as_f64().unwrap().ln();
            let stable = optimal(&matched, &mismatched, ln_alpha, Form::Stable);
            match (stable, case["t"].as_f64()) {
                (Some(t), Some(want)) => assert!((t - want).abs() < 1e-9, "{name}: {t} for {want}"),
                (t, want) => assert_eq!(t, want, "{name}"),
            }
            let star = ln_alpha_star(&matched, &mismatched);
            match (star, case["ln_alpha_star"].as_f64()) {
                (Some(a), Some(want)) => assert!((a - want).abs() < 1e-9, "{name}: {a} for {want}"),
                (star, want) if name != "no_spread" => assert_eq!(star, want, "{name}"),
                _ => {}
            }
            let official = optimal(&matched, &mismatched, ln_alpha, Form::Official);
            match (official, case["official"].as_f64()) {
                // This number is noise: it depends on the last bit of every operation.
                (Some(_), Some(_)) if name == "nearly_equal" => {}
                (Some(t), Some(want)) => {
                    assert!(
                        (t - want).abs() < 2e-5 * want.abs().max(1.0),
                        "{name}: {t} for {want}"
                    );
                }
                (t, want) => assert_eq!(t, want, "{name}, official"),
            }
        }
    }

    #[test]
    fn trap_01_the_root_is_the_minimum_where_matched_scores_spread_less() {
        let (p, n) = (normal(0.5, 0.08), normal(0.25, 0.12));
        let t = optimal(&p, &n, 2f64.ln(), Form::Stable).unwrap();
        // The slope of g, by densities, is below 0 before t and above 0 after t.
        let slope = |t: f64| {
            let f = |m: &ScoreDistribution| {
                (-0.5 * ((t - m.mean) / m.deviation).powi(2)).exp() / m.deviation
            };
            f(&p) - 2.0 * f(&n)
        };
        assert!(slope(t - 1e-3) < 0.0 && slope(t + 1e-3) > 0.0 && slope(t).abs() < 1e-9);
    }

    #[test]
    fn trap_02_equal_variances() {
        let at = |deviation, alpha: f64| {
            optimal(&normal(0.6, 0.1), &normal(0.2, deviation), alpha.ln(), Form::Stable).unwrap()
        };
        assert!((at(0.1, 2.0) - 0.41733).abs() < 1e-5 && (at(0.1, 1.0) - 0.4).abs() < 1e-12);
        assert!((at(0.1 + 1e-7, 2.0) - at(0.1, 2.0)).abs() < 1e-5);
        let official =
            optimal(&normal(0.6, 0.1), &normal(0.2, 0.1 + 1e-7), 2f64.ln(), Form::Official);
        assert!((official.unwrap() - 0.41733).abs() > 1e-3, "the program's f32 shows");
    }

    #[test]
    fn trap_17_alpha_star_gives_the_lower_bound_back() {
        let (p, n) = (normal(0.5, 0.09), normal(0.2, 0.08));
        let star = ln_alpha_star(&p, &n).unwrap();
        let t = optimal(&p, &n, star, Form::Stable).unwrap();
        assert!((t - lower_bound(&p)).abs() < 1e-9);
    }

    #[test]
    fn trap_18_alpha_star_is_kept_as_a_logarithm() {
        let (p, n) = (normal(0.9, 0.02), normal(0.1, 0.02));
        let star = ln_alpha_star(&p, &n).unwrap();
        assert!((star - 680.0).abs() < 1e-9);
        assert!((optimal(&p, &n, star, Form::Stable).unwrap() - 0.84).abs() < 1e-9);
    }

    #[test]
    fn too_few_samples_have_no_boundary() {
        let one = ScoreDistribution { count: 1, ..normal(0.5, 0.1) };
        for form in [Form::Stable, Form::Official] {
            assert_eq!(optimal(&one, &normal(0.2, 0.1), 0.0, form), None);
            assert_eq!(optimal(&normal(0.5, 0.1), &one, 0.0, form), None);
        }
    }

    /// By hand: mean 2, squares 1 + 0 + 1 over n − 1 = 2.
    #[test]
    fn trap_21_moments_divide_by_one_less() {
        assert_eq!(
            ScoreDistribution::of(&[1.0, 2.0, 3.0]),
            ScoreDistribution { mean: 2.0, deviation: 1.0, count: 3 }
        );
        assert_eq!(
            ScoreDistribution::of(&[0.5]),
            ScoreDistribution { mean: 0.5, deviation: 0.0, count: 1 }
        );
        assert_eq!(ScoreDistribution::of(&[]), ScoreDistribution::default());
    }

    proptest! {
        /// The weighted densities cross at the boundary, and α* leads to the lower bound wherever it exists.
        #[test]
        fn densities_cross_at_the_boundary(
            mn in -0.2f64..0.5,
            delta in 0.01f64..0.5,
            sp in 0.02f64..0.2,
            sn in 0.02f64..0.2,
            ln_alpha in -1.5f64..1.5,
        ) {
            let (p, n) = (normal(mn + delta, sp), normal(mn, sn));
            if let Some(t) = optimal(&p, &n, ln_alpha, Form::Stable) {
                let log = |m: &ScoreDistribution| -0.5 * ((t - m.mean) / m.deviation).powi(2) - m.deviation.ln();
                let off = log(&p) - log(&n) - ln_alpha;
                let size = 1.0 + ((t - mn) / sn).powi(2) + ((t - mn - delta) / sp).powi(2);
                prop_assert!(off.abs() < 1e-9 * size, "{off:e} at {t}");
            }
            if let Some(star) = ln_alpha_star(&p, &n) {
                let t = optimal(&p, &n, star, Form::Stable).unwrap();
                prop_assert!((t - lower_bound(&p)).abs() < 1e-7, "{t} for {}", lower_bound(&p));
            }
        }
    }
}

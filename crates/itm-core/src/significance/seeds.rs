//! Intervals over training seeds.

use super::Interval;

/// 95 % interval of the mean over seeds, from Student's t; its middle is the mean. `None` for fewer than two values.
///
/// ```text
/// x̄ ± t(0.975, n − 1) · sd / √n        sd with n − 1
/// ```
///
/// ```
/// use itm_core::significance::seed_interval;
///
/// let interval = seed_interval(&[266.0, 268.0, 270.0]).expect("three seeds");
/// assert!((interval.lo - 263.0317).abs() < 1e-3 && (interval.hi - 272.9683).abs() < 1e-3);
/// assert_eq!(seed_interval(&[266.0]), None); // one seed says nothing of the others
/// ```
pub fn seed_interval(values: &[f64]) -> Option<Interval> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student_t(values.len() - 1) * (variance / n).sqrt();
    Some(Interval { lo: mean - half, hi: mean + half })
}

/// The 97.5 % quantile of Student's t, by bisection of `θ = atan(t / √ν)`.
///
/// ```text
/// ν odd:   P(|T| < t) = (2/π) [ θ + sin θ (cos θ + 2/3 cos³θ + … + (2·4…(ν−3))/(1·3…(ν−2)) cos^(ν−2) θ) ]
/// ν even:  P(|T| < t) = sin θ [ 1 + 1/2 cos²θ + … + (1·3…(ν−3))/(2·4…(ν−2)) cos^(ν−2) θ ]
/// ```
///
/// Abramowitz and Stegun, 26.7.3 and 26.7.4.
fn student_t(freedom: usize) -> f64 {
    use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};
    let central = |theta: f64| {
        let (sin, cos) = theta.sin_cos();
        let odd = freedom % 2 == 1;
        let mut term = if odd { cos } else { 1.0 };
        let mut sum = 0.0;
        for j in (if odd { 3 } else { 2 }..=freedom).step_by(2) {
            sum += term;
            term *= cos * cos * (j - 1) as f64 / j as f64;
        }
        if odd { FRAC_2_PI * (theta + sin * sum) } else { sin * sum }
    };
    let (mut lo, mut hi) = (0.0, FRAC_PI_2);
    for _ in 0..60 {
        let middle = (lo + hi) / 2.0;
        if central(middle) < 0.95 { lo = middle } else { hi = middle }
    }
    ((lo + hi) / 2.0).tan() * (freedom as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Golden {
        student_t: Vec<(usize, f64)>,
    }

    /// `tests/reference/evaluation.py`: SciPy's quantile.
    #[test]
    fn golden_quantiles() {
        let text = include_str!("../../tests/golden/evaluation.json");
        for (freedom, want) in serde_json::from_str::<Golden>(text).unwrap().student_t {
            let got = student_t(freedom);
            assert!((got / want - 1.0).abs() < 1e-10, "{freedom}: got {got}, want {want}");
        }
    }

    #[test]
    fn equal_seeds_and_too_few() {
        assert_eq!(seed_interval(&[2.5; 3]), Some(Interval { lo: 2.5, hi: 2.5 }));
        assert_eq!((seed_interval(&[]), seed_interval(&[1.0])), (None, None));
        let interval = seed_interval(&[1.0, 3.0]).unwrap(); // 2 ± 12.706
        assert!(
            (interval.hi - 14.706_204_7).abs() < 1e-6 && (interval.lo + 10.706_204_7).abs() < 1e-6
        );
    }
}

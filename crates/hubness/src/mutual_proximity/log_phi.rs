//! The logarithm of the normal distribution function.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI, SQRT_2};

/// `log Φ(z)`, with a relative error below 1e-13 for all finite `z`.
///
/// ```text
/// z ≥ −1        log1p(−erfc(z/√2) / 2)
/// −30 ≤ z < −1  log(erfc(−z/√2) / 2)
/// z < −30       −z²/2 − log(−z·√(2π)) + log1p(Σₖ (−1)ᵏ (2k − 1)!! / z²ᵏ),  k = 1..8
/// ```
pub(super) fn log_phi(z: f64) -> f64 {
    if z >= -1.0 {
        (-0.5 * erfc_of_root_half(z)).ln_1p()
    } else if z >= -30.0 {
        (0.5 * erfc_of_root_half(-z)).ln()
    } else {
        let inverse = (1.0 / z) * (1.0 / z);
        // 1 − 1/z²·(1 − 3/z²·(1 − 5/z²·(…))); the first term left out is below 1e-16 of the sum.
        let series = (1..=8).rev().fold(0.0, |sum, k| {
            let odd = f64::from(2 * k - 1);
            -odd * inverse * (1.0 + sum)
        });
        -0.5 * z * z - (-z).ln() - 0.5 * (2.0 * PI).ln() + series.ln_1p()
    }
}

/// `erfc(z/√2)`. The rounding of `z/√2` would cost z² units in the last place; a first-order term corrects
/// it.
fn erfc_of_root_half(z: f64) -> f64 {
    const SQRT_2_REST: f64 = -9.667_293_313_452_913e-17; // √2 − SQRT_2
    let x = z * FRAC_1_SQRT_2;
    let rest = ((-x).mul_add(SQRT_2, z) - x * SQRT_2_REST) * FRAC_1_SQRT_2; // z/√2 − x
    libm::erfc(x) - FRAC_2_SQRT_PI * (-x * x).exp() * rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From mpmath with 60 digits: `log(ncdf(z))`.
    #[allow(clippy::excessive_precision, clippy::approx_constant)] // as printed; log Φ(0) is −ln 2
    const GOLDEN: &[(f64, f64)] = &[
        (-1000000.0, -5.0000000001473444909e+11),
        (-1000.0, -5.0000782669481218431e+5),
        (-100.0, -5.0055242086942050886e+3),
        (-50.0, -1.2548313611394199013e+3),
        (-37.6, -7.1142664867077626811e+2),
        (-30.000001, -4.5432127398960339486e+2),
        (-30.0, -4.5432124395634319711e+2),
        (-29.5, -4.3942947460915022775e+2),
        (-20.0, -2.0391715537109726394e+2),
        (-10.0, -5.3231285150512470578e+1),
        (-5.0, -1.5064998393988725736e+1),
        (-2.0, -3.7831843336820319488),
        (-1.0000001, -1.8410217975227952154),
        (-1.0, -1.8410216450092635058),
        (-0.5, -1.1759117615936186089),
        (0.0, -6.9314718055994530942e-1),
        (0.5, -3.6894641528865639307e-1),
        (1.0, -1.7275377902344988953e-1),
        (3.0, -1.3508099647481937988e-3),
        (8.0, -6.2209605742717860585e-16),
        (13.7, -5.0762148115978792225e-43),
        (21.3, -5.6760561621354829113e-101),
        (30.0, -4.9067139271481870595e-198),
        (36.9, -2.3105244811406175061e-298),
    ];

    #[test]
    fn to_thirteen_digits_of_a_table() {
        for &(z, want) in GOLDEN {
            let got = log_phi(z);
            assert!((got / want - 1.0).abs() < 1e-13, "z = {z}: got {got}, want {want}");
        }
    }

    #[test]
    fn rises_without_a_break_and_never_is_nan() {
        let grid = (-60_000..=38_000).map(|step| f64::from(step) * 1e-3);
        let values: Vec<_> = grid.map(log_phi).collect();
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "strictly, until it underflows");
        for edge in [-30.0, -1.0] {
            let (below, above) = (log_phi(f64::next_down(edge)), log_phi(edge));
            assert!((below / above - 1.0).abs() < 1e-13, "at {edge}: {below}, {above}");
        }
        assert_eq!(log_phi(50.0), 0.0);
        assert!(log_phi(-1e100).is_finite() && log_phi(1e100) == 0.0);
    }
}

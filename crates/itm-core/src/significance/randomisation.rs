//! Paired randomisation of image blocks, and Holm's correction for several comparisons.

use rand::Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Hits;
use super::bootstrap::{check_replicates, same_runs, stream};
use crate::{Error, Result, interrupt};

/// With at most this number of differing blocks, all signs are enumerated.
const ENUMERATED: usize = 20;

/// Result of [`paired_randomisation`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Randomisation {
    /// Two-sided p-value.
    pub p: f64,
    /// Images whose hits differ between the systems.
    pub differing: usize,
    /// Whether all signs were enumerated, so that `p` is exact.
    pub exact: bool,
}

/// Tests whether the rSum of two systems differs, by exchanging the systems image by image: Fisher's and Pitman's test.
///
/// ```text
/// T  = rSum(a) − rSum(b) = Σ_i d_i        T* = Σ_i ± d_i, all signs independent
/// p  = #{ |T*| ≥ |T| } / 2^N                      N ≤ 20 images with d_i ≠ 0: all signs
/// p  = (1 + #{ |T*| ≥ |T| }) / (replicates + 1)   otherwise
/// ```
///
/// A block is exchanged as a whole: all K, both directions, all runs. With `n` images and `C` captions in each of `F` folds
///
/// ```text
/// d_i = (100 / F) · Σ_K [ (h_i^a − h_i^b)(i2t, K) / n + (h_i^a − h_i^b)(t2i, K) / C ]     mean over runs
/// ```
///
/// All `d_i` are multiplied by a common denominator and compared as integers. Replicate `r` draws from stream `r` of
/// `seed`.
///
/// The test says whether the difference could come from the choice of images; it does not cover the choice of seeds.
///
/// # Errors
/// If the systems have no run, different numbers of runs, or runs over different images; if there is no replicate or there are too many; if
/// folds of different sizes have no common denominator that fits 64 bits.
pub fn paired_randomisation(
    a: &[Hits],
    b: &[Hits],
    replicates: usize,
    seed: u64,
) -> Result<Randomisation> {
    same_runs(a, b)?;
    check_replicates("paired randomisation", replicates)?;
    let too_fine = || {
        let expected = "fold sizes with a common denominator below 2^63";
        Error::invalid("paired randomisation", expected, "a larger one")
    };
    let mut differences = integer_differences(a, b).ok_or_else(too_fine)?;
    differences.retain(|&d| d != 0);
    let differing = differences.len();
    let exact = differing <= ENUMERATED;
    let p = if exact {
        enumerated(&differences)
    } else {
        let observed = differences.iter().sum::<i64>().abs();
        let is_extreme = |r| flipped(&differences, seed, r).abs() >= observed;
        let extreme = interrupt::each(replicates as u64, is_extreme);
        let extreme = extreme.into_iter().filter(|&is_extreme| is_extreme).count();
        (1 + extreme) as f64 / (replicates + 1) as f64
    };
    Ok(Randomisation { p, differing, exact })
}

/// `d_i` times a common denominator, divided by the greatest common divisor; `None` if the sum of the magnitudes overflows.
fn integer_differences(a: &[Hits], b: &[Hits]) -> Option<Vec<i64>> {
    let folds = a[0].folds();
    let sizes: Vec<(u128, u128)> = folds
        .iter()
        .map(|f| (f.len() as u128, f.iter().map(|block| u128::from(block.captions)).sum()))
        .collect();
    let denominator = sizes.iter().try_fold(1, |all, &(n, c)| lcm(lcm(all, n)?, c))?;
    let mut all = Vec::new();
    for (f, &(n, captions)) in sizes.iter().enumerate() {
        let image_weight = i128::try_from(denominator / n).ok()?;
        let text_weight = i128::try_from(denominator / captions).ok()?;
        for i in 0..folds[f].len() {
            let (mut image, mut text) = (0i128, 0i128);
            for (a, b) in a.iter().zip(b) {
                let (a, b) = (&a.folds()[f][i], &b.folds()[f][i]);
                for k in 0..3 {
                    image += i128::from(a.i2t[k]) - i128::from(b.i2t[k]);
                    text += i128::from(a.t2i[k]) - i128::from(b.t2i[k]);
                }
            }
            let sum =
                image.checked_mul(image_weight)?.checked_add(text.checked_mul(text_weight)?)?;
            all.push(sum);
        }
    }
    let divisor = all.iter().fold(0, |g, d| gcd(g, d.unsigned_abs())).max(1) as i128;
    let total = all.iter().try_fold(0u128, |sum, d| sum.checked_add(d.unsigned_abs()))?;
    i64::try_from(total / divisor as u128).ok()?; // then no sum with signs overflows either
    all.into_iter().map(|d| i64::try_from(d / divisor).ok()).collect()
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn lcm(a: u128, b: u128) -> Option<u128> {
    (a / gcd(a, b)).checked_mul(b)
}

/// The share of all sign choices whose sum is at least as far from 0 as the observed sum.
fn enumerated(differences: &[i64]) -> f64 {
    let total: i64 = differences.iter().sum();
    let signs = 1u64 << differences.len();
    let extreme = (0..signs).into_par_iter().filter(|&signs| {
        let flip = |(i, d): (usize, &i64)| if signs >> i & 1 == 1 { -d } else { *d };
        let flipped: i64 = differences.iter().enumerate().map(flip).sum();
        flipped.abs() >= total.abs()
    });
    extreme.count() as f64 / signs as f64
}

/// `T*` of one replicate.
fn flipped(differences: &[i64], seed: u64, replicate: u64) -> i64 {
    let mut rng = stream(seed, replicate);
    let mut sum = 0;
    for chunk in differences.chunks(64) {
        let signs = rng.next_u64();
        for (i, &d) in chunk.iter().enumerate() {
            sum += if signs >> i & 1 == 1 { -d } else { d };
        }
    }
    sum
}

/// Holm's step-down correction: adjusted p-values of several methods against one baseline, in the order given.
///
/// ```text
/// p sorted ascending:   p̃₍ᵢ₎ = max_{j ≤ i} min(1, (m − j + 1) · p₍ⱼ₎)
/// ```
///
/// ```
/// use itm_core::significance::holm;
/// assert_eq!(holm(&[0.5, 0.01, 0.25]), [0.5, 0.03, 0.5]);
/// ```
///
/// # Panics
/// If a value is not within 0 and 1.
pub fn holm(p: &[f64]) -> Vec<f64> {
    assert!(p.iter().all(|p| (0.0..=1.0).contains(p)), "p-values within 0 and 1, got {p:?}");
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (j, &i) in order.iter().enumerate() {
        largest = largest.max((p[i] * (p.len() - j) as f64).min(1.0));
        adjusted[i] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn drawn_signs_agree_with_all_signs(d in vec((1i64..9, any::<bool>()), 1..14), seed: u64) {
            let d: Vec<i64> = d.into_iter().map(|(d, minus)| if minus { -d } else { d }).collect();
            let observed = d.iter().sum::<i64>().abs();
            let extreme = (0..4000).filter(|&r| flipped(&d, seed, r).abs() >= observed).count();
            let (drawn, all) = (extreme as f64 / 4000.0, enumerated(&d));
            prop_assert!((drawn - all).abs() < 0.05, "{drawn} for {all}");
        }
    }

    /// Beyond 64 images the signs are still independent: the variance of the sum is the number of images.
    #[test]
    fn signs_are_independent() {
        let (n, replicates) = (150, 4000);
        let sums: Vec<i64> = (0..replicates).map(|r| flipped(&vec![1; n], 3, r)).collect();
        let mean = sums.iter().sum::<i64>() as f64 / replicates as f64;
        let variance = sums.iter().map(|s| (s * s) as f64).sum::<f64>() / replicates as f64;
        assert!(mean.abs() < 0.8, "{mean}");
        assert!((variance / n as f64 - 1.0).abs() < 0.1, "{variance}");
    }

    #[test]
    fn nothing_differs() {
        assert_eq!(enumerated(&[]), 1.0);
        // Twice the sum is no i64.
        assert_eq!(enumerated(&[i64::MAX / 2 + 2, 1]), 0.5);
    }

    #[test]
    #[should_panic(expected = "p-values within 0 and 1")]
    fn no_p_value() {
        holm(&[0.1, f64::NAN]);
    }
}

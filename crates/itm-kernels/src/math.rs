//! Branch-free `f32` functions that the compiler turns into vector code.
//!
//! With `FMA` the multiply-adds are single instructions. Pass `true` only if the target has these instructions;
//! otherwise each multiply-add becomes a library call. NaN gives NaN.

/// Values per step of a vector loop: one AVX-512 register or two AVX2 registers.
pub(crate) const LANES: usize = 16;

/// `1 / (1 + e^−x)`; relative error below 3e-7 for `x > −80`, absolute error below 1e-38 for smaller x.
#[inline(always)]
pub(crate) fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    let (scale, p) = split_exp::<FMA>(clamp(-x, -87.0, 88.0));
    1.0 / (1.0 + mul_add::<FMA>(scale, p, scale))
}

/// Hyperbolic tangent; relative error below 3e-7, also for tiny arguments.
///
/// ```text
/// tanh |x| = −e / (2 + e)   with   e = exp(−2|x|) − 1   free of cancellation
/// ```
#[inline(always)]
pub(crate) fn tanh<const FMA: bool>(x: f32) -> f32 {
    let (scale, p) = split_exp::<FMA>(clamp(-2.0 * x.abs(), -40.0, 0.0));
    let e = mul_add::<FMA>(scale, p, scale - 1.0);
    (-e / (2.0 + e)).copysign(x)
}

/// `eˣ`; relative error below 3e-7 for `−87 ≤ x ≤ 88`, zero below, infinity above.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    let (scale, p) = split_exp::<FMA>(clamp(x, -87.0, 88.0));
    let y = mul_add::<FMA>(scale, p, scale);
    let y = if x < -87.0 { 0.0 } else { y };
    if x > 88.0 { f32::INFINITY } else { y }
}

/// `a ≥ 0`, and tail and density of the normal distribution there: `(a, Φ(−a), φ(a))`. Beyond 12 they are the values at 12.
///
/// ```text
/// Φ(−a) = e^(−a²/2) · r · P(u)   with   r = 1 / (a + k),   u = (a − k) / (a + k)
/// ```
///
/// Absolute error below 1.5e-7, relative error of the tail below 6e-6. `tests/reference/normal_tail.py` fits P for
/// the smallest relative error (1.2e-7).
#[inline(always)]
pub(crate) fn normal<const FMA: bool>(a: f32) -> (f32, f32, f32) {
    const K: f32 = 4.25;
    const P: [f32; 7] = [
        -0.001_046_137_3,
        -0.019_387_396,
        0.085_347_86,
        -0.220_508_52,
        0.418_221_06,
        -0.625_130_06,
        0.759_554_27,
    ];
    let a = if a > 12.0 { 12.0 } else { a };
    let e = half_square::<FMA>(a);
    let r = 1.0 / (a + K);
    let u = mul_add::<FMA>(-2.0 * K, r, 1.0);
    let mut p = 0.002_103_294;
    for c in P {
        p = mul_add::<FMA>(p, u, c);
    }
    (a, e * (r * p), e * 0.398_942_3) // 1 / √(2π)
}

/// `e^(−a²/2)` for `0 ≤ a ≤ 12`, as `2ⁿ 2^f` with `−a² log₂e / 2 = n + f`, `|f| ≤ 1/2`. It takes fewer steps than
/// [`split_exp`], because its relative error may grow with a²: it is below 6e-6.
///
/// `tests/reference/normal_tail.py` fits the polynomial for 2^f (1.1e-7).
#[inline(always)]
fn half_square<const FMA: bool>(a: f32) -> f32 {
    const HALF_LOG2_E: f32 = 0.721_347_5;
    let square = a * a;
    let shifted = mul_add::<FMA>(-HALF_LOG2_E, square, ROUND);
    let n = shifted - ROUND;
    let f = mul_add::<FMA>(-HALF_LOG2_E, square, -n);
    let mut p = 0.001_330_060_5;
    for c in [0.009_669_691, 0.055_505_585, 0.240_222_83, std::f32::consts::LN_2, 1.0] {
        p = mul_add::<FMA>(p, f, c);
    }
    p * power_of_two(shifted)
}

/// Adding it to a number below 2²² leaves the nearest whole number in the low bits: 1.5 · 2²³.
const ROUND: f32 = 12_582_912.0;

/// `2ⁿ` from `n + ROUND`, for `−126 ≤ n ≤ 127`.
#[inline(always)]
fn power_of_two(shifted: f32) -> f32 {
    f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// `(2ⁿ, eʳ − 1)` with `x = n·ln 2 + r`, `|r| ≤ ln 2 / 2`, for `−87 ≤ x ≤ 88`.
#[inline(always)]
fn split_exp<const FMA: bool>(x: f32) -> (f32, f32) {
    const LN2_HI: f32 = 0.693_359_4; // few bits: n · LN2_HI is exact
    const LN2_LO: f32 = -2.121_944_4e-4;
    let shifted = mul_add::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = mul_add::<FMA>(n, -LN2_LO, mul_add::<FMA>(n, -LN2_HI, x));
    let scale = power_of_two(shifted);
    // Taylor: the next term, r⁸/8!, is at most 1.5e-8 of the value.
    let mut q = 1.0 / 5040.0;
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5] {
        q = mul_add::<FMA>(q, r, c);
    }
    (scale, mul_add::<FMA>(q * r, r, r))
}

/// `a · b + c`.
#[inline(always)]
pub(crate) fn mul_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `f32::clamp` that compiles to two instructions and passes NaN on.
#[inline(always)]
pub(crate) fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// Sixteen values from `at` on, zeros past the end.
#[inline(always)]
pub(crate) fn load(from: &[f32], at: usize) -> [f32; LANES] {
    let rest = &from[at..];
    rest.first_chunk().copied().unwrap_or_else(|| {
        let mut tail = [0.0; LANES];
        tail[..rest.len()].copy_from_slice(rest);
        tail
    })
}

/// The inverse of [`load`].
#[inline(always)]
pub(crate) fn store(to: &mut [f32], at: usize, values: [f32; LANES]) {
    let rest = &mut to[at..];
    match rest.first_chunk_mut() {
        Some(chunk) => *chunk = values,
        None => rest.copy_from_slice(&values[..rest.len()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest relative error of `got` against `want` on a dense grid that has many magnitudes and both signs.
    fn worst(got: impl Fn(f32) -> f32, want: impl Fn(f64) -> f64, limit: f32) -> f64 {
        let large = (0..400_000).map(|k| k as f32 * (limit / 400_000.0));
        let small = (0..40_000).map(|k| (-(k as f32) * 1e-3 * 2.0).exp());
        large.chain(small).flat_map(|x| [x, -x]).fold(0.0, |worst, x| {
            let want = want(f64::from(x));
            let error =
                (f64::from(got(x)) - want).abs() / want.abs().max(f64::from(f32::MIN_POSITIVE));
            worst.max(error)
        })
    }

    #[test]
    fn errors_are_as_stated() {
        let sigma = |x: f64| 1.0 / (1.0 + (-x).exp());
        for error in [
            worst(sigmoid::<true>, sigma, 80.0),
            worst(sigmoid::<false>, sigma, 80.0),
            worst(tanh::<true>, f64::tanh, 30.0),
            worst(tanh::<false>, f64::tanh, 30.0),
        ] {
            assert!(error < 3e-7, "relative error {error:e}");
        }
    }

    /// Largest relative error of `exp` on its range, and the ends of the range.
    #[test]
    fn exp_is_as_stated() {
        let mut worst = [0.0f64; 2];
        for k in 0..1_000_000 {
            let x = -87.0 + k as f32 * (175.0 / 1e6);
            let want = f64::from(x).exp();
            for (worst, got) in worst.iter_mut().zip([exp::<true>(x), exp::<false>(x)]) {
                *worst = worst.max((f64::from(got) / want - 1.0).abs());
            }
        }
        assert!(worst.iter().all(|&e| e < 3e-7), "{worst:?}");
        assert_eq!([0.0, -87.1, -1e30, f32::NEG_INFINITY].map(exp::<true>), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!([88.1, 1e30, f32::INFINITY].map(exp::<false>), [f32::INFINITY; 3]);
        assert!(exp::<true>(f32::NAN).is_nan() && exp::<false>(f32::NAN).is_nan());
    }

    /// By SciPy in double precision.
    #[test]
    fn golden_normal() {
        let g = crate::tests::golden("kernels");
        let check = |normal: fn(f32) -> (f32, f32, f32)| {
            for (k, &a) in g["normal_a"].iter().enumerate() {
                let ((_, tail, density), want) = (normal(a as f32), g["normal_tail"][k]);
                let error = (f64::from(tail) - want).abs();
                assert!(error < 1.5e-7 && error < 6e-6 * want, "Φ(−{a}): {tail} for {want}");
                let want = g["normal_density"][k];
                let error = (f64::from(density) - want).abs();
                assert!(error < 1e-7 && error < 6e-6 * want, "φ({a}): {density} for {want}");
            }
        };
        check(normal::<true>);
        check(normal::<false>);
        assert_eq!(normal::<true>(1e30), normal::<true>(12.0));
        assert!(normal::<false>(f32::NAN).1.is_nan());
    }

    #[test]
    fn limits_and_nan() {
        for x in [90.0, 1e10, f32::INFINITY] {
            assert_eq!(
                (sigmoid::<false>(x), tanh::<false>(x), tanh::<false>(-x)),
                (1.0, 1.0, -1.0)
            );
            assert!(sigmoid::<false>(-x) < 1e-37);
        }
        assert_eq!(tanh::<true>(0.0), 0.0);
        assert!(sigmoid::<true>(f32::NAN).is_nan() && tanh::<true>(f32::NAN).is_nan());
        assert!(sigmoid::<false>(f32::NAN).is_nan() && tanh::<false>(f32::NAN).is_nan());
    }

    #[test]
    fn a_tail_is_loaded_and_stored_without_its_neighbours() {
        let from: Vec<f32> = (0..19).map(|k| k as f32).collect();
        assert_eq!(load(&from, 0)[15], 15.0);
        assert_eq!(load(&from, 16)[..4], [16.0, 17.0, 18.0, 0.0]);
        let mut to = vec![-1.0; 19];
        store(&mut to, 16, load(&from, 16));
        assert_eq!((to[15], to[16], to[18]), (-1.0, 16.0, 18.0));
    }
}

//! Branch-free `f32` functions that the compiler turns into vector code.
//!
//! With `FMA` the multiply-adds are single instructions: pass `true` only where the target has them, elsewhere each
//! becomes a library call. NaN gives NaN.

/// Steps of a vector loop: one AVX-512 register, two of AVX2.
pub(crate) const LANES: usize = 16;

/// `e^x`; relative error below 3e-7 for `−87 ≤ x ≤ 88`, held at the ends outside.
#[inline(always)]
pub fn exp<const FMA: bool>(x: f32) -> f32 {
    let (scale, p) = split_exp::<FMA>(clamp(x, -87.0, 88.0));
    mul_add::<FMA>(scale, p, scale)
}

/// `1 / (1 + e^−x)`; relative error below 3e-7 for `x > −80`, absolute below 1e-38 under it.
#[inline(always)]
pub fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    let (scale, p) = split_exp::<FMA>(clamp(-x, -87.0, 88.0));
    1.0 / (1.0 + mul_add::<FMA>(scale, p, scale))
}

/// Hyperbolic tangent; relative error below 3e-7, also for tiny arguments.
///
/// ```text
/// tanh |x| = −e / (2 + e)   with   e = exp(−2|x|) − 1   free of cancellation
/// ```
#[inline(always)]
pub fn tanh<const FMA: bool>(x: f32) -> f32 {
    let (scale, p) = split_exp::<FMA>(clamp(-2.0 * x.abs(), -40.0, 0.0));
    let e = mul_add::<FMA>(scale, p, scale - 1.0);
    (-e / (2.0 + e)).copysign(x)
}

/// `(2ⁿ, eʳ − 1)` with `x = n·ln 2 + r`, `|r| ≤ ln 2 / 2`, for `−87 ≤ x ≤ 88`.
#[inline(always)]
fn split_exp<const FMA: bool>(x: f32) -> (f32, f32) {
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³: adding it leaves n in the low bits
    const LN2_HI: f32 = 0.693_359_4; // few bits: n · LN2_HI is exact
    const LN2_LO: f32 = -2.121_944_4e-4;
    let shifted = mul_add::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = mul_add::<FMA>(n, -LN2_LO, mul_add::<FMA>(n, -LN2_HI, x));
    let scale = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    // Taylor: the next term, r⁸/8!, is 1.5e-8 of the value at most.
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
fn clamp(x: f32, low: f32, high: f32) -> f32 {
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

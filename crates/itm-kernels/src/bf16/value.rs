//! One value, one pair and one step of a sum, computed as the processor does.

/// The smallest normal number, of f32 and of bf16 alike.
const NORMAL: f32 = f32::MIN_POSITIVE;

/// The bits of the nearest bf16 number; a tie goes to the even number.
///
/// ```text
/// bf16 = the upper half of an f32: sign, 8 bits of exponent, 7 of mantissa
/// |round(x) − x| ≤ 2⁻⁸ |x|   for every normal x whose rounding is finite
/// ```
///
/// | `x` | result |
/// |---|---|
/// | NaN | NaN of the same sign, quiet |
/// | ±∞ | ±∞ |
/// | ±(2 − 2⁻⁸)·2¹²⁷ or beyond | ±∞ |
/// | below 2⁻¹²⁶ | ±0, because the processor treats subnormal operands as 0 |
///
/// ```
/// use itm_kernels::bf16::round;
/// assert_eq!(round(1.0), 0x3F80);
/// assert_eq!(round(1.0 + 1.0 / 256.0), 0x3F80); // a tie: 1 is even
/// assert_eq!(round(1.0 + 3.0 / 256.0), 0x3F82); // the other tie: 1 + 4/256
/// assert_eq!(round(f32::NAN), 0x7FC0);
/// ```
#[inline(always)]
pub fn round(x: f32) -> u16 {
    const QUIET: u16 = 1 << 6;
    let bits = x.to_bits();
    let upper = (bits >> 16) as u16;
    if x.is_nan() {
        upper | QUIET
    } else if x.abs() < NORMAL {
        upper & 0x8000
    } else {
        ((bits + 0x7FFF + u32::from(upper & 1)) >> 16) as u16
    }
}

/// The number that bf16 bits stand for.
#[cfg(test)]
pub(crate) fn widen(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Two neighbours along a sum, rounded; the first is in the lower half.
#[inline(always)]
pub(super) fn pair(first: f32, second: f32) -> u32 {
    u32::from(round(first)) | u32::from(round(second)) << 16
}

/// Adds the two products of the pairs `a` and `b` to `sum`: first the second product, then the first. Each step is
/// fused and rounded once.
///
/// This is one lane of `vdpbf16ps`. Operands come from [`pair`] and sums from here, so no value is subnormal.
#[inline(always)]
pub(super) fn dot(sum: f32, a: u32, b: u32) -> f32 {
    let first = |pair: u32| f32::from_bits(pair << 16);
    let second = |pair: u32| f32::from_bits(pair & 0xFFFF_0000);
    fused(first(a), first(b), fused(second(a), second(b), sum))
}

/// `a b + sum`, rounded once to nearest even; a result below 2⁻¹²⁶ becomes 0 with its sign.
///
/// The processor rounds to 24 bits as if the exponent had no limit, and then tests whether the result is too small.
/// So it drops results below 2⁻¹²⁶ − 2⁻¹⁵¹, and rounds results from this bound on up to 2⁻¹²⁶. The comparison is
/// exact in f64: near this bound a product of two bf16 numbers and a normal sum have no bit below 2⁻¹⁶⁷, or the
/// product is too small to matter.
#[inline(always)]
fn fused(a: f32, b: f32, sum: f32) -> f32 {
    const DROPPED: f64 = NORMAL as f64 * (1.0 - 1.0 / (1 << 25) as f64);
    let rounded = a.mul_add(b, sum);
    let exact = f64::from(a) * f64::from(b) + f64::from(sum);
    if exact.abs() < DROPPED { 0f32.copysign(rounded) } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bf(x: f32) -> u32 {
        pair(x, 0.0)
    }

    /// By hand: both sides of a tie, the ends of the range, infinity and NaN.
    #[test]
    fn golden_round() {
        for (bits, want) in [
            (0x3F80_7FFF, 0x3F80),
            (0x3F80_8000, 0x3F80), // a tie, down to the even number
            (0x3F80_8001, 0x3F81),
            (0x3F81_8000, 0x3F82), // a tie, up to the even number
            (0xBF81_8000, 0xBF82),
            (0x3FFF_FFFF, 0x4000), // into the next binade
            (0x7F7F_7FFF, 0x7F7F), // the largest number
            (0x7F7F_8000, 0x7F80), // infinity
            (0xFF80_0000, 0xFF80),
            (0x7F80_0001, 0x7FC0), // a signalling NaN becomes a quiet NaN, not infinity
            (0xFFFF_FFFF, 0xFFFF),
            (0x0080_0000, 0x0080), // 2⁻¹²⁶
            (0x007F_FFFF, 0x0000), // subnormal
            (0x8000_0001, 0x8000),
        ] {
            assert_eq!(round(f32::from_bits(bits)), want, "{bits:08X}");
        }
    }

    /// No bf16 number is nearer, and the error is at most 2⁻⁸ of the number.
    #[test]
    fn the_nearest_number() {
        for bits in (0x0080_0000..0x7F7F_0000u32).step_by(9973) {
            let x = f64::from(f32::from_bits(bits));
            let got = round(f32::from_bits(bits));
            let error = |bits| (f64::from(widen(bits)) - x).abs();
            assert!(error(got) <= error(got + 1).min(error(got - 1)), "{bits:08X}");
            assert!(error(got) <= x / 256.0, "{bits:08X}");
        }
    }

    /// The second product of a pair is added first: 2²⁴ + 1 rounds to 2²⁴.
    #[test]
    fn golden_order() {
        let big = (1u32 << 24) as f32;
        let (a, one) = (pair(-big, 1.0), pair(1.0, 1.0));
        assert_eq!(dot(big, a, one), 0.0); // (2²⁴ + 1 → 2²⁴) − 2²⁴
        assert_eq!(dot(big, pair(1.0, -big), one), 1.0); // (2²⁴ − 2²⁴) + 1
        // (1 + 2⁻⁷)² − 1 = 2⁻⁶ + 2⁻¹⁴
        let x = 1.0 + 1.0 / 128.0;
        assert_eq!(dot(-1.0, bf(x), bf(x)), 1.0 / 64.0 + 1.0 / 16384.0);
    }

    /// Around the smallest normal number, as measured on a processor: the tie at 2⁻¹²⁶ − 2⁻¹⁵¹ goes up.
    #[test]
    fn golden_too_small() {
        let two = |e: i32| 2f32.powi(e);
        for (scale, want) in [(2.0, 0.0), (1.75, 0.0), (1.5, 0.0), (1.0, NORMAL), (0.5, NORMAL)] {
            let got = dot(NORMAL, bf(scale * two(-75)), bf(-two(-76)));
            assert_eq!(got, want, "2⁻¹²⁶ − {scale}·2⁻¹⁵¹");
        }
        let below = dot(0.0, bf(-two(-100)), bf(two(-100)));
        assert_eq!(below.to_bits(), 1 << 31, "−2⁻²⁰⁰ is −0");
    }
}

//! How numbers are written, everywhere the same.

use super::json::Spread;

/// A recall or a share in percent: `26.4`.
pub(super) fn recall(percent: f64) -> String {
    decimals(percent, 1)
}

/// An rSum: `317.5`.
pub(crate) fn rsum(points: f64) -> String {
    decimals(points, 1)
}

/// A difference of rSums without its sign: `5.2`.
pub(crate) fn points(difference: f64) -> String {
    decimals(difference, 1)
}

/// A difference of rSums with its sign: `+5.2`, `−5.2`, `0.0`.
pub(crate) fn signed(difference: f64) -> String {
    signed_to(difference, 1)
}

/// The same with so many decimals: `+0.75`.
pub(super) fn signed_to(difference: f64, places: usize) -> String {
    let text = decimals(difference, places);
    if difference > 0.0 && text != decimals(0.0, places) { format!("+{text}") } else { text }
}

/// A mean with its standard deviation over seeds, if there are several: `9.03 ± 0.31`.
pub(super) fn spread(x: Spread, places: usize) -> String {
    let mean = decimals(x.mean, places);
    x.sd.map_or_else(|| mean.clone(), |sd| format!("{mean} ± {}", decimals(sd, places)))
}

/// A share of `[0, 1]` in percent: `3.1 %`; small ones keep two digits that count.
pub(super) fn share(x: f64) -> String {
    let percent = 100.0 * x;
    let places = if percent == 0.0 || percent.abs() >= 1.0 { 1 } else { 2 };
    format!("{} %", decimals(percent, places))
}

/// A measure in `[0, 1]` (or a skill below 0): `0.734`.
pub(super) fn unit(x: f64) -> String {
    decimals(x, 3)
}

/// A prior: `1e-4` below a hundredth, else `0.021`.
pub(super) fn prior(p: f64) -> String {
    if p > 0.0 && p < 1e-2 { format!("{p:e}") } else { decimals(p, 3) }
}

/// An interval: `−1.2 to 3.4`.
pub(super) fn interval(ends: [f64; 2]) -> String {
    interval_to(ends, 1)
}

/// The same with so many decimals.
pub(super) fn interval_to([lo, hi]: [f64; 2], places: usize) -> String {
    format!("{} to {}", decimals(lo, places), decimals(hi, places))
}

/// A p-value: `p = 0.031`, never `p = 0.000`.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.001 {
        "p < 0.001".into()
    } else if p < 0.1 {
        format!("p = {p:.3}")
    } else {
        format!("p = {p:.2}")
    }
}

/// A duration: `42 s`, `7 min 05 s`, `1 h 02 min`.
pub(super) fn duration(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 if seconds < 9.95 => format!("{} s", decimals(seconds, 1)),
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
    }
}

/// A size: `812 MB`, `1.4 GB` (powers of ten).
pub(super) fn bytes(n: u64) -> String {
    match n {
        0..1_000_000 => format!("{} kB", decimals(n as f64 / 1e3, 0)),
        1_000_000..1_000_000_000 => format!("{} MB", decimals(n as f64 / 1e6, 0)),
        _ => format!("{} GB", decimals(n as f64 / 1e9, 1)),
    }
}

/// A count with thousands apart: `29,783`.
pub(super) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Fixed decimals with a true minus sign, and no `−0.0`.
fn decimals(x: f64, places: usize) -> String {
    if !x.is_finite() {
        return "–".into();
    }
    let text = format!("{x:.places$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| matches!(b, b'0' | b'.')) => rest.into(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_a_reader_writes_them() {
        assert_eq!([recall(26.449), rsum(317.5), signed(5.24)], ["26.4", "317.5", "+5.2"]);
        assert_eq!([signed(-5.26), signed(0.04), signed(-0.04)], ["−5.3", "0.0", "0.0"]);
        assert_eq!([share(0.0312), share(0.00042), share(0.0)], ["3.1 %", "0.04 %", "0.0 %"]);
        assert_eq!([prior(1e-4), prior(0.0213)], ["1e-4", "0.021"]);
        assert_eq!(interval([-1.23, 3.45]), "−1.2 to 3.5");
        assert_eq!([unit(0.7344), unit(-0.2), unit(f64::NAN)], ["0.734", "−0.200", "–"]);
    }

    #[test]
    fn p_values_never_claim_zero() {
        assert_eq!(
            [0.0, 0.00099, 0.001, 0.0312, 0.312, 1.0].map(p_value),
            ["p < 0.001", "p < 0.001", "p = 0.001", "p = 0.031", "p = 0.31", "p = 1.00"]
        );
    }

    #[test]
    fn sizes_and_times() {
        assert_eq!(
            [3.21, 42.4, 59.9, 425.0, 3720.0].map(duration),
            ["3.2 s", "42 s", "1 min 00 s", "7 min 05 s", "1 h 02 min"]
        );
        assert_eq!([812_400_000, 1_360_000_000].map(bytes), ["812 MB", "1.4 GB"]);
        assert_eq!(
            [7, 999, 1_000, 29_783, 1_234_567].map(count),
            ["7", "999", "1,000", "29,783", "1,234,567"]
        );
    }
}

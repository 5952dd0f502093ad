//! How numbers and names are written: numbers in ASCII, which [`typeset`] dresses up for a page.

/// What stands for a number that is not there.
pub(super) const NONE: &str = "-";

/// A recall or an rSum: `26.4`.
pub(super) fn points(v: f64) -> String {
    decimals(v, 1)
}

/// A difference with its sign: `+5.2`, `-5.2`, `0.0`.
pub(super) fn signed(v: f64) -> String {
    let text = decimals(v, 1);
    if v > 0.0 && text != "0.0" && text != NONE { format!("+{text}") } else { text }
}

/// An interval: `408.1 to 437.0`.
pub(super) fn interval([lo, hi]: [f64; 2]) -> String {
    format!("{} to {}", points(lo), points(hi))
}

/// An interval of a difference: `-1.2 to +3.4`.
pub(super) fn signed_interval([lo, hi]: [f64; 2]) -> String {
    format!("{} to {}", signed(lo), signed(hi))
}

/// A p-value in a column: `0.031`, `<0.001`, never `0.000`.
pub(super) fn p(p: f64) -> String {
    match p {
        p if !p.is_finite() => NONE.into(),
        p if p < 0.001 => "<0.001".into(),
        p if p < 0.1 => format!("{p:.3}"),
        p => format!("{p:.2}"),
    }
}

/// A p-value in a sentence: `p = 0.031`, `p < 0.001`.
pub(super) fn p_phrase(v: f64) -> String {
    let text = p(v);
    match text.strip_prefix('<') {
        Some(rest) => format!("p < {rest}"),
        None => format!("p = {text}"),
    }
}

/// A skewness or another measure: `5.13`.
pub(super) fn measure(v: f64) -> String {
    decimals(v, 2)
}

/// A score: `0.812`; large ones, such as logits, with fewer decimals.
pub(super) fn score(v: f64) -> String {
    decimals(v, if v.abs() < 10.0 { 3 } else { 1 })
}

/// A share of `[0, 1]` in percent: `31.2 %`; small ones keep a digit that counts.
pub(super) fn share(v: f64) -> String {
    let percent = 100.0 * v;
    let places = if percent == 0.0 || percent.abs() >= 1.0 { 1 } else { 2 };
    match decimals(percent, places) {
        text if text == NONE => text,
        text => format!("{text} %"),
    }
}

/// A rank: `1`, `4.5`, `1,203`.
pub(super) fn rank(v: f64) -> String {
    match v {
        v if !v.is_finite() => NONE.into(),
        v if v.fract() == 0.0 || v >= 1000.0 => count(v.round() as u64),
        v => decimals(v, 1),
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

/// A count and its noun: `1 query`, `5,000 images`.
pub(super) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A duration: `3.2 s`, `7 min 05 s`, `1 h 02 min`.
pub(super) fn duration(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        _ if !seconds.is_finite() => NONE.into(),
        0..60 if seconds < 0.0995 => format!("{} ms", decimals(1e3 * seconds.max(0.0), 0)),
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

/// A number as a page shows it: a true minus before digits, no line ending before `%` or after
/// `p <`, a dash for what is not there.
pub(super) fn typeset(text: &str) -> String {
    if text == NONE {
        return "–".into();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let sign = c == '-'
            && matches!(before, ' ' | '(' | '[')
            && chars.peek().is_some_and(char::is_ascii_digit);
        out.push(if sign { '−' } else { c });
        before = c;
    }
    out.replace(" %", "\u{a0}%").replace("p < ", "p\u{a0}<\u{a0}").replace("p = ", "p\u{a0}=\u{a0}")
}

/// The text without what could move the cursor or turn the line around.
pub(super) fn clean(text: &str) -> String {
    let harmless = |c: char| match c {
        '\t' | '\n' | '\r' => ' ',
        c if c.is_control() => '\u{fffd}',
        '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' => '\u{fffd}',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c => c,
    };
    text.chars().map(harmless).collect()
}

/// `N₁₀`, for figures, whose text has no markup.
pub(super) fn n_of(k: u64) -> String {
    let low = |c: char| c.to_digit(10).and_then(|d| char::from_u32(0x2080 + d)).unwrap_or(c);
    "N".to_owned() + &k.to_string().chars().map(low).collect::<String>()
}

/// Fixed decimals, no `-0.0`; [`NONE`] for what is no number.
fn decimals(v: f64, places: usize) -> String {
    if !v.is_finite() {
        return NONE.into();
    }
    let text = format!("{v:.places$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| matches!(b, b'0' | b'.')) => rest.into(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_a_reader_writes_them() {
        assert_eq!([points(26.449), signed(5.24), signed(-5.26)], ["26.4", "+5.2", "-5.3"]);
        assert_eq!([signed(0.04), signed(-0.04)], ["0.0", "0.0"]);
        assert_eq!([share(0.0312), share(0.00042), share(0.0)], ["3.1 %", "0.04 %", "0.0 %"]);
        assert_eq!(signed_interval([-1.23, 3.45]), "-1.2 to +3.5");
        assert_eq!([rank(1.0), rank(4.5), rank(1203.4)], ["1", "4.5", "1,203"]);
        assert_eq!([score(0.8123), score(-0.5), score(27.31)], ["0.812", "-0.500", "27.3"]);
    }

    #[test]
    fn what_is_no_number_is_a_dash() {
        for text in [points, signed, p, measure, score, share, rank, duration].map(|f| f(f64::NAN))
        {
            assert_eq!(text, NONE);
        }
        assert_eq!([signed(f64::INFINITY), points(f64::NEG_INFINITY)], [NONE, NONE]);
    }

    #[test]
    fn p_values_never_claim_zero() {
        assert_eq!(
            [0.0, 0.00099, 0.001, 0.0312, 0.312, 1.0].map(p_phrase),
            ["p < 0.001", "p < 0.001", "p = 0.001", "p = 0.031", "p = 0.31", "p = 1.00"]
        );
    }

    #[test]
    fn sizes_times_and_counts() {
        assert_eq!(
            [0.0124, 3.21, 59.9, 425.0, 3720.0].map(duration),
            ["12 ms", "3.2 s", "1 min 00 s", "7 min 05 s", "1 h 02 min"]
        );
        assert_eq!([812_400_000, 1_360_000_000].map(bytes), ["812 MB", "1.4 GB"]);
        assert_eq!(
            [counted(1, "query", "queries"), counted(5000, "query", "queries")],
            ["1 query", "5,000 queries"]
        );
    }

    #[test]
    fn only_signs_become_minus() {
        assert_eq!(typeset("(-1.2 to +3.4)"), "(−1.2 to +3.4)");
        assert_eq!(typeset("5 % (p < 0.1)"), "5\u{a0}% (p\u{a0}<\u{a0}0.1)");
        assert_eq!(
            [typeset("cross-fitted"), typeset("-"), typeset("2-3")],
            ["cross-fitted", "–", "2-3"]
        );
    }

    #[test]
    fn names_cannot_move_the_cursor() {
        assert_eq!(clean("a\x1b[2Jb\nc\u{202e}d"), "a\u{fffd}[2Jb c\u{fffd}d");
    }

    #[test]
    fn the_length_of_lists_is_a_subscript() {
        assert_eq!([n_of(1), n_of(10)], ["N₁", "N₁₀"]);
    }
}

//! One format for numbers in all reports, with a true minus sign.

use std::time::Duration;

use indicatif::{FormattedDuration, HumanBytes, HumanCount};

/// The text for a missing number.
pub const NONE: &str = "–";

/// Fixed decimals, no `−0.0`; [`NONE`] for NaN and infinity.
pub fn decimals(x: f64, places: usize) -> String {
    if !x.is_finite() {
        return NONE.into();
    }
    let text = format!("{x:.places$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| matches!(b, b'0' | b'.')) => rest.into(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

/// A recall in percent, an rSum or a difference without its sign: `26.4`.
pub fn points(x: f64) -> String {
    decimals(x, 1)
}

/// A difference with its sign: `+5.2`, `−5.2`, `0.0`.
pub fn signed(difference: f64) -> String {
    signed_to(difference, 1)
}

/// A difference with its sign and `places` decimals: `+0.75`.
pub fn signed_to(difference: f64, places: usize) -> String {
    let text = decimals(difference, places);
    let plus = difference > 0.0 && text != NONE && text != decimals(0.0, places);
    if plus { format!("+{text}") } else { text }
}

/// An interval: `−1.2 to 3.4`.
pub fn interval(ends: [f64; 2]) -> String {
    interval_to(ends, 1)
}

/// An interval with `places` decimals.
pub fn interval_to(ends: [f64; 2], places: usize) -> String {
    ends.map(|end| decimals(end, places)).join(" to ")
}

/// An interval of a difference: `−1.2 to +3.4`.
pub fn signed_interval(ends: [f64; 2]) -> String {
    ends.map(signed).join(" to ")
}

/// A p-value in a column: `0.031`, `<0.001`, never `0.000`.
pub fn p(p: f64) -> String {
    match p {
        p if p < 0.001 => "<0.001".into(),
        p => decimals(p, if p < 0.1 { 3 } else { 2 }),
    }
}

/// A p-value in a sentence: `p = 0.031`, `p < 0.001`.
pub fn p_phrase(p: f64) -> String {
    let text = self::p(p);
    match text.strip_prefix('<') {
        Some(rest) => format!("p < {rest}"),
        None => format!("p = {text}"),
    }
}

/// A share of `[0, 1]` in percent: `3.1 %`. A share below one percent has two decimals, except 0.
pub fn share(x: f64) -> String {
    let percent = 100.0 * x;
    match decimals(percent, if percent == 0.0 || percent.abs() >= 1.0 { 1 } else { 2 }) {
        text if text == NONE => text,
        text => text + " %",
    }
}

/// A score: `0.812`; large scores, such as logits, have fewer decimals.
pub fn score(x: f64) -> String {
    decimals(x, if x.abs() < 10.0 { 3 } else { 1 })
}

/// A rank: `1`, `4.5`, `1,203`.
pub fn rank(x: f64) -> String {
    match x {
        x if x.is_finite() && (x.fract() == 0.0 || x >= 1000.0) => count(x.round() as u64),
        x => decimals(x, 1),
    }
}

/// A count with separated thousands: `29,783`.
pub fn count(n: u64) -> String {
    HumanCount(n).to_string()
}

/// A count and its noun: `1 query`, `5,000 images`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A length of time: `3.2 s`, `00:07:05`.
pub fn duration(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds.round()) {
        Err(_) => NONE.into(),
        // Whole seconds are too coarse for a small run.
        Ok(_) if seconds < 59.95 => format!("{} s", points(seconds)),
        Ok(length) => FormattedDuration(length).to_string(),
    }
}

/// A size: `12 B`, `178.34 MiB`.
pub fn bytes(n: u64) -> String {
    HumanBytes(n).to_string()
}

/// A number formatted by `text`, or [`NONE`] if there is no number.
pub fn or_none<T>(x: Option<T>, text: impl FnOnce(T) -> String) -> String {
    x.map_or_else(|| NONE.into(), text)
}

/// `N` with a subscript, for text without markup: `N₁₀`.
pub fn n_of(k: u64) -> String {
    let low = |c: char| c.to_digit(10).and_then(|d| char::from_u32(0x2080 + d)).unwrap_or(c);
    "N".to_owned() + &k.to_string().chars().map(low).collect::<String>()
}

/// The text with fixed blanks, so that no line ends before `%` or within `p < 0.05`.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
        .replace("p < ", "p\u{a0}<\u{a0}")
        .replace("p = ", "p\u{a0}=\u{a0}")
}

/// The text with minus signs, dashes and arrows in ASCII.
pub fn ascii(text: &str) -> String {
    text.replace(['−', '–'], "-").replace('→', "->")
}

/// The text without characters that move the cursor or reverse the direction of a line.
pub fn clean(text: &str) -> String {
    let harmless = |c: char| match c {
        '\t' | '\n' | '\r' => ' ',
        c if is_harmful(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(harmless).collect()
}

/// [`clean`] line by line.
pub fn clean_lines(text: &str) -> String {
    text.split('\n').map(clean).collect::<Vec<_>>().join("\n")
}

/// Whether a character moves the cursor or reverses the direction of a line.
pub fn is_harmful(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}');
    turns || c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_a_reader_writes_them() {
        assert_eq!([points(26.449), signed(5.24), signed(-5.26)], ["26.4", "+5.2", "−5.3"]);
        assert_eq!([signed(0.04), signed(-0.04), signed_to(0.75, 2)], ["0.0", "0.0", "+0.75"]);
        assert_eq!([share(0.0312), share(0.00042), share(0.0)], ["3.1 %", "0.04 %", "0.0 %"]);
        assert_eq!(interval([-1.23, 3.45]), "−1.2 to 3.5");
        assert_eq!(interval_to([-4.5, 0.25], 2), "−4.50 to 0.25");
        assert_eq!(signed_interval([-1.23, 3.45]), "−1.2 to +3.5");
        assert_eq!([rank(1.0), rank(4.5), rank(1203.4)], ["1", "4.5", "1,203"]);
        assert_eq!([score(0.8123), score(-0.5), score(27.31)], ["0.812", "−0.500", "27.3"]);
    }

    #[test]
    fn what_is_no_number_is_a_dash() {
        for text in [points, signed, p, score, share, rank].map(|f| f(f64::NAN)) {
            assert_eq!(text, NONE);
        }
        assert_eq!([signed(f64::INFINITY), points(f64::NEG_INFINITY)], [NONE, NONE]);
        assert_eq!([duration(f64::NAN), duration(f64::INFINITY)], [NONE; 2]);
        assert_eq!([or_none(None, points), or_none(Some(1.0), points)], [NONE, "1.0"]);
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
            [0.0, 3.21, 59.9, 59.96, 425.4, 3720.0].map(duration),
            ["0.0 s", "3.2 s", "59.9 s", "00:01:00", "00:07:05", "01:02:00"]
        );
        // 187,000,000 / 2²⁰ = 178.34
        assert_eq!([12, 187_000_000].map(bytes), ["12 B", "178.34 MiB"]);
        assert_eq!(
            [7, 999, 1_000, 29_783, 1_234_567].map(count),
            ["7", "999", "1,000", "29,783", "1,234,567"]
        );
        assert_eq!(
            [counted(1, "query", "queries"), counted(5000, "query", "queries")],
            ["1 query", "5,000 queries"]
        );
    }

    #[test]
    fn lines_do_not_end_inside_a_number() {
        assert_eq!(unbroken("5 % (p < 0.1)"), "5\u{a0}% (p\u{a0}<\u{a0}0.1)");
        assert_eq!(ascii("i → t: −1.2 to +3.4, –"), "i -> t: -1.2 to +3.4, -");
        assert_eq!([n_of(1), n_of(10)], ["N₁", "N₁₀"]);
    }

    #[test]
    fn names_cannot_move_the_cursor() {
        assert_eq!(clean("a\x1b[2Jb\nc\u{202e}d"), "a\u{fffd}[2Jb c\u{fffd}d");
        assert_eq!(clean_lines("a\x1bb\nc\u{9b}d\r\n"), "a\u{fffd}b\nc\u{fffd}d \n");
    }
}

//! Words and punctuation of a sentence, with their byte ranges.

use std::ops::Range;

/// Splits a sentence. Runs of letters with their combining marks, and digits, are words, with hyphens and apostrophes inside. A possessive
/// `'s` and every other sign are separate words.
pub(super) fn spans(text: &str) -> Vec<Range<usize>> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let end = |k: usize| chars.get(k).map_or(text.len(), |&(at, _)| at);
    let is_word = |k: usize| chars.get(k).is_some_and(|&(_, c)| c.is_alphanumeric() || is_mark(c));
    let mut spans = Vec::new();
    let mut k = 0;
    while k < chars.len() {
        let (start, c) = chars[k];
        if c.is_alphanumeric() {
            let goes_on = |k| joins(&chars, k) && is_word(k + 1) && !possessive(&chars, k);
            k += 1;
            while is_word(k) || goes_on(k) {
                k += 1;
            }
        } else {
            k += if possessive(&chars, k) { 2 } else { 1 };
        }
        if !c.is_whitespace() {
            spans.push(start..end(k));
        }
    }
    spans
}

/// Whether the character is a combining mark: accents, and signs without a vowel of Japanese, Thai and the scripts of India. Other vowel
/// signs are alphanumeric.
fn is_mark(c: char) -> bool {
    match u32::from(c) {
        0x300..=0x36F | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF | 0xFE20..=0xFE2F => {
            true
        }
        0x3099 | 0x309A | 0xE47..=0xE4E => true,
        c @ 0x900..=0xD7F => matches!(c % 0x80, 0x3C | 0x4D), // nukta, virama
        _ => false,
    }
}

/// Whether the sign joins the characters on both sides: `graffiti-covered`, `isn't`, `3.5`.
fn joins(chars: &[(usize, char)], k: usize) -> bool {
    let digit = |k: usize| chars.get(k).is_some_and(|(_, c)| c.is_ascii_digit());
    match chars.get(k) {
        Some((_, '-' | '\'' | '’')) => true,
        Some((_, '.' | ',')) => k > 0 && digit(k - 1) && digit(k + 1),
        _ => false,
    }
}

/// Whether `'s` begins here and ends a word.
fn possessive(chars: &[(usize, char)], k: usize) -> bool {
    matches!(chars.get(k), Some((_, '\'' | '’')))
        && matches!(chars.get(k + 1), Some((_, 's' | 'S')))
        && chars.get(k + 2).is_none_or(|(_, c)| !c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        spans(text).into_iter().map(|span| &text[span]).collect()
    }

    #[test]
    fn golden_words() {
        for (text, want) in [
            ("A dog, running.", "A|dog|,|running|."),
            ("The boy's bike isn't red", "The|boy|'s|bike|isn't|red"),
            ("A boy 's bike", "A|boy|'s|bike"),
            ("the dogs' ball", "the|dogs|'|ball"),
            ("a graffiti-covered wall - 3.5 m", "a|graffiti-covered|wall|-|3.5|m"),
            ("\"Stop\" (sign)", "\"|Stop|\"|(|sign|)"),
            ("a café’s owner", "a|café|’s|owner"),
            ("a cafe\u{301}’s owner", "a|cafe\u{301}|’s|owner"),
            ("a \u{301} हिन्दी ไม่ カ\u{3099}", "a|\u{301}|हिन्दी|ไม่|カ\u{3099}"),
            ("  ", ""),
            ("'s", "'s"),
        ] {
            assert_eq!(words(text).join("|"), want, "{text}");
        }
    }
}

//! Tokens of a caption, and the light stemmer that folds their inflections.

use crate::text::words;

/// Lower-case runs of `a-z0-9`, stemmed, in the order of the text.
pub(super) fn stems(text: &str) -> impl Iterator<Item = String> {
    words(text).into_iter().map(|word| stem(&word))
}

/// Plural, then `-ing` or `-ed` with undoubling, then a final `e`: `running, runs → run`, `rides, riding → rid`.
///
/// A stem is a key, not a word. Short words stay unchanged (`bus`, `red`, `ring`, `one`).
fn stem(token: &str) -> String {
    let mut word = plural(token);
    for suffix in ["ing", "ed"] {
        let Some(rest) = word.strip_suffix(suffix) else { continue };
        if rest.len() >= 3 && rest.contains(['a', 'e', 'i', 'o', 'u', 'y']) {
            word = undouble(rest).to_owned();
            break;
        }
    }
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
    word
}

fn plural(token: &str) -> String {
    match token {
        _ if token.len() <= 3 => token.to_owned(),
        _ if token.len() > 4 && token.ends_with("ies") => format!("{}y", &token[..token.len() - 3]),
        _ if ["ss", "us", "is"].iter().any(|end| token.ends_with(end)) => token.to_owned(),
        _ => token.strip_suffix('s').unwrap_or(token).to_owned(), // -es goes with the final e
    }
}

/// `runn → run`; but `roll`, `pass` and `buzz` have a double letter without the suffix, too.
fn undouble(stem: &str) -> &str {
    let bytes = stem.as_bytes();
    let last = bytes[bytes.len() - 1];
    let doubled = bytes[bytes.len() - 2] == last;
    if doubled && !b"lsz".contains(&last) { &stem[..stem.len() - 1] } else { stem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflections_of_one_word_share_a_stem() {
        for family in [
            vec!["run", "runs", "running"],
            vec!["ride", "rides", "riding"],
            vec!["jump", "jumps", "jumped", "jumping"],
            vec!["roll", "rolls", "rolled", "rolling"],
            vec!["box", "boxes", "boxing", "boxed"],
            vec!["puppy", "puppies"],
            vec!["tree", "trees"],
            vec!["dress", "dresses", "dressed"],
        ] {
            let stems: Vec<_> = family.iter().map(|word| stem(word)).collect();
            assert!(stems.iter().all(|s| *s == stems[0]), "{family:?} → {stems:?}");
        }
    }

    #[test]
    fn short_words_and_other_endings_stay() {
        for word in
            ["bus", "red", "ring", "bed", "string", "grass", "cactus", "tennis", "one", "is"]
        {
            assert_eq!(stem(word), word);
        }
    }

    #[test]
    fn tokens_are_lower_case_letters_and_digits() {
        assert_eq!(
            stems("Two DOGS, a man's #7-shirt.").collect::<Vec<_>>(),
            ["two", "dog", "a", "man", "s", "7", "shirt"]
        );
        assert_eq!(stems(" ... é").next(), None);
    }
}

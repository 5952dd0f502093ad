//! Rebuilds a sentence with some of its words changed.

use std::ops::Range;

use super::Edit;
use crate::phrases::Sentence;
use crate::record::Kind;

/// Ranges of words, ascending and disjoint, with their new words.
pub(super) type Changes = Vec<(Range<usize>, Vec<String>)>;

/// The edit; `None` if the text changes at most in case.
pub(super) fn edit(sentence: &Sentence, kind: Kind, changes: Changes) -> Option<Edit> {
    let text_of = |k: usize| sentence.words[k].text.clone();
    let mut pieces: Vec<(String, usize)> = Vec::new(); // a word, and the old word whose gap comes before it
    let mut at = 0;
    for (range, words) in &changes {
        pieces.extend((at..range.start).map(|k| (text_of(k), k)));
        for (n, word) in words.iter().enumerate() {
            let gap = if n == 0 { range.start } else { usize::MAX };
            let word = match n == 0 && begins(sentence, range.start) {
                true => cased_like(&sentence.words[range.start].text, word),
                false => word.clone(),
            };
            pieces.push((word, gap));
        }
        at = range.end;
    }
    pieces.extend((at..sentence.words.len()).map(|k| (text_of(k), k)));
    let text = joined(sentence, &pieces);
    let before: Vec<_> = (0..sentence.words.len()).map(|k| (text_of(k), k)).collect();
    let unchanged = text.to_lowercase() == joined(sentence, &before).to_lowercase();
    let positions: Vec<usize> = changes.iter().flat_map(|(range, _)| range.clone()).collect();
    (!unchanged).then(|| Edit {
        kind,
        old: positions.iter().map(|&k| text_of(k)).collect(),
        positions,
        new: changes.into_iter().flat_map(|(_, words)| words).collect(),
        text,
    })
}

/// Exchanges the words at some positions, in ascending order, for other words. `None` if the text changes at most in case.
///
/// ```
/// use tags_dc::edits::exchanged;
/// use tags_dc::phrases::parse;
/// use tags_dc::record::Kind;
///
/// let edit = exchanged(&parse("A dog runs."), Kind::Refill, vec![(1, "cat".into())]);
/// assert_eq!(edit.map(|edit| edit.text).as_deref(), Some("A cat runs."));
/// ```
///
/// # Panics
/// If a position is outside the sentence, or positions do not ascend.
pub fn exchanged(sentence: &Sentence, kind: Kind, words: Vec<(usize, String)>) -> Option<Edit> {
    assert!(words.is_sorted_by(|a, b| a.0 < b.0), "positions that ascend");
    edit(sentence, kind, words.into_iter().map(|(k, word)| (k..k + 1, vec![word])).collect())
}

/// The words of a range, as written inside a sentence: the first word of a sentence loses its capital.
pub(super) fn words(sentence: &Sentence, range: Range<usize>) -> Vec<String> {
    let inside = |k: usize| {
        let text = &sentence.words[k].text;
        let capital = text.chars().next().is_some_and(char::is_uppercase);
        let shouted = text.chars().skip(1).any(char::is_uppercase);
        if begins(sentence, k) && capital && !shouted { text.to_lowercase() } else { text.clone() }
    };
    range.map(inside).collect()
}

/// Whether a sentence begins at a word: the first word, and a word behind a full stop. Behind a capital the stop may belong to `St. Bernard`.
fn begins(sentence: &Sentence, at: usize) -> bool {
    match &sentence.words[at.saturating_sub(2)..=at] {
        [_] => true,
        [last, stop, word] => {
            let apart = stop.span.end < word.span.start;
            matches!(&stop.text[..], "." | "!" | "?")
                && apart
                && last.text.starts_with(char::is_lowercase)
        }
        _ => false,
    }
}

/// Joins the pieces. A blank comes where the old word had one before it, and between new words except before a comma or `'s`.
fn joined(sentence: &Sentence, pieces: &[(String, usize)]) -> String {
    let mut text = String::new();
    for (number, (word, old)) in pieces.iter().enumerate() {
        let blank = match old.checked_sub(1).and_then(|before| sentence.words.get(before)) {
            Some(before) if *old < sentence.words.len() => {
                sentence.words[*old].span.start > before.span.end
            }
            _ => !word.starts_with([',', '\'', '’']),
        };
        if number > 0 && blank {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

/// The new word, with a capital if the old word has one.
fn cased_like(old: &str, new: &str) -> String {
    let mut letters = new.chars();
    match letters.next() {
        Some(first) if old.chars().next().is_some_and(char::is_uppercase) => {
            first.to_uppercase().chain(letters).collect()
        }
        _ => new.to_owned(),
    }
}

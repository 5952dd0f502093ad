//! Noun chunks: the nouns, and the words that belong to them before.

use super::{Chunk, Tag, Word};

/// The chunks of a tagged sentence, in order: determiners, numbers, adjectives, then nouns.
pub(super) fn chunks(words: &[Word]) -> Vec<Chunk> {
    let tag = |k: usize| words.get(k).map(|word| word.tag);
    let mut chunks = Vec::new();
    let mut k = 0;
    while k < words.len() {
        let start = k;
        let mut at = k;
        while let Some(next) = modifier(words, at, start) {
            at = next;
        }
        let nouns = at;
        while tag(at) == Some(Tag::Noun) {
            at += 1;
        }
        if at > nouns {
            chunks.push(Chunk { words: start..at, nouns: nouns..at });
            k = at;
        } else {
            k = at.max(start + 1); // no chunk begins among modifiers without a noun
        }
    }
    chunks
}

/// The position after the modifier at `at`, if there is one.
fn modifier(words: &[Word], at: usize, start: usize) -> Option<usize> {
    let tag = |k: usize| words.get(k).map(|word| word.tag);
    match tag(at)? {
        Tag::Determiner | Tag::Possessive | Tag::Number | Tag::Adjective => Some(at + 1),
        // a snow covered hill
        Tag::Noun
            if tag(at + 1) == Some(Tag::Adjective)
                && words[at + 1].text.ends_with("ed")
                && tag(at + 2) == Some(Tag::Noun) =>
        {
            Some(at + 2)
        }
        // a very large dog
        Tag::Adverb if matches!(tag(at + 1), Some(Tag::Adjective)) => Some(at + 1),
        // a red and white train; a small, brown dog
        Tag::Conjunction | Tag::Punctuation
            if at > start
                && tag(at - 1) == Some(Tag::Adjective)
                && matches!(&words[at].text[..], "and" | "or" | "," | "&")
                && ends_in_noun(words, at + 1) =>
        {
            Some(at + 1)
        }
        _ => None,
    }
}

/// Whether adjectives and then a noun follow.
fn ends_in_noun(words: &[Word], at: usize) -> bool {
    let adjectives = words[at..].iter().take_while(|word| word.tag == Tag::Adjective).count();
    adjectives > 0 && words.get(at + adjectives).is_some_and(|word| word.tag == Tag::Noun)
}

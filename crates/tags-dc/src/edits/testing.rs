//! Sentences built by hand, to test the rules without the parser.

use crate::phrases::{Chunk, Sentence, Tag, Word};

/// A sentence of tagged words: `a/D man/N with/P a/D dog/N ./.`. A word without a tag is a noun. A full stop has no blank before it.
pub(super) fn sentence(tagged: &str) -> Sentence {
    let mut words = Vec::new();
    let mut end = 0;
    for piece in tagged.split_whitespace() {
        let (text, tag) = piece.rsplit_once('/').unwrap_or((piece, "N"));
        let start = if end == 0 || text == "." { end } else { end + 1 };
        end = start + text.len();
        words.push(Word { text: text.into(), span: start..end, tag: of(tag) });
    }
    let chunks = chunks(&words);
    Sentence { words, chunks, ..Sentence::default() }
}

fn of(tag: &str) -> Tag {
    match tag {
        "N" => Tag::Noun,
        "D" => Tag::Determiner,
        "S" => Tag::Possessive,
        "#" => Tag::Number,
        "A" => Tag::Adjective,
        "P" => Tag::Preposition,
        "V" => Tag::Verb,
        "X" => Tag::Auxiliary,
        "C" => Tag::Conjunction,
        "." => Tag::Punctuation,
        other => panic!("no tag {other}"),
    }
}

/// Determiner, numbers and adjectives, then nouns.
fn chunks(words: &[Word]) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let (mut start, mut k) = (0, 0);
    while k < words.len() {
        let tag = words[k].tag;
        if tag == Tag::Noun {
            let nouns = k;
            while words.get(k).is_some_and(|word| word.tag == Tag::Noun) {
                k += 1;
            }
            chunks.push(Chunk { words: start..k, nouns: nouns..k });
            start = k;
        } else {
            k += 1;
            if !matches!(tag, Tag::Determiner | Tag::Possessive | Tag::Number | Tag::Adjective) {
                start = k;
            }
        }
    }
    chunks
}

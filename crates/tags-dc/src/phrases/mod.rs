//! The phrases of a caption: objects, attributes and relations, with the positions of their words.
//!
//! [`parse`] reads one English caption.

mod chunks;
mod graph;
mod lexicon;
mod lists;
pub mod sidecar;
mod tagger;
mod tokens;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use lists::{Duplicates, Phrases};

/// Reads one English caption: words, tags, noun chunks, objects, attributes, relations.
///
/// Any text can be read; a text that is not an English sentence has few phrases. The same text always gives the same graph.
///
/// ```
/// let sentence = tags_dc::phrases::parse("Two women in red coats talk near a bus stop.");
/// let names: Vec<_> = sentence.objects.iter().map(|object| object.name.as_str()).collect();
/// assert_eq!(names, ["women", "coats", "stop"]);
/// assert_eq!(sentence.relations[1].words, [5, 6]); // women, talk near, stop
/// ```
pub fn parse(text: &str) -> Sentence {
    let spans = tokens::spans(text);
    let lower: Vec<String> = spans.iter().map(|span| text[span.clone()].to_lowercase()).collect();
    let tags = tagger::tags(&lower);
    let word =
        |(span, tag): (Range<usize>, Tag)| Word { text: text[span.clone()].into(), span, tag };
    let words: Vec<Word> = spans.into_iter().zip(tags).map(word).collect();
    let chunks = chunks::chunks(&words);
    let mut sentence = Sentence { words, chunks, ..Sentence::default() };
    graph::read(&mut sentence);
    sentence
}

/// What a word does in its sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tag {
    /// `dog`, `sunglasses`, `mid`.
    Noun,
    /// `he`, `them`, `someone`: never an object.
    Pronoun,
    /// `my`, `their`.
    Possessive,
    /// `a`, `the`, `this`.
    Determiner,
    /// `two`, `several`, `no`.
    Number,
    /// `red`, `asleep`, `fallen` before a noun.
    Adjective,
    /// `quickly`, `very`.
    Adverb,
    /// `jumps`, `walking`, `helped`.
    Verb,
    /// `is`, `has` before a participle, `can`.
    Auxiliary,
    /// `on`, `beside`.
    Preposition,
    /// `up` of `stand up`, `to` of an infinitive, `'s`, `not`.
    Particle,
    /// `and`, `while`.
    Conjunction,
    /// A full stop, a comma, a quotation mark.
    Punctuation,
    /// Everything else.
    Other,
}

/// A word of a sentence. Punctuation is a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word as it is written.
    pub text: String,
    /// The bytes of the word in the sentence.
    pub span: Range<usize>,
    /// What the word does.
    pub tag: Tag,
}

/// A noun chunk: determiner, modifiers, nouns. The ranges are word positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// From the determiner to the last noun.
    pub words: Range<usize>,
    /// The nouns at the end of the chunk, which are masked as the object.
    pub nouns: Range<usize>,
}

/// A thing that the sentence names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Object {
    /// Head noun as written, for human readers.
    pub name: String,
    /// Head noun with the nouns that belong to it.
    pub words: Vec<usize>,
}

/// A property of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attribute {
    /// Number of the object.
    pub object: usize,
    /// The modifying words as text, for human readers.
    pub name: String,
    /// The modifying words.
    pub words: Vec<usize>,
}

/// What one object does with another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Relation {
    /// Number of the object that is the subject.
    pub subject: usize,
    /// The predicate as text, for human readers.
    pub name: String,
    /// Number of the other object.
    pub object: usize,
    /// The predicate's words; empty for a possessive `'s`.
    pub words: Vec<usize>,
}

/// A sentence after reading: words and graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sentence {
    /// Words in order.
    pub words: Vec<Word>,
    /// Noun chunks in order, without overlap.
    pub chunks: Vec<Chunk>,
    /// Objects in order of their head nouns.
    pub objects: Vec<Object>,
    /// Attributes in order of their words.
    pub attributes: Vec<Attribute>,
    /// Relations in order of their words.
    pub relations: Vec<Relation>,
}

#[cfg(test)]
mod tests;

//! Tags: what each word does, by the lexicon, by endings, and by its neighbours.

mod can;
mod closed;
mod finite;
mod open;
mod participles;

use self::can::can;
use super::Tag;
use super::lexicon::LEXICON;
use crate::inflect::VerbForm;

/// How many words away a tag looks. Without a bound the time of a text would grow with the square of its length.
const FAR: usize = 512;

/// The tags of the words of a sentence.
pub(super) fn tags(words: &[String]) -> Vec<Tag> {
    let mut tagger = Tagger { words, tags: Vec::with_capacity(words.len()) };
    for at in 0..words.len() {
        let tag = tagger.tag(at);
        tagger.tags.push(tag);
    }
    tagger.tags
}

struct Tagger<'a> {
    /// The words, in lower case.
    words: &'a [String],
    /// The tags of the words so far.
    tags: Vec<Tag>,
}

impl Tagger<'_> {
    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    fn before(&self) -> Option<Tag> {
        self.tags.last().copied()
    }

    /// The last tag that is not an adverb.
    fn governor(&self) -> Option<Tag> {
        self.last(|tag| tag != Tag::Adverb).map(|at| self.tags[at])
    }

    /// The place of the last tag like this.
    fn last(&self, is_like: impl Fn(Tag) -> bool) -> Option<usize> {
        (self.far()..self.tags.len()).rev().find(|&at| is_like(self.tags[at]))
    }

    /// The first place that a tag looks at.
    fn far(&self) -> usize {
        self.tags.len().saturating_sub(FAR)
    }

    fn tag(&self, at: usize) -> Tag {
        let word = self.word(at);
        if word.chars().all(|c| !c.is_alphanumeric()) && word != "&" {
            return Tag::Punctuation;
        }
        if matches!(word, "'s" | "’s") {
            return self.apostrophe(at);
        }
        if word.chars().all(|c| c.is_ascii_digit() || ".,".contains(c)) {
            return Tag::Number;
        }
        match LEXICON.closed(word) {
            Some(tag) => self.closed(at, tag),
            None => self.open(at),
        }
    }

    /// `'s` is a possessive if a noun or an adjective follows and no pronoun stands before. Elsewhere it is `is`.
    fn apostrophe(&self, at: usize) -> Tag {
        let next = can(self.word(at + 1));
        let possessed = next.noun || next.adjective;
        let pronoun = self.before() == Some(Tag::Pronoun);
        if !pronoun && possessed && LEXICON.closed(self.word(at + 1)).is_none() {
            Tag::Particle
        } else {
            Tag::Auxiliary
        }
    }

    /// Whether a noun chunk may begin at a word.
    fn begins_chunk(&self, at: usize) -> bool {
        let word = self.word(at);
        match LEXICON.closed(word) {
            Some(tag) => {
                matches!(tag, Tag::Determiner | Tag::Possessive | Tag::Number | Tag::Pronoun)
            }
            None if word.chars().all(|c| !c.is_alphanumeric()) => false,
            None => {
                let can = can(word);
                can.noun || can.adjective || can.verb.is_some_and(|form| form != VerbForm::Third)
            }
        }
    }

    /// Whether the word describes a noun: a chunk goes on after it, and no verb, noun or pronoun stands before it.
    fn describes(&self, at: usize) -> bool {
        self.chunk_goes_on(at + 1)
            && !matches!(self.before(), Some(Tag::Verb | Tag::Noun | Tag::Pronoun))
    }

    /// Whether a noun chunk can go on with the word at `at`: a noun, an adjective, or a participle before a noun.
    fn chunk_goes_on(&self, at: usize) -> bool {
        let word = self.word(at);
        if word.is_empty() || LEXICON.closed(word).is_some() {
            return false;
        }
        let can = can(word);
        let letters = word.chars().any(char::is_alphanumeric);
        letters
            && (can.noun || can.adjective || (can.verb.is_some() && self.participle_then_noun(at)))
    }

    fn participle_then_noun(&self, at: usize) -> bool {
        let can_be = can(self.word(at)).verb;
        matches!(can_be, Some(VerbForm::Ing | VerbForm::Past)) && can(self.word(at + 1)).noun
    }

    /// Whether the words before have begun a chunk and not ended it.
    fn in_chunk(&self) -> bool {
        let before = self.before();
        matches!(before, Some(Tag::Determiner | Tag::Possessive | Tag::Number | Tag::Adjective))
            || before == Some(Tag::Particle) && self.after_possessive()
    }

    fn after_possessive(&self) -> bool {
        self.tags.len().checked_sub(1).is_some_and(|at| matches!(self.word(at), "'s" | "’s" | "'"))
    }
}

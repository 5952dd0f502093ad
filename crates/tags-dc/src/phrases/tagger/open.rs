//! Words of the open classes: nouns, adjectives, verbs, adverbs.

use super::Tagger;
use super::can::{Can, can};
use crate::inflect::VerbForm;
use crate::phrases::Tag;
use crate::phrases::lexicon::LEXICON;

impl Tagger<'_> {
    pub(super) fn open(&self, at: usize) -> Tag {
        let word = self.word(at);
        let can = can(word);
        let known = LEXICON.noun(word) || LEXICON.adjectives.contains(word);
        if word.ends_with("ly") && word.len() > 4 && !known {
            return Tag::Adverb;
        }
        match can.verb {
            Some(VerbForm::Ing) => self.ing(at, can),
            Some(VerbForm::Past) => self.past(at, can),
            Some(form) => self.finite(at, can, form),
            None if can.adjective => self.adjective(at, can),
            None => Tag::Noun,
        }
    }

    pub(super) fn adjective(&self, at: usize, own: Can) -> Tag {
        if !own.noun || self.before() == Some(Tag::Auxiliary) {
            return Tag::Adjective;
        }
        let next = self.word(at + 1);
        let conjunction = matches!(next, "and" | "or" | ",")
            && can(self.word(at + 2)).adjective
            && self.chunk_goes_on(at + 2)
            && self.chunk_goes_on(at + 3);
        if self.chunk_goes_on(at + 1) && !self.verb_follows(at + 1) || conjunction {
            Tag::Adjective
        } else {
            Tag::Noun
        }
    }

    /// Whether the word at `at` is probably the verb of the word before: `an adult plays outside`, `a man in red sits down`.
    fn verb_follows(&self, at: usize) -> bool {
        let noun = at
            .checked_sub(1)
            .is_some_and(|k| LEXICON.animate(self.word(k)) || k > 0 && self.word(k - 1) == "in");
        noun && can(self.word(at)).verb == Some(VerbForm::Third) && self.acts_on(at + 1)
    }

    /// Whether the word at `at` can follow a verb: the end, punctuation, or a word of a closed class other than a conjunction.
    fn acts_on(&self, at: usize) -> bool {
        let word = self.word(at);
        let open = word.chars().any(char::is_alphanumeric);
        !open || LEXICON.closed(word).is_some_and(|tag| tag != Tag::Conjunction)
    }
}

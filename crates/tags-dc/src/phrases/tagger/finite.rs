//! Words that can be a present verb.

use super::Tagger;
use super::can::{Can, can};
use crate::inflect::{VerbForm, singular};
use crate::phrases::Tag;
use crate::phrases::lexicon::LEXICON;

impl Tagger<'_> {
    /// The tag of a word that can be a present verb.
    pub(super) fn finite(&self, at: usize, own: Can, form: VerbForm) -> Tag {
        let other = own.noun || own.adjective;
        let next = self.word(at + 1);
        let not_verb = || {
            if own.adjective { self.adjective(at, own) } else { Tag::Noun }
        };
        if matches!(self.before(), Some(Tag::Particle)) && self.word(at.wrapping_sub(1)) == "to" {
            return Tag::Verb;
        }
        if form == VerbForm::Base && self.governor() == Some(Tag::Auxiliary) {
            let last = self.last(|tag| tag == Tag::Auxiliary);
            let be = ["is", "are", "was", "were", "be", "being", "been", "am", "'s"];
            let modal = last.is_some_and(|k| !be.contains(&self.word(k)));
            return if modal || !other { Tag::Verb } else { not_verb() };
        }
        if !other {
            let noun = form == VerbForm::Base && self.before() == Some(Tag::Preposition);
            return if noun { Tag::Noun } else { Tag::Verb }; // in motion
        }
        if self.in_chunk() || matches!(self.before(), Some(Tag::Preposition | Tag::Auxiliary)) {
            return not_verb();
        }
        if LEXICON.noun(self.word(at)) && can(next).verb == Some(VerbForm::Ing) {
            return not_verb(); // dirt bikes jumping
        }
        let after = LEXICON.closed(next);
        let verbs_object =
            after.is_some_and(|tag| !matches!(tag, Tag::Auxiliary | Tag::Conjunction));
        let subject = self.before() == Some(Tag::Noun);
        let plural = self.tags.len().checked_sub(1).is_some_and(|k| {
            let noun = self.word(k);
            let many = matches!(noun, "sheep" | "couple" | "group") || singular(noun) != noun;
            many || self.coordinated()
        });
        if subject && form == VerbForm::Base && verbs_object && self.lets() {
            return Tag::Verb; // helps a boy ride a bike
        }
        let agrees = match form {
            VerbForm::Third => !plural || self.coordinated(),
            _ => plural || self.before() == Some(Tag::Pronoun),
        };
        let free = !self.clause_has_verb();
        let third = form == VerbForm::Third;
        let verb = match self.before() {
            Some(Tag::Noun) => agrees && (free || verbs_object),
            Some(Tag::Pronoun) => true,
            Some(Tag::Conjunction) => third && verbs_object,
            Some(Tag::Adverb) => third && verbs_object || free && agrees,
            _ => false,
        };
        if verb { Tag::Verb } else { not_verb() }
    }

    /// Whether the last verb takes another verb without `to`.
    fn lets(&self) -> bool {
        let verb = self.last(|tag| tag == Tag::Verb);
        let lemma = verb.and_then(|k| LEXICON.verb(self.word(k)));
        lemma.is_some_and(|(lemma, _)| {
            matches!(&lemma[..], "help" | "watch" | "make" | "let" | "see")
        })
    }

    /// Whether the words before are two nouns joined by `and`.
    fn coordinated(&self) -> bool {
        let back = self.tags.iter().rev().skip(1).take(4);
        back.zip((0..self.tags.len().saturating_sub(1)).rev())
            .take_while(|(tag, _)| !matches!(tag, Tag::Verb | Tag::Preposition))
            .any(|(tag, k)| *tag == Tag::Conjunction && self.word(k) == "and")
    }

    /// Whether the clause has a finite verb so far.
    fn clause_has_verb(&self) -> bool {
        let start = self.last(|tag| tag == Tag::Conjunction).map_or(self.far(), |k| k + 1);
        let verb = |k: usize| match self.tags[k] {
            Tag::Auxiliary => true,
            Tag::Verb => !self.word(k).ends_with("ing"),
            _ => false,
        };
        (start..self.tags.len()).any(verb)
    }
}

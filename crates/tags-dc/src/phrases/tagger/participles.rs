//! Words in `-ing` and `-ed`: verbs, modifiers, nouns.

use super::Tagger;
use super::can::{Can, can};
use crate::inflect::singular;
use crate::phrases::Tag;
use crate::phrases::lexicon::LEXICON;

impl Tagger<'_> {
    pub(super) fn ing(&self, at: usize, can: Can) -> Tag {
        let modifies = self.chunk_goes_on(at + 1);
        if self.in_chunk() {
            let noun = !can.adjective && (can.noun || !modifies);
            return if noun { Tag::Noun } else { Tag::Adjective };
        }
        let follows = LEXICON.closed(self.word(at + 1));
        if can.noun && follows != Some(Tag::Determiner) && follows != Some(Tag::Possessive) {
            let noun = matches!(self.before(), None | Some(Tag::Noun | Tag::Preposition));
            if noun && !modifies && self.governor() != Some(Tag::Auxiliary) {
                let acts = |word: &str| LEXICON.animate(word) && !word.ends_with("ing");
                let verb = self.before() == Some(Tag::Noun) && acts(self.word(at - 1));
                return if verb { Tag::Verb } else { Tag::Noun };
            }
        }
        if modifies && LEXICON.stands_alone(self.word(at)) {
            let alone = matches!(self.before(), None | Some(Tag::Preposition | Tag::Conjunction));
            if alone || self.before() == Some(Tag::Verb) {
                return Tag::Adjective; // smiling woman
            }
        }
        if modifies
            && self.before() == Some(Tag::Preposition)
            && self.word(at.wrapping_sub(1)) != "by"
        {
            return Tag::Adjective; // in running shoes
        }
        Tag::Verb
    }

    pub(super) fn past(&self, at: usize, can: Can) -> Tag {
        let modifies = self.chunk_goes_on(at + 1);
        let be = self.governor() == Some(Tag::Auxiliary);
        if self.in_chunk()
            && (modifies || LEXICON.closed(self.word(at + 1)) == Some(Tag::Conjunction))
            && !be
        {
            return Tag::Adjective;
        }
        let second = self.tags.iter().rev().nth(1);
        let listed = matches!(self.before(), Some(Tag::Punctuation | Tag::Conjunction))
            && second == Some(&Tag::Adjective);
        if listed && modifies {
            return Tag::Adjective; // a yellow, striped shirt
        }
        if can.noun && (self.in_chunk() || self.before() == Some(Tag::Preposition)) {
            return Tag::Noun; // the cut, the left
        }
        let brightly = self.before() == Some(Tag::Adverb)
            && !matches!(second, Some(Tag::Noun | Tag::Pronoun | Tag::Auxiliary | Tag::Verb));
        let begins = brightly || matches!(self.before(), None | Some(Tag::Preposition | Tag::Verb));
        if begins && modifies && !be {
            return Tag::Adjective; // on snow covered hills
        }
        if can.adjective && be && LEXICON.closed(self.word(at + 1)) != Some(Tag::Preposition) {
            return Tag::Adjective;
        }
        if self.before() == Some(Tag::Noun) && modifies && self.chunk_is_open(at) {
            return Tag::Adjective; // a snow covered hill
        }
        Tag::Verb
    }

    /// Whether the noun before this word names something that covers, such as snow, and the next word can be a noun:
    /// `a snow covered hill`, not `a dog jumped over`.
    fn chunk_is_open(&self, at: usize) -> bool {
        let noun = at.checked_sub(1).map(|k| self.word(k));
        let next = self.word(at + 1);
        let mass = ["snow", "tree", "grass", "ice", "leaf", "sand", "water", "cloud", "graffiti"];
        noun.is_some_and(|noun| mass.contains(&&singular(noun)[..])) && can(next).noun
    }
}

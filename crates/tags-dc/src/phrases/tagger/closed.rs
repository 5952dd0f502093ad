//! Words of the closed classes. Some can have several tags: `to`, `her`, `that`, `down`.

use super::can::can;
use super::{FAR, Tagger};
use crate::inflect::VerbForm;
use crate::phrases::Tag;
use crate::phrases::lexicon::LEXICON;

impl Tagger<'_> {
    pub(super) fn closed(&self, at: usize, tag: Tag) -> Tag {
        let (word, next) = (self.word(at), self.word(at + 1));
        let (before, after) = (self.before(), can(next));
        match (word, tag) {
            ("to", _)
                if after.verb == Some(VerbForm::Base) && !(after.noun && self.nominal(at + 1)) =>
            {
                Tag::Particle
            }
            ("her", _) if !self.begins_chunk(at + 1) => Tag::Pronoun,
            ("that", _) if matches!(before, Some(Tag::Noun | Tag::Pronoun)) => Tag::Pronoun,
            ("that" | "this" | "these" | "those", _) if !self.begins_chunk(at + 1) => Tag::Pronoun,
            ("like", _) if before == Some(Tag::Particle) => Tag::Verb,
            ("high" | "low" | "fast" | "hard" | "close" | "straight", _) if self.describes(at) => {
                Tag::Adjective
            }
            ("back", _)
                if matches!(before, Some(Tag::Determiner | Tag::Possessive | Tag::Preposition)) =>
            {
                if self.chunk_goes_on(at + 1) {
                    Tag::Adjective
                } else {
                    Tag::Noun
                }
            }
            (
                "outside" | "inside" | "down" | "up" | "over" | "off" | "past" | "by" | "around"
                | "near" | "along" | "across" | "through" | "about" | "on" | "in" | "out"
                | "behind" | "above" | "below" | "underneath" | "nearby" | "aboard" | "opposite"
                | "like",
                Tag::Preposition,
            ) => {
                let chunk = self.begins_chunk(at + 1);
                let phrase = next == "of"
                    || LEXICON.closed(next) == Some(Tag::Preposition) && before != Some(Tag::Noun);
                if before == Some(Tag::Determiner) && self.chunk_goes_on(at + 1) {
                    Tag::Adjective // the inside wall
                } else if chunk || phrase {
                    Tag::Preposition
                } else if LEXICON.particles.contains(word) && self.governor() == Some(Tag::Verb) {
                    Tag::Particle
                } else {
                    Tag::Adverb
                }
            }
            ("but" | "so" | "as" | "than" | "while" | "and" | "or", _) => Tag::Conjunction,
            ("all" | "both" | "each", _) if self.acts_next(at) => Tag::Adverb, // are all standing
            ("can", _)
                if matches!(before, Some(Tag::Determiner | Tag::Noun | Tag::Adjective))
                    && !self.infinitive(at + 1) =>
            {
                Tag::Noun
            }
            _ => tag,
        }
    }

    /// Whether the word stands after a noun or an auxiliary, and before a participle or a preposition.
    fn acts_next(&self, at: usize) -> bool {
        let next = self.word(at + 1);
        let verb = matches!(can(next).verb, Some(VerbForm::Ing | VerbForm::Past));
        matches!(self.before(), Some(Tag::Auxiliary | Tag::Noun))
            && (verb || LEXICON.closed(next) == Some(Tag::Preposition))
    }

    /// Whether a bare verb follows, possibly after adverbs.
    fn infinitive(&self, at: usize) -> bool {
        let mut words = (at..self.words.len()).take(FAR);
        let at = words.find(|&k| LEXICON.closed(self.word(k)) != Some(Tag::Adverb));
        at.is_some_and(|at| {
            self.word(at) == "be" || can(self.word(at)).verb == Some(VerbForm::Base)
        })
    }

    /// Whether a word that can be a noun or a verb is a noun after `to`: `to school`.
    fn nominal(&self, at: usize) -> bool {
        matches!(self.word(at), "work" | "school" | "water" | "land" | "shore" | "side" | "front")
    }
}

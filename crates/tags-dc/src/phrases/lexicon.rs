//! What a word can be: all words of the closed classes, and the open words that captions of photographs use most.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::Tag;
use crate::inflect::{VerbForm, lemmas, singular};

/// Words by what they can be; all in lower case.
pub(super) struct Lexicon {
    closed: HashMap<&'static str, Tag>,
    nouns: HashSet<&'static str>,
    verbs: HashSet<&'static str>,
    adjectives: HashSet<&'static str>,
    particles: HashSet<&'static str>,
    animate: HashSet<&'static str>,
    intransitive: HashSet<&'static str>,
}

/// The lexicon, made once.
pub(super) static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let words = |text: &'static str| text.split_whitespace().collect::<HashSet<_>>();
    let mut closed = HashMap::new();
    for line in include_str!("lexicon/closed.txt").lines() {
        let mut words = line.split_whitespace();
        let tag = match words.next() {
            Some("determiner") => Tag::Determiner,
            Some("possessive") => Tag::Possessive,
            Some("pronoun") => Tag::Pronoun,
            Some("number") => Tag::Number,
            Some("auxiliary") => Tag::Auxiliary,
            Some("preposition") => Tag::Preposition,
            Some("conjunction") => Tag::Conjunction,
            Some("adverb") => Tag::Adverb,
            _ => continue, // a comment
        };
        for word in words {
            closed.entry(word).or_insert(tag);
        }
    }
    Lexicon {
        closed,
        nouns: words(include_str!("lexicon/nouns.txt")),
        verbs: words(include_str!("lexicon/verbs.txt")),
        adjectives: words(include_str!("lexicon/adjectives.txt")),
        particles: words(include_str!("lexicon/particles.txt")),
        animate: words(include_str!("lexicon/animate.txt")),
        intransitive: words(include_str!("lexicon/intransitive.txt")),
    }
});

impl Lexicon {
    /// The class of a word of a closed class.
    pub(super) fn closed(&self, word: &str) -> Option<Tag> {
        self.closed.get(word).copied()
    }

    /// Whether the word is a known noun or its plural.
    pub(super) fn noun(&self, word: &str) -> bool {
        self.nouns.contains(word) || self.nouns.contains(&singular(word)[..])
    }

    pub(super) fn adjective(&self, word: &str) -> bool {
        self.adjectives.contains(word)
    }

    /// Whether the word can follow a verb as its particle.
    pub(super) fn particle(&self, word: &str) -> bool {
        self.particles.contains(word)
    }

    /// Whether the word names somebody who can act.
    pub(super) fn animate(&self, word: &str) -> bool {
        self.animate.contains(word) || self.animate.contains(&singular(word)[..])
    }

    /// The known verb that a word is a form of.
    pub(super) fn verb(&self, word: &str) -> Option<(String, VerbForm)> {
        lemmas(word).into_iter().find(|(lemma, _)| self.verbs.contains(&lemma[..]))
    }

    /// Whether a participle before a noun describes the noun: `smiling`, not `wearing`.
    pub(super) fn stands_alone(&self, word: &str) -> bool {
        self.verb(word).is_some_and(|(lemma, _)| self.intransitive.contains(&lemma[..]))
    }
}

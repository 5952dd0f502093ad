//! What a word can be: all words of the closed classes, and the open words that captions of photographs use most.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::{IntoDeserializer, value};

use super::Tag;
use crate::inflect::{VerbForm, lemmas, singular};

/// Words by what they can be; all in lower case.
pub(super) struct Lexicon {
    closed: HashMap<&'static str, Tag>,
    nouns: HashSet<&'static str>,
    verbs: HashSet<&'static str>,
    pub(super) adjectives: HashSet<&'static str>,
    /// Words that can follow a verb as its particle.
    pub(super) particles: HashSet<&'static str>,
    animate: HashSet<&'static str>,
    intransitive: HashSet<&'static str>,
}

/// The lexicon, made once.
pub(super) static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let words = |text: &'static str| text.split_whitespace().collect::<HashSet<_>>();
    let mut closed = HashMap::new();
    for line in include_str!("lexicon/closed.txt").lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let tag: Result<_, value::Error> = Tag::deserialize(name.into_deserializer());
        let Ok(tag) = tag else { continue }; // a comment
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

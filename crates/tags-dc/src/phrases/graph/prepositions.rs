//! Prepositions of one or several words, and what they relate.

use super::Walk;
use crate::phrases::Tag;

/// Prepositions of several words, the longest first.
const MULTI_WORD: &str = "on the other side of, on the side of, in the middle of, at the edge of, \
on the edge of, in front of, on top of, in back of, in between, because of, along with, next to, \
close to, out of, outside of, inside of, off of, instead of";

impl Walk<'_> {
    /// The number of words of the preposition at `at`, if there is one.
    pub(super) fn preposition(&self, at: usize) -> Option<usize> {
        let matches = |of: &&str| of.split(' ').enumerate().all(|(k, w)| self.lower(at + k) == w);
        let length = MULTI_WORD.split(", ").find(matches).map(|of| of.split(' ').count());
        length.or((self.tag(at) == Some(Tag::Preposition)).then_some(1))
    }

    pub(super) fn take_preposition(&mut self, length: usize) {
        let mut words: Vec<usize> = (self.at..self.at + length).collect();
        self.at += length;
        while let Some(length) = self.preposition(self.at) {
            words.extend(self.at..self.at + length); // down into
            self.at += length;
        }
        if self.chunk_at(self.at).is_none() {
            if let Some(verb) = self.verb.as_mut().filter(|verb| !verb.used) {
                verb.words.extend(words); // a particle
            }
            return;
        }
        let of = words.len() == 1 && self.lower(words[0]) == "of";
        let group = self.noun_phrase();
        match self.verb.clone() {
            _ if of && !self.left.is_empty() => self.relate(&self.left.clone(), &words, &group),
            Some(verb) if verb.used => self.relate(&verb.subjects, &words, &group),
            Some(verb) => {
                let all = [&verb.words[..], &words].concat();
                self.relate(&verb.subjects, &all, &group);
                self.mark_used();
            }
            None => self.relate(&self.left.clone(), &words, &group),
        }
        if !of || self.left.is_empty() {
            self.left = group;
        }
    }
}

//! Clauses: who acts, on what, and what a verb without an object says.

use super::{Verb, Walk};
use crate::phrases::Tag;
use crate::phrases::lexicon::LEXICON;

/// Verbs that lead to an adjective.
const LINKING: [&str; 9] =
    ["look", "looks", "looking", "seem", "seems", "appear", "appears", "looked", "seemed"];

impl Walk<'_> {
    /// Takes a noun phrase without a preposition: the object of the verb, or the subject.
    pub(super) fn take_phrase(&mut self, group: Vec<usize>) {
        match self.verb.clone() {
            Some(verb) if !verb.used => {
                self.relate(&verb.subjects, &verb.words, &group);
                self.mark_used();
            }
            Some(_) if !self.verb_follows() => {} // a second object, a time
            _ if self.linked && !self.verb_follows() => {
                if self.subject.is_empty() {
                    self.subject = group.clone(); // there is a dog
                }
            }
            _ => {
                self.begin_clause();
                self.subject = group.clone();
            }
        }
        self.left = group;
    }

    fn verb_follows(&self) -> bool {
        matches!(self.tag(self.at), Some(Tag::Auxiliary))
            || self.tag(self.at) == Some(Tag::Verb) && !self.lower(self.at).ends_with("ing")
    }

    pub(super) fn begin_clause(&mut self) {
        self.end_verb();
        (self.finite, self.linked) = (false, false);
    }

    /// Ends the verb; without a relation it becomes an attribute of its subjects.
    pub(super) fn end_verb(&mut self) {
        self.make_verb_an_attribute();
        self.verb = None;
    }

    pub(super) fn mark_used(&mut self) {
        if let Some(verb) = &mut self.verb {
            verb.used = true;
        }
    }

    pub(super) fn verb_after(&self, at: usize) -> bool {
        matches!(self.tag(at), Some(Tag::Auxiliary | Tag::Verb))
    }

    /// A verb that is in no relation becomes an attribute of its subjects. So does the verb of `hit it`: the pronoun is its object, but not
    /// an [`Object`](crate::phrases::Object).
    pub(super) fn make_verb_an_attribute(&mut self) {
        if let Some(verb) = self.verb.as_mut().filter(|verb| !verb.used) {
            verb.used = true;
            let verb = verb.clone();
            for &subject in &verb.subjects {
                self.attribute(subject, verb.words.clone());
            }
        }
    }

    pub(super) fn take_auxiliary(&mut self) {
        if self.finite && self.verb.is_some() {
            self.begin_clause();
        }
        (self.finite, self.linked) = (true, true);
    }

    /// Takes a verb with its particles. The words before decide who its subject is.
    pub(super) fn take_verb(&mut self) {
        let at = self.at;
        let word = self.lower(at);
        if LINKING.contains(&&word[..]) && matches!(self.tag(at + 1), Some(Tag::Adjective)) {
            self.end_verb();
            (self.finite, self.linked) = (true, true);
            return;
        }
        let mut words = vec![at];
        while self.tag(self.at + 1) == Some(Tag::Particle) && self.lower(self.at + 1) != "to" {
            self.at += 1;
            words.push(self.at);
        }
        let subjects = self.actors(at);
        self.end_verb();
        let participle = word.ends_with("ing");
        self.finite |= !participle || self.linked;
        self.linked = false;
        self.verb = Some(Verb { words, subjects, used: false });
    }

    /// The subjects of the verb at `at`. A participle right after a noun belongs to that noun if the noun can act or there is no better
    /// subject; otherwise the verb belongs to the subject of the clause.
    fn actors(&self, at: usize) -> Vec<usize> {
        let follows = at.checked_sub(1).and_then(|k| self.tag(k)) == Some(Tag::Noun);
        let participle = !self.linked && (self.lower(at).ends_with("ing") || self.finite);
        let animate = |of: &[usize]| {
            of.iter().any(|&k| LEXICON.animate(&self.objects[k].name.to_lowercase()))
        };
        let nearest = animate(&self.left) || !self.finite && !animate(&self.subject);
        // a road lined with trees
        let reduced = self.finite && !self.lower(at).ends_with("ing");
        if follows && participle && (nearest || reduced) || self.subject.is_empty() {
            return self.left.clone();
        }
        self.subject.clone()
    }
}

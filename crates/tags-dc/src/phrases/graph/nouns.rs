//! Noun phrases: lists of chunks, possessives, collectives, modifiers.

use super::Walk;
use crate::inflect::singular;
use crate::phrases::{Chunk, Object, Relation, Tag};

/// Nouns X for which `X of Y` is a `Y`.
const COLLECTIVES: [&str; 12] = [
    "group", "bunch", "pair", "couple", "crowd", "row", "herd", "flock", "lot", "lots", "number",
    "variety",
];

/// The most members that a list has as one phrase. The limit bounds the relations of two lists, one per pair of members.
const MOST_LISTED: usize = 32;

impl Walk<'_> {
    /// Reads a noun phrase from here on: chunks with `and`, `or` or commas between them, possessives, collectives.
    pub(super) fn noun_phrase(&mut self) -> Vec<usize> {
        let mut group = vec![self.member()];
        while group.len() < MOST_LISTED {
            let mut next = self.at;
            let comma = self.lower(next) == ",";
            next += usize::from(comma);
            let and = matches!(&self.lower(next)[..], "and" | "or" | "&");
            next += usize::from(and);
            let Some(chunk) = self.chunk_at(next) else { break };
            let apart = comma && and && self.tag(chunk.words.end) == Some(Tag::Verb);
            let listed = and || comma && self.list_ends_in_and(next);
            if !listed || apart || self.begins_clause(chunk) {
                break;
            }
            self.at = next;
            group.push(self.member());
        }
        group
    }

    /// Whether chunks and commas lead to an `and` with one more chunk.
    fn list_ends_in_and(&self, mut at: usize) -> bool {
        for _ in 0..MOST_LISTED {
            let Some(chunk) = self.chunk_at(at) else { break };
            at = chunk.words.end;
            let comma = self.lower(at) == ",";
            at += usize::from(comma);
            if matches!(&self.lower(at)[..], "and" | "or" | "&") {
                return self.chunk_at(at + 1).is_some();
            }
            if !comma {
                return false;
            }
        }
        false
    }

    /// Whether a chunk after `and` is the subject of a new clause: a finite verb follows, and this clause already has one.
    fn begins_clause(&self, chunk: &Chunk) -> bool {
        let finite = match self.tag(chunk.words.end) {
            Some(Tag::Auxiliary) => true,
            Some(Tag::Verb) => !self.lower(chunk.words.end).ends_with("ing") || self.verb.is_some(),
            _ => false,
        };
        finite && self.finite
    }

    /// Reads a chunk, or a collective with its members, and the possessions that follow. Returns the number of the last object: the bike
    /// in `a boy 's bike`.
    fn member(&mut self) -> usize {
        let mut object = self.single();
        while matches!(&self.lower(self.at)[..], "'s" | "’s" | "'")
            && self.chunk_at(self.at + 1).is_some()
        {
            self.at += 1;
            let (subject, name) = (object, "have".to_owned());
            object = self.single();
            self.relations.push(Relation { subject, name, object, words: vec![] });
        }
        object
    }

    /// Reads one chunk, or a collective with its members. Returns the number of its object.
    fn single(&mut self) -> usize {
        let chunk = self.chunk_at(self.at).expect("a chunk begins here");
        let of = self.chunk_at(chunk.words.end + 1);
        let collective = COLLECTIVES.contains(&&singular(&self.lower(chunk.nouns.end - 1))[..]);
        let (object, end) = match (collective, &self.lower(chunk.words.end)[..], of) {
            (true, "of", Some(members)) => {
                let object = self.object(members);
                self.attribute(object, chunk.nouns.clone().collect());
                self.modifiers(members, object);
                (object, members.words.end)
            }
            _ => (self.object(chunk), chunk.words.end),
        };
        self.modifiers(chunk, object);
        self.at = end;
        object
    }

    fn object(&mut self, chunk: &Chunk) -> usize {
        let name = self.words[chunk.nouns.end - 1].text.clone();
        self.objects.push(Object { name, words: chunk.nouns.clone().collect() });
        self.objects.len() - 1
    }

    fn modifiers(&mut self, chunk: &Chunk, object: usize) {
        for at in chunk.words.start..chunk.nouns.start {
            match self.words[at].tag {
                Tag::Noun => self.attribute(object, vec![at, at + 1]), // snow covered
                Tag::Adjective if at > chunk.words.start && self.tag(at - 1) == Some(Tag::Noun) => {
                }
                Tag::Adjective | Tag::Number => self.attribute(object, vec![at]),
                _ => {}
            }
        }
    }
}

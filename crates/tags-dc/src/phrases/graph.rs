//! Objects, attributes and relations of a tagged sentence with its chunks.
//!
//! One walk goes from left to right. It remembers who acts (`subject`), the last noun phrase (`left`), and the verb of the clause.

mod nouns;
mod prepositions;
mod verbs;

use super::{Attribute, Chunk, Object, Relation, Sentence, Tag, Word};

/// Reads the graph of a sentence.
pub(super) fn read(sentence: &mut Sentence) {
    let (words, chunks) = (&sentence.words[..], &sentence.chunks[..]);
    let mut walk = Walk { words, chunks, ..Walk::default() };
    walk.run();
    let Walk { objects, mut attributes, mut relations, .. } = walk;
    attributes.sort_by(|a, b| a.words.cmp(&b.words));
    relations.sort_by(|a, b| (&a.words, a.subject, a.object).cmp(&(&b.words, b.subject, b.object)));
    (sentence.objects, sentence.attributes, sentence.relations) = (objects, attributes, relations);
}

/// The verb of a clause.
#[derive(Clone)]
struct Verb {
    words: Vec<usize>,
    /// The objects that act.
    subjects: Vec<usize>,
    /// Whether a relation or an attribute already has the verb's words.
    used: bool,
}

#[derive(Default)]
struct Walk<'a> {
    words: &'a [Word],
    chunks: &'a [Chunk],
    objects: Vec<Object>,
    attributes: Vec<Attribute>,
    relations: Vec<Relation>,
    at: usize,
    /// Who acts in the clause.
    subject: Vec<usize>,
    /// The last noun phrase.
    left: Vec<usize>,
    verb: Option<Verb>,
    /// Whether the clause has a finite verb.
    finite: bool,
    /// Whether the clause has a form of `be` and no other verb.
    linked: bool,
}

impl<'a> Walk<'a> {
    fn tag(&self, at: usize) -> Option<Tag> {
        self.words.get(at).map(|word| word.tag)
    }

    fn lower(&self, at: usize) -> String {
        self.words.get(at).map_or(String::new(), |word| word.text.to_lowercase())
    }

    fn run(&mut self) {
        while self.at < self.words.len() {
            if self.chunk_at(self.at).is_some() {
                let group = self.noun_phrase();
                self.take_phrase(group);
            } else if let Some(length) = self.preposition(self.at) {
                self.take_preposition(length);
            } else {
                self.take_word();
            }
        }
        self.end_verb();
    }

    fn chunk_at(&self, at: usize) -> Option<&'a Chunk> {
        let found = self.chunks.binary_search_by_key(&at, |chunk| chunk.words.start);
        found.ok().map(|k| &self.chunks[k])
    }

    fn attribute(&mut self, object: usize, words: Vec<usize>) {
        let name = self.name(&words);
        self.attributes.push(Attribute { object, name, words });
    }

    fn name(&self, words: &[usize]) -> String {
        words.iter().map(|&at| self.words[at].text.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn relate(&mut self, subjects: &[usize], words: &[usize], objects: &[usize]) {
        let name = self.name(words);
        for &subject in subjects {
            for &object in objects.iter().filter(|&&object| object != subject) {
                let (name, words) = (name.clone(), words.to_vec());
                self.relations.push(Relation { subject, name, object, words });
            }
        }
    }

    /// Any other word.
    fn take_word(&mut self) {
        let at = self.at;
        match self.words[at].tag {
            Tag::Auxiliary => self.take_auxiliary(),
            Tag::Verb => self.take_verb(),
            Tag::Conjunction => self.take_conjunction(),
            Tag::Pronoun if matches!(&self.lower(at)[..], "who" | "which" | "that") => {
                self.begin_clause(); // a man who runs
                self.subject = self.left.clone();
            }
            Tag::Adjective => self.take_adjective(),
            Tag::Pronoun if self.verb_after(at + 1) => {
                self.begin_clause();
                self.subject.clear();
            }
            Tag::Pronoun => self.make_verb_an_attribute(),
            _ => {}
        }
        self.at += 1;
    }

    fn take_conjunction(&mut self) {
        let word = self.lower(self.at);
        let clause =
            matches!(self.tag(self.at + 1), Some(Tag::Verb | Tag::Auxiliary | Tag::Adverb));
        if !clause && self.chunk_at(self.at + 1).is_some()
            || matches!(&word[..], "while" | "as" | "when" | "because")
        {
            self.begin_clause(); // a new subject follows, or this one goes on
        }
    }

    /// Takes an adjective outside chunks. After `be` it describes the subject, elsewhere the last noun phrase.
    fn take_adjective(&mut self) {
        let of = if self.linked { self.subject.clone() } else { self.left.clone() };
        for object in of {
            self.attribute(object, vec![self.at]);
        }
    }
}

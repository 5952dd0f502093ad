//! Objects, attributes and relations of a tagged sentence with its chunks.
//!
//! One walk from left to right. It remembers who acts (`subject`), the noun phrase just left (`left`), and the verb of the clause.

use super::lexicon::LEXICON;
use super::{Attribute, Chunk, Object, Relation, Sentence, Tag, Word};
use crate::inflect::singular;

/// Nouns of which `X of Y` is a `Y`.
const COLLECTIVES: [&str; 12] = [
    "group", "bunch", "pair", "couple", "crowd", "row", "herd", "flock", "lot", "lots", "number",
    "variety",
];

/// Prepositions of several words; the longest first.
const MULTI_WORD: [&[&str]; 18] = [
    &["on", "the", "other", "side", "of"],
    &["on", "the", "side", "of"],
    &["in", "the", "middle", "of"],
    &["at", "the", "edge", "of"],
    &["on", "the", "edge", "of"],
    &["in", "front", "of"],
    &["on", "top", "of"],
    &["in", "back", "of"],
    &["in", "between"],
    &["because", "of"],
    &["along", "with"],
    &["next", "to"],
    &["close", "to"],
    &["out", "of"],
    &["outside", "of"],
    &["inside", "of"],
    &["off", "of"],
    &["instead", "of"],
];

/// Most members of a list that are read as one phrase: the relations of two lists are their product.
const MOST_LISTED: usize = 32;

/// Verbs that lead to an adjective.
const LINKING: [&str; 9] =
    ["look", "looks", "looking", "seem", "seems", "appear", "appears", "looked", "seemed"];

/// Reads the graph off.
pub(super) fn read(sentence: &mut Sentence) {
    let mut walk = Walk::new(&sentence.words, &sentence.chunks);
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
    /// Who does it.
    subjects: Vec<usize>,
    /// Whether a relation has taken its words.
    used: bool,
}

struct Walk<'a> {
    words: &'a [Word],
    chunks: &'a [Chunk],
    objects: Vec<Object>,
    attributes: Vec<Attribute>,
    relations: Vec<Relation>,
    at: usize,
    /// Who acts in the clause.
    subject: Vec<usize>,
    /// The noun phrase just left.
    left: Vec<usize>,
    verb: Option<Verb>,
    /// Whether the clause has a finite verb.
    finite: bool,
    /// Whether the clause has a form of `be` and no other verb.
    linked: bool,
}

impl<'a> Walk<'a> {
    fn new(words: &'a [Word], chunks: &'a [Chunk]) -> Self {
        let (objects, attributes, relations) = (vec![], vec![], vec![]);
        let (subject, left) = (vec![], vec![]);
        Self {
            words,
            chunks,
            objects,
            attributes,
            relations,
            at: 0,
            subject,
            left,
            verb: None,
            finite: false,
            linked: false,
        }
    }

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

    /// A noun phrase from here on: chunks with `and`, `or` or commas between them, possessives, collectives.
    fn noun_phrase(&mut self) -> Vec<usize> {
        let mut group = vec![self.member()];
        while group.len() < MOST_LISTED {
            let mut next = self.at;
            let comma = self.lower(next) == ",";
            next += usize::from(comma);
            let and = matches!(&self.lower(next)[..], "and" | "or" | "&");
            next += usize::from(and);
            let apart =
                |chunk: &Chunk| comma && and && self.tag(chunk.words.end) == Some(Tag::Verb);
            let goes_on = (and || comma && self.list_ends_in_and(next))
                && self
                    .chunk_at(next)
                    .is_some_and(|chunk| !self.begins_clause(chunk) && !apart(chunk));
            if !goes_on {
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

    /// Whether a chunk after `and` is the subject of a clause of its own: a finite verb follows, and this clause has one.
    fn begins_clause(&self, chunk: &Chunk) -> bool {
        let finite = match self.tag(chunk.words.end) {
            Some(Tag::Auxiliary) => true,
            Some(Tag::Verb) => !self.lower(chunk.words.end).ends_with("ing") || self.verb.is_some(),
            _ => false,
        };
        finite && self.finite
    }

    /// One chunk with its attributes, what it possesses, or what it is a collective of: the number of its object.
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

    /// One chunk, or a collective with its members.
    fn single(&mut self) -> usize {
        let chunk = self.chunk_at(self.at).expect("it was looked for");
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

    fn attribute(&mut self, object: usize, words: Vec<usize>) {
        let name = self.name(&words);
        self.attributes.push(Attribute { object, name, words });
    }

    fn name(&self, words: &[usize]) -> String {
        words.iter().map(|&at| self.words[at].text.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// A noun phrase that no preposition leads in: what the verb acts on, or who acts.
    fn take_phrase(&mut self, group: Vec<usize>) {
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

    fn begin_clause(&mut self) {
        self.end_verb();
        (self.finite, self.linked) = (false, false);
    }

    /// A verb that nothing followed says something of its subject.
    fn end_verb(&mut self) {
        if let Some(verb) = self.verb.take()
            && !verb.used
        {
            for &subject in &verb.subjects {
                self.attribute(subject, verb.words.clone());
            }
        }
    }

    fn mark_used(&mut self) {
        if let Some(verb) = &mut self.verb {
            verb.used = true;
        }
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

    /// Words of a preposition here, if there is one.
    fn preposition(&self, at: usize) -> Option<usize> {
        let matches = |of: &&&[&str]| of.iter().enumerate().all(|(k, w)| self.lower(at + k) == *w);
        let length = MULTI_WORD.iter().find(matches).map(|of| of.len());
        length.or((self.tag(at) == Some(Tag::Preposition)).then_some(1))
    }

    fn take_preposition(&mut self, length: usize) {
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
            Tag::Pronoun => self.mark_used_by_pronoun(),
            _ => {}
        }
        self.at += 1;
    }

    fn verb_after(&self, at: usize) -> bool {
        matches!(self.tag(at), Some(Tag::Auxiliary | Tag::Verb))
    }

    /// `hit it`: the verb has its object, which is none of the objects.
    fn mark_used_by_pronoun(&mut self) {
        if let Some(verb) = self.verb.as_mut().filter(|verb| !verb.used) {
            verb.used = true;
            let verb = verb.clone();
            for &subject in &verb.subjects {
                self.attribute(subject, verb.words.clone());
            }
        }
    }

    fn take_auxiliary(&mut self) {
        if self.finite && self.verb.is_some() {
            self.begin_clause();
        }
        (self.finite, self.linked) = (true, true);
    }

    /// A verb with its particles; whose, depends on what came before.
    fn take_verb(&mut self) {
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

    /// Who does the verb at `at`: the noun that a participle follows, if it can act or no better subject is there; else the subject.
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

    fn take_conjunction(&mut self) {
        let word = self.lower(self.at);
        let clause =
            matches!(self.tag(self.at + 1), Some(Tag::Verb | Tag::Auxiliary | Tag::Adverb));
        if !clause && self.chunk_at(self.at + 1).is_some()
            || matches!(&word[..], "while" | "as" | "when" | "because")
        {
            self.begin_clause(); // its own subject comes, or this one goes on
        }
    }

    /// An adjective outside of chunks: of the subject after `be`, of the noun before elsewhere.
    fn take_adjective(&mut self) {
        let of = if self.linked { self.subject.clone() } else { self.left.clone() };
        for object in of {
            self.attribute(object, vec![self.at]);
        }
    }
}

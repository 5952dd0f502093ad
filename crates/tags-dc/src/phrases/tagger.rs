//! Tags: what each word does, by the lexicon, by endings, and by its neighbours.

use super::Tag;
use super::lexicon::LEXICON;
use crate::inflect::{VerbForm, singular};

/// The tags of the words of a sentence.
pub(super) fn tags(words: &[String]) -> Vec<Tag> {
    let mut tagger = Tagger { words, tags: Vec::with_capacity(words.len()) };
    for at in 0..words.len() {
        let tag = tagger.tag(at);
        tagger.tags.push(tag);
    }
    tagger.tags
}

struct Tagger<'a> {
    /// In lower case.
    words: &'a [String],
    /// Of the words so far.
    tags: Vec<Tag>,
}

/// What an open word can be.
#[derive(Clone, Copy)]
struct Can {
    noun: bool,
    adjective: bool,
    verb: Option<VerbForm>,
}

fn can(word: &str) -> Can {
    let verb = LEXICON.verb(word).map(|(_, form)| form);
    let known = Can { noun: LEXICON.noun(word), adjective: LEXICON.adjective(word), verb };
    if known.noun || known.adjective || verb.is_some() {
        return known;
    }
    let ends =
        |ends: &[&str]| ends.iter().any(|end| word.len() > end.len() + 2 && word.ends_with(end));
    let hyphen = word.contains('-');
    if hyphen && ends(&["ed", "ing", "old", "colored", "like", "foot", "style"]) {
        Can { adjective: true, ..known }
    } else if ends(&["ing"]) {
        Can { verb: Some(VerbForm::Ing), ..known }
    } else if ends(&["ed"]) {
        Can { verb: Some(VerbForm::Past), ..known }
    } else if ends(&["ous", "ful", "ive", "able", "ible", "less", "ish", "ese"]) {
        Can { adjective: true, ..known }
    } else if ends(&["y", "al", "ic", "ern"]) {
        Can { noun: true, adjective: true, ..known }
    } else {
        // a verb that the lexicon does not know: `frolics`
        let third = ends(&["s"]) && !ends(&["ss", "us"]);
        Can { noun: true, verb: third.then_some(VerbForm::Third), ..known }
    }
}

impl Tagger<'_> {
    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    fn before(&self) -> Option<Tag> {
        self.tags.last().copied()
    }

    /// The last tag but adverbs.
    fn governor(&self) -> Option<Tag> {
        self.tags.iter().rev().find(|&&tag| tag != Tag::Adverb).copied()
    }

    fn tag(&self, at: usize) -> Tag {
        let word = self.word(at);
        if word.chars().all(|c| !c.is_alphanumeric()) && word != "&" {
            return Tag::Punctuation;
        }
        if matches!(word, "'s" | "’s") {
            return self.apostrophe(at);
        }
        if word.chars().all(|c| c.is_ascii_digit() || ".,".contains(c)) {
            return Tag::Number;
        }
        match LEXICON.closed(word) {
            Some(tag) => self.closed(at, tag),
            None => self.open(at),
        }
    }

    /// `'s` is a possessive between a noun and a noun, `is` elsewhere.
    fn apostrophe(&self, at: usize) -> Tag {
        let next = can(self.word(at + 1));
        let possessed = next.noun || next.adjective;
        let pronoun = self.before() == Some(Tag::Pronoun);
        if !pronoun && possessed && LEXICON.closed(self.word(at + 1)).is_none() {
            Tag::Particle
        } else {
            Tag::Auxiliary
        }
    }

    /// Whether a noun chunk may begin at a word.
    fn begins_chunk(&self, at: usize) -> bool {
        let word = self.word(at);
        match LEXICON.closed(word) {
            Some(tag) => {
                matches!(tag, Tag::Determiner | Tag::Possessive | Tag::Number | Tag::Pronoun)
            }
            None if word.chars().all(|c| !c.is_alphanumeric()) => false,
            None => {
                let can = can(word);
                can.noun || can.adjective || can.verb.is_some_and(|form| form != VerbForm::Third)
            }
        }
    }

    fn closed(&self, at: usize, tag: Tag) -> Tag {
        let (word, next) = (self.word(at), self.word(at + 1));
        let after = can(next);
        match (word, tag) {
            ("to", _)
                if after.verb == Some(VerbForm::Base) && !(after.noun && self.nominal(at + 1)) =>
            {
                Tag::Particle
            }
            ("her", _) if !self.begins_chunk(at + 1) => Tag::Pronoun,
            ("that", _) if matches!(self.before(), Some(Tag::Noun | Tag::Pronoun)) => Tag::Pronoun,
            ("that" | "this" | "these" | "those", _) if !self.begins_chunk(at + 1) => Tag::Pronoun,
            ("like", _) if matches!(self.before(), Some(Tag::Particle)) => Tag::Verb,
            ("high" | "low" | "fast" | "hard" | "close" | "straight", _) if self.describes(at) => {
                Tag::Adjective
            }
            ("back", _)
                if matches!(
                    self.before(),
                    Some(Tag::Determiner | Tag::Possessive | Tag::Preposition)
                ) =>
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
                let chunk = self.begins_chunk(at + 1) && !self.ends_clause(at + 1);
                let phrase = next == "of"
                    || LEXICON.closed(next) == Some(Tag::Preposition)
                        && self.before() != Some(Tag::Noun);
                if matches!(self.before(), Some(Tag::Determiner)) && self.chunk_goes_on(at + 1) {
                    Tag::Adjective // the inside wall
                } else if chunk || phrase {
                    Tag::Preposition
                } else if LEXICON.particle(word) && self.governor() == Some(Tag::Verb) {
                    Tag::Particle
                } else {
                    Tag::Adverb
                }
            }
            ("but" | "so" | "as" | "than" | "while" | "and" | "or", _) => Tag::Conjunction,
            ("all" | "both" | "each", _) if self.acts_next(at) => Tag::Adverb, // are all standing
            ("can", _)
                if matches!(self.before(), Some(Tag::Determiner | Tag::Noun | Tag::Adjective))
                    && !self.infinitive(at + 1) =>
            {
                Tag::Noun
            }
            _ => tag,
        }
    }

    /// Whether the word stands between a noun or `be` and a verb.
    fn acts_next(&self, at: usize) -> bool {
        let next = self.word(at + 1);
        let verb = matches!(can(next).verb, Some(VerbForm::Ing | VerbForm::Past));
        matches!(self.before(), Some(Tag::Auxiliary | Tag::Noun))
            && (verb || LEXICON.closed(next) == Some(Tag::Preposition))
    }

    /// Whether a bare verb follows, after adverbs.
    fn infinitive(&self, at: usize) -> bool {
        let at =
            (at..self.words.len()).find(|&k| LEXICON.closed(self.word(k)) != Some(Tag::Adverb));
        at.is_some_and(|at| {
            self.word(at) == "be" || can(self.word(at)).verb == Some(VerbForm::Base)
        })
    }

    /// Whether a word that can be a noun or a verb is a noun after `to`: nothing that a verb would act on follows.
    fn nominal(&self, at: usize) -> bool {
        matches!(self.word(at), "work" | "school" | "water" | "land" | "shore" | "side" | "front")
    }

    /// Whether the next word cannot belong to a chunk.
    fn ends_clause(&self, at: usize) -> bool {
        at >= self.words.len()
    }

    /// Whether the word stands before a noun, after something that begins a chunk.
    fn describes(&self, at: usize) -> bool {
        self.chunk_goes_on(at + 1)
            && !matches!(self.before(), Some(Tag::Verb | Tag::Noun | Tag::Pronoun))
    }

    /// Whether the words from here can end a noun chunk: adjectives and then a noun.
    fn chunk_goes_on(&self, at: usize) -> bool {
        let word = self.word(at);
        if word.is_empty() || LEXICON.closed(word).is_some() {
            return false;
        }
        let can = can(word);
        let letters = word.chars().any(char::is_alphanumeric);
        letters
            && (can.noun || can.adjective || (can.verb.is_some() && self.participle_then_noun(at)))
    }

    fn participle_then_noun(&self, at: usize) -> bool {
        let can_be = can(self.word(at)).verb;
        matches!(can_be, Some(VerbForm::Ing | VerbForm::Past)) && can(self.word(at + 1)).noun
    }

    fn open(&self, at: usize) -> Tag {
        let word = self.word(at);
        let can = can(word);
        if word.ends_with("ly") && word.len() > 4 && !can.noun && !can.adjective
            || word.ends_with("ly")
                && LEXICON.closed(word).is_none()
                && !LEXICON.noun(word)
                && !LEXICON.adjective(word)
                && word.len() > 4
        {
            return Tag::Adverb;
        }
        match can.verb {
            Some(VerbForm::Ing) => self.ing(at, can),
            Some(VerbForm::Past) => self.past(at, can),
            Some(form) => self.finite(at, can, form),
            None if can.adjective => self.adjective(at, can),
            None => Tag::Noun,
        }
    }

    /// Whether the word stands where a chunk has begun and is not ended.
    fn in_chunk(&self) -> bool {
        matches!(
            self.before(),
            Some(Tag::Determiner | Tag::Possessive | Tag::Number | Tag::Adjective)
        ) || self.before() == Some(Tag::Particle) && self.after_possessive()
    }

    fn after_possessive(&self) -> bool {
        self.tags.len().checked_sub(1).is_some_and(|at| matches!(self.word(at), "'s" | "’s" | "'"))
    }

    fn ing(&self, at: usize, can: Can) -> Tag {
        let modifies = self.chunk_goes_on(at + 1);
        if self.in_chunk() {
            return match modifies {
                true if can.noun && !can.adjective => Tag::Noun,
                true => Tag::Adjective,
                false if can.adjective => Tag::Adjective,
                false => Tag::Noun,
            };
        }
        let follows = LEXICON.closed(self.word(at + 1));
        if can.noun && follows != Some(Tag::Determiner) && follows != Some(Tag::Possessive) {
            let noun = matches!(self.before(), None | Some(Tag::Noun | Tag::Preposition));
            if noun && !modifies && self.governor() != Some(Tag::Auxiliary) {
                return if self.before() == Some(Tag::Noun)
                    && !self.word(at - 1).ends_with("ing")
                    && self.last_is_animate()
                {
                    Tag::Verb
                } else {
                    Tag::Noun
                };
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

    fn last_is_animate(&self) -> bool {
        self.tags.len().checked_sub(1).is_some_and(|at| LEXICON.animate(self.word(at)))
    }

    fn past(&self, at: usize, can: Can) -> Tag {
        let modifies = self.chunk_goes_on(at + 1);
        let be = self.governor() == Some(Tag::Auxiliary);
        if self.in_chunk()
            && (modifies || LEXICON.closed(self.word(at + 1)) == Some(Tag::Conjunction))
            && !be
        {
            return Tag::Adjective;
        }
        let listed = matches!(self.before(), Some(Tag::Punctuation | Tag::Conjunction))
            && self.tags.iter().rev().nth(1) == Some(&Tag::Adjective);
        if listed && modifies {
            return Tag::Adjective; // a yellow, striped shirt
        }
        if can.noun && (self.in_chunk() || self.before() == Some(Tag::Preposition)) {
            return Tag::Noun; // the cut, the left
        }
        let brightly = self.before() == Some(Tag::Adverb)
            && !matches!(
                self.tags.iter().rev().nth(1),
                Some(Tag::Noun | Tag::Pronoun | Tag::Auxiliary | Tag::Verb)
            );
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

    /// Whether the noun before stands in a chunk that a determiner or a preposition began right before it, and the noun after this
    /// word has no determiner: `a snow covered hill`, not `a dog jumped over`.
    fn chunk_is_open(&self, at: usize) -> bool {
        let noun = at.checked_sub(1).map(|k| self.word(k));
        let next = self.word(at + 1);
        let mass = ["snow", "tree", "grass", "ice", "leaf", "sand", "water", "cloud", "graffiti"];
        noun.is_some_and(|noun| mass.contains(&&singular(noun)[..])) && can(next).noun
    }

    /// A word that can be a present verb.
    fn finite(&self, at: usize, can: Can, form: VerbForm) -> Tag {
        let other = can.noun || can.adjective;
        let next = self.word(at + 1);
        let not_verb = || {
            if can.adjective { self.adjective(at, can) } else { Tag::Noun }
        };
        if matches!(self.before(), Some(Tag::Particle)) && self.word(at.wrapping_sub(1)) == "to" {
            return Tag::Verb;
        }
        if form == VerbForm::Base && self.governor() == Some(Tag::Auxiliary) {
            let be = self.tags.iter().rposition(|&tag| tag == Tag::Auxiliary);
            let modal = be.is_some_and(|k| {
                !matches!(
                    self.word(k),
                    "is" | "are" | "was" | "were" | "be" | "being" | "been" | "am" | "'s"
                )
            });
            return if modal || !other { Tag::Verb } else { not_verb() };
        }
        if !other {
            let noun = form == VerbForm::Base && self.before() == Some(Tag::Preposition);
            return if noun { Tag::Noun } else { Tag::Verb }; // in motion
        }
        if self.in_chunk() || matches!(self.before(), Some(Tag::Preposition | Tag::Auxiliary)) {
            return not_verb();
        }
        if LEXICON.noun(self.word(at)) && can_of(next).verb == Some(VerbForm::Ing) {
            return not_verb(); // dirt bikes jumping
        }
        let verbs_object = LEXICON.closed(next).is_some_and(|tag| {
            matches!(
                tag,
                Tag::Determiner
                    | Tag::Possessive
                    | Tag::Preposition
                    | Tag::Pronoun
                    | Tag::Adverb
                    | Tag::Number
            )
        });
        let subject = self.before() == Some(Tag::Noun);
        let plural = self.tags.len().checked_sub(1).is_some_and(|k| {
            let noun = self.word(k);
            noun == "people"
                || singular(noun) != noun
                || noun == "sheep"
                || noun == "couple"
                || noun == "group"
                || self.coordinated()
        });
        if subject && form == VerbForm::Base && verbs_object && self.lets() {
            return Tag::Verb; // helps a boy ride a bike
        }
        let agrees = match form {
            VerbForm::Third => !plural || self.coordinated(),
            _ => plural || self.before() == Some(Tag::Pronoun),
        };
        let free = !self.clause_has_verb();
        match self.before() {
            Some(Tag::Noun | Tag::Pronoun) if subject && form == VerbForm::Third && agrees => {
                if free || verbs_object {
                    Tag::Verb
                } else {
                    not_verb()
                }
            }
            Some(Tag::Noun | Tag::Pronoun) if agrees && (free || verbs_object) => Tag::Verb,
            Some(Tag::Pronoun) => Tag::Verb,
            Some(Tag::Conjunction | Tag::Adverb) if form == VerbForm::Third && verbs_object => {
                Tag::Verb
            }
            Some(Tag::Adverb) if free && agrees => Tag::Verb,
            _ => not_verb(),
        }
    }

    /// Whether the last verb takes another one without `to`.
    fn lets(&self) -> bool {
        let verb = self.tags.iter().rposition(|&tag| tag == Tag::Verb);
        let lemma = verb.and_then(|k| LEXICON.verb(self.word(k)));
        lemma.is_some_and(|(lemma, _)| {
            matches!(&lemma[..], "help" | "watch" | "make" | "let" | "see")
        })
    }

    /// Whether two nouns with `and` between them stand before.
    fn coordinated(&self) -> bool {
        let back = self.tags.iter().rev().skip(1).take(4);
        back.zip((0..self.tags.len().saturating_sub(1)).rev())
            .take_while(|(tag, _)| !matches!(tag, Tag::Verb | Tag::Preposition))
            .any(|(tag, k)| *tag == Tag::Conjunction && self.word(k) == "and")
    }

    /// Whether a finite verb stands in the clause so far.
    fn clause_has_verb(&self) -> bool {
        let start = self.tags.iter().rposition(|&tag| tag == Tag::Conjunction).map_or(0, |k| k + 1);
        let verb = |k: usize| match self.tags[k] {
            Tag::Auxiliary => true,
            Tag::Verb => !self.word(k).ends_with("ing"),
            _ => false,
        };
        (start..self.tags.len()).any(verb)
    }

    fn adjective(&self, at: usize, can: Can) -> Tag {
        if !can.noun {
            return Tag::Adjective;
        }
        if self.before() == Some(Tag::Auxiliary) {
            return Tag::Adjective;
        }
        let next = self.word(at + 1);
        let conjunction = matches!(next, "and" | "or" | ",") && {
            let after = can_of(self.word(at + 2));
            after.adjective
                && self.chunk_goes_on(at + 2)
                && LEXICON.closed(self.word(at + 3)).is_none()
                && self.chunk_goes_on(at + 3)
        };
        if self.chunk_goes_on(at + 1) && !self.verb_follows(at + 1) || conjunction {
            Tag::Adjective
        } else {
            Tag::Noun
        }
    }

    /// Whether the word at `at` is more likely the verb of the one before it: `an adult plays outside`, `a man in red sits down`.
    fn verb_follows(&self, at: usize) -> bool {
        let noun = at
            .checked_sub(1)
            .is_some_and(|k| LEXICON.animate(self.word(k)) || k > 0 && self.word(k - 1) == "in");
        noun && can(self.word(at)).verb == Some(VerbForm::Third) && self.acts_on(at + 1)
    }

    /// Whether what stands here can follow a verb: the end, a determiner, a preposition, an adverb.
    fn acts_on(&self, at: usize) -> bool {
        let word = self.word(at);
        let open = word.chars().any(char::is_alphanumeric);
        !open || LEXICON.closed(word).is_some_and(|tag| tag != Tag::Conjunction)
    }
}

fn can_of(word: &str) -> Can {
    can(word)
}

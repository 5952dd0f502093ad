//! Reads a caption back into what it means, word by word: the inverse of the grammar.

use super::grammar::{Claim, Meaning, Phrase};
use super::layout::Relation;
use super::lexicon::{self, COUNTS, PICTURES, THINGS, VERBS, words};
use super::world::{Background, Colour, Kind, Pattern, Size};

/// What a word does in a caption. A phrase is named by its place in the claim (0, 1, 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Holds the sentence together: the, of, is, sits, there, picture.
    Function,
    /// Names an object; `None` for "thing" and "object".
    Kind(usize, Option<Kind>),
    /// Says an object's colour.
    Colour(usize, Colour),
    /// Says an object's size.
    Size(usize, Size),
    /// Says an object's pattern.
    Pattern(usize, Pattern),
    /// Says how many.
    Count,
    /// Says how two objects are placed.
    Relation,
    /// Says where the scene is.
    Place,
}

/// A parsed caption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedCaption {
    /// What it asserts.
    pub meaning: Meaning,
    /// What each of its [`words`] does.
    pub roles: Vec<Role>,
}

/// The meaning of a caption; `None` if it is no sentence of the grammar.
///
/// `parse(&render(m)) == Some(m)` for every meaning and every choice of words. Grammatical number and articles are not
/// checked, so that edited sentences ("a umbrella") keep their meaning. A contradiction within one object ("a red blue
/// ball") gives `None`.
pub fn parse(text: &str) -> Option<Meaning> {
    analyse(text).map(|parsed| parsed.meaning)
}

/// The meaning of a caption with the role of each word.
///
/// ```
/// use scenes::{Colour, Kind, Role, analyse};
///
/// let parsed = analyse("There is a red ball.").expect("a sentence of the grammar");
/// assert_eq!(parsed.roles[3..], [Role::Colour(0, Colour::Red), Role::Kind(0, Some(Kind::Ball))]);
/// assert_eq!(analyse("There is ball a red."), None);
/// ```
pub fn analyse(text: &str) -> Option<ParsedCaption> {
    let words = words(text);
    let mut roles = vec![Role::Function; words.len()];
    let place = find_place(&words);
    let mut rest = Vec::with_capacity(words.len());
    for (i, word) in words.iter().enumerate() {
        match &place {
            Some((_, span)) if span.contains(&i) => {
                if !lexicon::is_function(word) {
                    roles[i] = Role::Place;
                }
            }
            _ => rest.push((i, word.as_str())),
        }
    }
    let mut reader = WordCursor { words: &rest, at: 0, roles, phrases: 0 };
    let claim = reader.claim(place.is_some())?;
    let meaning = Meaning { claim, place: place.map(|(b, _)| b) };
    (reader.at == rest.len()).then_some(ParsedCaption { meaning, roles: reader.roles })
}

/// The longest place phrase, anywhere in the caption.
fn find_place(words: &[String]) -> Option<(Background, std::ops::Range<usize>)> {
    let mut best: Option<(Background, std::ops::Range<usize>)> = None;
    for &background in Background::ALL {
        for phrase in lexicon::places(background) {
            let n = phrase.split(' ').count();
            let found =
                words.windows(n).position(|w| w.iter().zip(phrase.split(' ')).all(|(a, b)| a == b));
            if let Some(at) = found.filter(|_| best.as_ref().is_none_or(|(_, b)| b.len() < n)) {
                best = Some((background, at..at + n));
            }
        }
    }
    best
}

/// A cursor over the words outside the place phrase, each with its position in the caption.
struct WordCursor<'a> {
    words: &'a [(usize, &'a str)],
    at: usize,
    roles: Vec<Role>,
    phrases: usize,
}

impl WordCursor<'_> {
    fn claim(&mut self, has_place: bool) -> Option<Claim> {
        let nothing_but_a_place = self.all("the scene is") || self.lead(&["a", "an"], "taken");
        if nothing_but_a_place && self.done() {
            return has_place.then_some(Claim::Place);
        }
        self.at = 0;
        self.skip_lead_in();
        if let Some(count) = self.count() {
            let phrase = self.noun_phrase()?;
            return Some(Claim::Count(count, phrase));
        }
        if let Some(relation) = self.relation() {
            // "Next to a cup there is a ball": the second phrase of the claim comes first.
            self.phrases = 1;
            let second = self.article_phrase()?;
            self.one(&["there"]);
            self.one(VERBS)?;
            self.phrases = 0;
            return Some(Claim::Related(self.article_phrase()?, relation, second));
        }
        self.objects()
    }

    /// One object and what follows it.
    fn objects(&mut self) -> Option<Claim> {
        let both = self.one(&["both"]).is_some();
        let mut first = self.article_phrase()?;
        if self.done() {
            return (!both).then(|| Claim::Exist(vec![first]));
        }
        let before = self.at;
        let that = self.one(&["that"]).is_some();
        if self.one(&["is"]).is_some() && self.adjectives(&mut first) {
            return Some(Claim::Exist(vec![first]));
        }
        if that {
            return None;
        }
        self.at = before;
        let verb = self.one(VERBS).is_some();
        if let Some(relation) = self.relation() {
            let second = self.article_phrase()?;
            return Some(Claim::Related(first, relation, second));
        }
        if verb {
            return None;
        }
        let mut listed = vec![first];
        while !self.done() && listed.len() < 3 {
            if self.one(&["are"]).is_some() {
                return (both && listed.len() == 2 && self.done()).then_some(Claim::Exist(listed));
            }
            self.one(&["and", "with"]);
            listed.push(self.article_phrase()?);
        }
        (!both || listed.len() == 2).then_some(Claim::Exist(listed))
    }

    fn skip_lead_in(&mut self) {
        const LEADS: [&str; 6] =
            ["there is", "there are", "here is", "here are", "we see", "you can see"];
        _ = LEADS.iter().any(|lead| self.all(lead))
            || self.lead(&["the", "this"], "shows")
            || self.lead(&["a", "an", "the"], "of");
    }

    /// Reads an article of the list, a word for the picture and the word `then`, or nothing.
    fn lead(&mut self, articles: &[&str], then: &str) -> bool {
        let start = self.at;
        let found = [articles, PICTURES, &[then]].into_iter().all(|any| self.one(any).is_some());
        if !found {
            self.at = start;
        }
        found
    }

    fn count(&mut self) -> Option<u8> {
        let at = self.at;
        if self.all("a pair of") {
            self.mark(at + 1, Role::Count);
            return Some(2);
        }
        let (_, count) = COUNTS.into_iter().find(|(word, _)| self.peek() == Some(word))?;
        self.mark(self.at, Role::Count);
        self.at += 1;
        Some(count)
    }

    fn relation(&mut self) -> Option<Relation> {
        let phrases = Relation::ALL
            .iter()
            .flat_map(|&r| lexicon::relations(r).iter().map(move |phrase| (r, *phrase)));
        let found = phrases.filter(|(_, p)| self.fits(p)).max_by_key(|(_, p)| p.len());
        let (relation, phrase) = found?;
        for word in phrase.split(' ') {
            if !lexicon::is_function(word) {
                self.mark(self.at, Role::Relation);
            }
            self.at += 1;
        }
        Some(relation)
    }

    fn article_phrase(&mut self) -> Option<Phrase> {
        self.one(&["a", "an", "the"])?;
        self.noun_phrase()
    }

    /// Adjectives, a noun and perhaps "with dots".
    fn noun_phrase(&mut self) -> Option<Phrase> {
        let index = self.phrases;
        self.phrases += 1;
        let mut phrase = Phrase::default();
        while self.adjective(&mut phrase, index)? {}
        phrase.kind = self.noun(index)?;
        let next = self.words.get(self.at + 1).map(|(_, w)| *w);
        let trimming = next.and_then(trimming).filter(|_| self.peek() == Some("with"));
        if let Some(pattern) = trimming {
            self.mark(self.at + 1, Role::Pattern(index, pattern));
            self.at += 2;
            set(&mut phrase.pattern, pattern)?;
        }
        Some(phrase)
    }

    /// `Some(None)` for "thing" and "object".
    fn noun(&mut self, index: usize) -> Option<Option<Kind>> {
        let word = self.peek()?;
        let is =
            |names: &[(&str, &str)]| names.iter().any(|(one, many)| word == *one || word == *many);
        let kind = Kind::ALL.iter().copied().find(|&k| is(lexicon::nouns(k)));
        if kind.is_none() && !is(THINGS) {
            return None;
        }
        self.mark(self.at, Role::Kind(index, kind));
        self.at += 1;
        Some(kind)
    }

    /// Reads one adjective into the phrase; `None` if the phrase already has an adjective of that sort.
    fn adjective(&mut self, phrase: &mut Phrase, index: usize) -> Option<bool> {
        let Some(word) = self.peek() else { return Some(false) };
        let role = if let Some(colour) = meant(Colour::ALL, lexicon::colours, word) {
            set(&mut phrase.colour, colour)?;
            Role::Colour(index, colour)
        } else if let Some(size) = meant(Size::ALL, lexicon::sizes, word) {
            set(&mut phrase.size, size)?;
            Role::Size(index, size)
        } else if let Some(pattern) = meant(Pattern::ALL, lexicon::patterns, word) {
            set(&mut phrase.pattern, pattern)?;
            Role::Pattern(index, pattern)
        } else {
            return Some(false);
        };
        self.mark(self.at, role);
        self.at += 1;
        Some(true)
    }

    /// Reads one or more adjectives of the first phrase up to the end, with "and" between them.
    fn adjectives(&mut self, phrase: &mut Phrase) -> bool {
        self.adjective(phrase, 0) == Some(true)
            && (self.done() || self.one(&["and"]).is_some() && self.adjectives(phrase))
    }

    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(|(_, w)| *w)
    }

    fn done(&self) -> bool {
        self.at == self.words.len()
    }

    fn one(&mut self, any: &[&str]) -> Option<()> {
        let found = self.peek().is_some_and(|w| any.contains(&w));
        self.at += found as usize;
        found.then_some(())
    }

    /// Reads all words of a phrase, or none.
    fn all(&mut self, phrase: &str) -> bool {
        let found = self.fits(phrase);
        if found {
            self.at += phrase.split(' ').count();
        }
        found
    }

    /// Whether the next words are the phrase.
    fn fits(&self, phrase: &str) -> bool {
        let mut rest = self.words[self.at..].iter();
        phrase.split(' ').all(|w| rest.next().is_some_and(|(_, word)| *word == w))
    }

    fn mark(&mut self, at: usize, role: Role) {
        self.roles[self.words[at].0] = role;
    }
}

fn meant<T: Copy>(all: &[T], names: fn(T) -> &'static [&'static str], word: &str) -> Option<T> {
    all.iter().copied().find(|&t| names(t).contains(&word))
}

fn trimming(word: &str) -> Option<Pattern> {
    meant(Pattern::ALL, lexicon::trimmings, word)
}

fn set<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

#[cfg(test)]
mod tests;

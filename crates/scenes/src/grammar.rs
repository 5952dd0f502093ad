//! The meaning of a caption and its sentences: sentence forms, synonyms, articles.

use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use serde::{Deserialize, Serialize};

use super::layout::Relation;
use super::lexicon::{self, COUNTS, PICTURES, THINGS, VERBS};
use super::world::{Background, Colour, Kind, Object, Pattern, Size, closed};

/// What a caption says of one object; a field that is `None` says nothing.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Phrase {
    /// What it is; `None` is a "thing" or an "object".
    pub kind: Option<Kind>,
    /// Its colour.
    pub colour: Option<Colour>,
    /// Its size.
    pub size: Option<Size>,
    /// Its pattern.
    pub pattern: Option<Pattern>,
}

/// The part of a meaning that speaks of objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// No claim about objects: the caption names only the place.
    Place,
    /// One to three different objects are there.
    Exist(Vec<Phrase>),
    /// Two different objects are there, and the first has this relation to the second.
    Related(Phrase, Relation, Phrase),
    /// Exactly this number of objects (two to four) fits the phrase.
    Count(u8, Phrase),
}

/// All that a caption asserts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Meaning {
    /// What it says about objects.
    pub claim: Claim,
    /// The place, if it names one; a [`Claim::Place`] always does.
    pub place: Option<Background>,
}

impl Phrase {
    /// The phrase that says these attributes of an object.
    pub(crate) fn of(object: &Object, [kind, colour, size, pattern]: [bool; 4]) -> Self {
        Self {
            kind: kind.then_some(object.kind),
            colour: colour.then_some(object.colour),
            size: size.then_some(object.size),
            pattern: pattern.then_some(object.pattern),
        }
    }

    /// Whether the object is as the phrase says.
    pub(crate) fn fits(&self, object: &Object) -> bool {
        self.kind.is_none_or(|k| k == object.kind)
            && self.colour.is_none_or(|c| c == object.colour)
            && self.size.is_none_or(|s| s == object.size)
            && self.pattern.is_none_or(|p| p == object.pattern)
    }

    /// Whether it says size, colour and pattern.
    fn says(&self) -> [bool; 3] {
        [self.size.is_some(), self.colour.is_some(), self.pattern.is_some()]
    }

    fn attributes(&self) -> usize {
        self.says().into_iter().filter(|&says| says).count()
    }
}

impl Claim {
    /// Its phrases in the order of the claim, which may differ from the order in a sentence.
    pub(crate) fn phrases(&self) -> Vec<Phrase> {
        match self {
            Self::Place => Vec::new(),
            Self::Exist(phrases) => phrases.clone(),
            Self::Related(a, _, b) => vec![*a, *b],
            Self::Count(_, phrase) => vec![*phrase],
        }
    }
}

closed! {
    /// The sentence forms.
    pub(crate) Form {
        /// "A red ball on the grass."
        Bare,
        /// "There is a red ball on the grass."
        ThereIs,
        /// "The picture shows a red ball on the grass."
        Shows,
        /// "A photo of a red ball on the grass."
        PictureOf,
        /// "We see a red ball on the grass.", "You can see …"
        Seen,
        /// "Here is a red ball on the grass."
        Here,
        /// "On the grass there is a red ball."
        PlaceFirst,
        /// "The small ball on the grass is red and striped."
        Predicate,
        /// "A small ball that is red, on the grass."
        That,
        /// "A red ball with a blue cup."
        With,
        /// "Both a red ball and a blue cup are on the grass."
        Both,
        /// "A red ball sits next to a blue cup on the grass."
        Verb,
        /// "Next to a blue cup there is a red ball."
        RelationFirst,
        /// "A pair of red balls."
        PairOf,
        /// "The scene is at night."
        SceneIs,
        /// "A photo taken on the sand."
        Taken,
    }
}

impl Form {
    /// Whether this form can say the meaning.
    pub(crate) fn can_say(self, meaning: &Meaning) -> bool {
        let claim = &meaning.claim;
        let described = |claim: &Claim| matches!(claim, Claim::Exist(p) if p.len() == 1 && p[0].attributes() > 0);
        let two = |claim: &Claim| matches!(claim, Claim::Exist(p) if p.len() == 2);
        match self {
            Self::SceneIs | Self::Taken => *claim == Claim::Place && meaning.place.is_some(),
            _ if *claim == Claim::Place => false,
            Self::PlaceFirst => meaning.place.is_some(),
            Self::Predicate | Self::That => described(claim),
            Self::With | Self::Both => two(claim),
            Self::Verb | Self::RelationFirst => matches!(claim, Claim::Related(..)),
            Self::PairOf => matches!(claim, Claim::Count(2, _)),
            _ => true,
        }
    }

    /// Writes the meaning in this form. `rng` draws synonyms and the order of adjectives.
    ///
    /// # Panics
    /// If the form [cannot say](Self::can_say) the meaning.
    pub(crate) fn render(self, meaning: &Meaning, rng: &mut impl RngExt) -> String {
        assert!(self.can_say(meaning), "{self:?} cannot say {meaning:?}");
        let place = meaning.place.map(|b| pick(rng, lexicon::places(b)));
        let be = if matches!(meaning.claim, Claim::Count(..)) { "are" } else { "is" };
        let picture = pick(rng, PICTURES);
        let claim = &meaning.claim;
        let lead = match self {
            Self::ThereIs => format!("there {be} "),
            Self::Shows => format!("the {picture} shows "),
            Self::PictureOf => format!("{} of ", with_article(picture)),
            Self::Seen => pick(rng, &["we see ", "you can see "]).to_owned(),
            Self::Here => format!("here {be} "),
            Self::PlaceFirst => format!("{} there {be} ", place.unwrap_or_default()),
            _ => String::new(),
        };
        let body = match (self, claim) {
            (Self::Predicate, Claim::Exist(p)) => {
                let (subject, said) = split(&p[0], rng);
                let place = place.map(|p| format!(" {p}")).unwrap_or_default();
                let noun = noun_phrase(&subject, rng, Number::Bare);
                format!("the {noun}{place} is {}", adjectives(&said, rng).join(" and "))
            }
            (Self::That, Claim::Exist(p)) => {
                let (subject, said) = split(&p[0], rng);
                let noun = noun_phrase(&subject, rng, Number::Single);
                format!("{noun} that is {}", adjectives(&said, rng).join(" and "))
            }
            (Self::With, Claim::Exist(p)) => {
                format!("{} with {}", single(&p[0], rng), single(&p[1], rng))
            }
            (Self::Both, Claim::Exist(p)) => {
                let both = format!("both {} and {}", single(&p[0], rng), single(&p[1], rng));
                if place.is_some() { both + " are" } else { both }
            }
            (Self::Verb, Claim::Related(a, relation, b)) => {
                let verb = pick(rng, VERBS);
                let relation = pick(rng, lexicon::relations(*relation));
                format!("{} {verb} {relation} {}", single(a, rng), single(b, rng))
            }
            (Self::RelationFirst, Claim::Related(a, relation, b)) => {
                let be = pick(rng, &["is", "there is"]);
                let relation = pick(rng, lexicon::relations(*relation));
                format!("{relation} {} {be} {}", single(b, rng), single(a, rng))
            }
            (Self::PairOf, Claim::Count(_, p)) => {
                format!("a pair of {}", noun_phrase(p, rng, Number::Plural))
            }
            (Self::SceneIs, _) => "the scene is".to_owned(),
            (Self::Taken, _) => format!("{} taken", with_article(picture)),
            _ => lead + &core(claim, rng),
        };
        let place_at_end = !matches!(self, Self::PlaceFirst | Self::Predicate);
        let text = match place {
            Some(place) if place_at_end => format!("{body} {place}"),
            _ => body,
        };
        sentence(&text)
    }
}

/// Writes a meaning in a random form among the forms that can say it.
///
/// ```
/// use scenes::{Background, Claim, Colour, Kind, Meaning, Phrase, parse, render};
/// use rand::SeedableRng;
///
/// let ball = Phrase { kind: Some(Kind::Ball), colour: Some(Colour::Red), ..Phrase::default() };
/// let meaning = Meaning { claim: Claim::Count(2, ball), place: Some(Background::Snow) };
/// let text = render(&meaning, &mut rand_chacha::ChaCha8Rng::seed_from_u64(1));
/// assert_eq!(parse(&text), Some(meaning));
/// ```
///
/// # Panics
/// If no sentence can say the meaning: a list of no object or more than three, a count outside two to four, or neither
/// claim nor place.
pub fn render(meaning: &Meaning, rng: &mut impl RngExt) -> String {
    assert!(meaning.is_sayable(), "no sentence says {meaning:?}");
    // The special forms can say fewer meanings. The higher weight makes each common enough to be learned.
    let special = [Form::Predicate, Form::That, Form::With, Form::Both, Form::Verb];
    let able = Form::ALL.iter().copied().filter(|f| f.can_say(meaning));
    let weight = |f: Form| match f {
        Form::Bare => 4.0,
        Form::Verb => 3.0,
        f if special.contains(&f) => 1.5,
        _ => 1.0,
    };
    let form = super::world::weighted(rng, able.map(|f| (f, weight(f))));
    form.render(meaning, rng)
}

impl Meaning {
    /// Whether the grammar has a sentence for it.
    pub(crate) fn is_sayable(&self) -> bool {
        match &self.claim {
            Claim::Place => self.place.is_some(),
            Claim::Exist(p) => (1..=3).contains(&p.len()),
            Claim::Related(..) => true,
            Claim::Count(n, _) => COUNTS.iter().any(|(_, m)| m == n),
        }
    }
}

/// The claim without the words of a particular form.
fn core(claim: &Claim, rng: &mut impl RngExt) -> String {
    match claim {
        Claim::Place => String::new(),
        Claim::Exist(p) => {
            let p: Vec<_> = p.iter().map(|p| single(p, rng)).collect();
            match p.split_last() {
                Some((last, [])) => last.clone(),
                Some((last, first)) => format!("{} and {last}", first.join(", ")),
                None => String::new(),
            }
        }
        Claim::Related(a, relation, b) => {
            let relation = pick(rng, lexicon::relations(*relation));
            format!("{} {relation} {}", single(a, rng), single(b, rng))
        }
        Claim::Count(n, p) => {
            let word = COUNTS.iter().find(|(_, m)| m == n).map_or("", |(word, _)| word);
            format!("{word} {}", noun_phrase(p, rng, Number::Plural))
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Number {
    Single, // singular with its article
    Bare,   // singular without an article
    Plural,
}

fn single(phrase: &Phrase, rng: &mut impl RngExt) -> String {
    noun_phrase(phrase, rng, Number::Single)
}

/// "a tiny striped blue ball", "large red cups with dots".
fn noun_phrase(phrase: &Phrase, rng: &mut impl RngExt, number: Number) -> String {
    let mut phrase = *phrase;
    // "with dots" may follow the noun, but not in front of "is", where it would read badly.
    let trimming = phrase.pattern.map(lexicon::trimmings).filter(|t| !t.is_empty());
    let trimming = trimming.filter(|_| number != Number::Bare && rng.random_bool(0.3));
    let trimming = trimming.map(|words| pick(rng, words));
    if trimming.is_some() {
        phrase.pattern = None;
    }
    let mut words = Vec::with_capacity(5);
    words.extend(phrase.size.map(|s| pick(rng, lexicon::sizes(s))));
    let rest = Phrase { size: None, ..phrase };
    words.extend(adjectives(&rest, rng));
    let (one, many) = *pick_usual(rng, phrase.kind.map_or(THINGS, lexicon::nouns));
    words.push(if number == Number::Plural { many } else { one });
    let mut text = words.join(" ");
    if number == Number::Single {
        text = with_article(&text);
    }
    trimming.map_or(text.clone(), |t| format!("{text} with {t}"))
}

/// The attributes as adjectives, in random order.
fn adjectives(phrase: &Phrase, rng: &mut impl RngExt) -> Vec<&'static str> {
    let mut words = Vec::with_capacity(3);
    words.extend(phrase.size.map(|s| pick(rng, lexicon::sizes(s))));
    words.extend(phrase.colour.map(|c| *pick_usual(rng, lexicon::colours(c))));
    words.extend(phrase.pattern.map(|p| pick(rng, lexicon::patterns(p))));
    words.shuffle(rng);
    words
}

/// Splits a phrase into subject and predicate; the predicate gets at least one attribute.
fn split(phrase: &Phrase, rng: &mut impl RngExt) -> (Phrase, Phrase) {
    let mut spare = phrase.attributes() - 1;
    let [size, colour, pattern] = phrase.says().map(|present| {
        let keep = present && spare > 0 && rng.random_bool(0.5);
        spare -= keep as usize;
        keep
    });
    let part = |kind, kept| Phrase {
        kind,
        colour: phrase.colour.filter(|_| colour == kept),
        size: phrase.size.filter(|_| size == kept),
        pattern: phrase.pattern.filter(|_| pattern == kept),
    };
    (part(phrase.kind, true), part(None, false))
}

fn pick<T: Copy>(rng: &mut impl RngExt, items: &[T]) -> T {
    *items.choose(rng).expect("a word to choose")
}

/// Draws the first name three times as often as each other name.
fn pick_usual<'a, T>(rng: &mut impl RngExt, items: &'a [T]) -> &'a T {
    let weights = items.iter().enumerate().map(|(i, t)| (t, if i == 0 { 3.0 } else { 1.0 }));
    super::world::weighted(rng, weights)
}

fn with_article(noun: &str) -> String {
    let vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {noun}", if vowel { "an" } else { "a" })
}

/// Capital and full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.trim().chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

#[cfg(test)]
pub(super) mod tests;

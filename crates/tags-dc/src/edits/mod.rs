//! Negative captions without a model: one change of a caption that makes it false of its image.
//!
//! | kind | change | file |
//! |---|---|---|
//! | noun | the last noun of a chunk becomes another noun | `nouns.rs` |
//! | numeral | `two dogs` → `one dog` | `numerals.rs` |
//! | relation | two noun chunks change places, or a preposition becomes another | `relations.rs` |
//! | order | the words are shuffled | `order.rs` |
//!
//! [`EditShares`]: how often a model scores edited captions below the captions.
//!
//! The rules follow VSE-C (Shi et al., COLING 2018), but without WordNet: captions of the same images teach which nouns may replace a noun.

mod change;
mod family;
mod nouns;
mod numerals;
mod order;
mod quota;
mod read;
mod relations;
mod shares;

use std::collections::HashSet;

use rand::RngExt;

use crate::inflect::{ALIKE, PLURAL_ONLY, singular};
use crate::phrases::{Chunk, Sentence, Tag, Word};
use crate::record::{Kind, Record};

pub use change::exchanged;
pub use nouns::NounTable;
pub use quota::{Counts, Quota, negatives};
pub use read::{Captions, read_captions};
pub use shares::{CaptionEdit, EditCounts, EditShares};

/// How closely the rules follow VSE-C.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Rules {
    /// Good sentences that are false of the image. A noun stays singular or plural, and articles fit its sound. A number that would keep the
    /// caption true is not used, chunks do not change places across a symmetric word, and a new preposition must contradict the old one.
    /// Nothing changes behind a negation, except the order of all words.
    #[default]
    Fitting,
    /// What VSE-C's program emits: any candidate noun, `a` and `an` alike, every number, every preposition of every other group.
    VseC,
}

/// One change of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is changed.
    pub kind: Kind,
    /// Positions of the replaced words.
    pub positions: Vec<usize>,
    /// The replaced words.
    pub old: Vec<String>,
    /// The new words; there may be more or fewer of them.
    pub new: Vec<String>,
    /// The sentence after the change.
    pub text: String,
}

impl Edit {
    /// The edit as a line of a file; `caption` is the id of the changed caption.
    pub(crate) fn record(self, caption: String, seed: u64) -> Record {
        let Self { kind, positions, old, new, text } = self;
        Record { caption, seed, kind, positions, old, new, text, score: None }
    }
}

/// Lemmas that no replacement may have: all words of all captions of an image.
///
/// Words are compared without punctuation and in the singular: `dogs.` protects `dog`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptionLemmas {
    words: HashSet<String>,
    /// Nouns that a caption has without a number and that may be in the plural.
    many: HashSet<String>,
}

impl CaptionLemmas {
    /// What the captions of one image say.
    pub fn of<'a>(captions: impl IntoIterator<Item = &'a Sentence>) -> Self {
        let mut all = Self::default();
        for caption in captions {
            all.words.extend(caption.words.iter().map(|word| lemma(&word.text)));
            let head = |chunk: &Chunk| &caption.words[chunk.nouns.end - 1].text;
            let many = |chunk: &&Chunk| {
                number(caption, chunk) != Number::One && !numerals::counted(caption, chunk)
            };
            all.many.extend(caption.chunks.iter().filter(many).map(|chunk| lemma(head(chunk))));
        }
        all
    }

    /// Whether a caption has the word, in the singular or the plural.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.contains(&lemma(word))
    }
}

/// The most words of a sentence that is edited: the number of edits grows with its square, and each edit has the whole text.
const MOST_WORDS: usize = 512;

/// The rules, with the nouns learnt from training captions.
///
/// ```
/// use rand::SeedableRng;
/// use tags_dc::edits::{Edits, NounTable, Rules, CaptionLemmas};
/// use tags_dc::phrases::parse;
/// use tags_dc::record::Kind;
///
/// let edits = Edits { nouns: NounTable::default(), rules: Rules::Fitting };
/// let caption = parse("Two dogs run.");
/// let all = edits.of(&caption, &CaptionLemmas::of([&caption]), &mut rand_chacha::ChaCha8Rng::seed_from_u64(1));
/// let one = all.iter().find(|edit| edit.kind == Kind::Numeral).map(|edit| edit.text.as_str());
/// assert_eq!(one, Some("One dog run."));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Edits {
    /// Which nouns may replace which.
    pub nouns: NounTable,
    /// How closely VSE-C is followed.
    pub rules: Rules,
}

impl Edits {
    /// All variants of a sentence, each with one change: nouns, numerals, relations, one shuffle. A sentence of more than 512 words
    /// has none.
    ///
    /// `told` must come from all captions of the image, also from the sentence itself. Only the shuffle draws from `rng`.
    pub fn of(
        &self,
        sentence: &Sentence,
        told: &CaptionLemmas,
        rng: &mut impl RngExt,
    ) -> Vec<Edit> {
        if sentence.words.len() > MOST_WORDS {
            return vec![];
        }
        let mut all = nouns::edits(sentence, told, &self.nouns, self.rules);
        all.extend(numerals::edits(sentence, told, self.rules));
        all.extend(relations::edits(sentence, self.rules));
        if self.rules == Rules::Fitting {
            let denied = denied(sentence);
            all.retain(|edit| !edit.positions.iter().any(|&k| denied[k]));
        }
        all.extend(order::edit(sentence, rng));
        all
    }
}

/// Draws one variant and returns its place: first a kind, uniformly among the kinds with a variant, then one of its variants, uniformly.
/// `None` if there is no variant.
fn choose(edits: &[Edit], rng: &mut impl RngExt) -> Option<usize> {
    let of = |kind| -> Vec<usize> { (0..edits.len()).filter(|&k| edits[k].kind == kind).collect() };
    let kinds: Vec<Vec<usize>> =
        Kind::RULES.into_iter().map(of).filter(|places| !places.is_empty()).collect();
    if kinds.is_empty() {
        return None;
    }
    let places = &kinds[rng.random_range(0..kinds.len())];
    Some(places[rng.random_range(0..places.len())])
}

/// The singular, in lower case.
fn lemma(word: &str) -> String {
    singular(&word.to_lowercase())
}

/// Whether a noun, as written, is in the plural.
fn is_plural(noun: &str) -> bool {
    let noun = noun.to_lowercase();
    singular(&noun) != noun || PLURAL_ONLY.contains(&&noun[..])
}

/// How many things a noun names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    One,
    Many,
    /// The words do not say: `the sheep`.
    Either,
}

/// The number of a chunk: its last noun says it, or the words before a noun such as `sheep`.
fn number(sentence: &Sentence, chunk: &Chunk) -> Number {
    let noun = &sentence.words[chunk.nouns.end - 1].text;
    let alike = ALIKE.contains(&&noun.to_lowercase()[..]);
    if is_plural(noun) || alike && numerals::counted(sentence, chunk) {
        Number::Many
    } else if alike && !is_one(sentence, chunk) {
        Number::Either
    } else {
        Number::One
    }
}

/// Whether a word of a chunk says that it is one thing.
fn is_one(sentence: &Sentence, chunk: &Chunk) -> bool {
    sentence.words[chunk.words.start..chunk.nouns.start].iter().any(|word| {
        ["a", "an", "one", "another", "each", "every"].contains(&&word.text.to_lowercase()[..])
    })
}

/// Whether a new noun fits the mark of possession behind the old one: `men's` and `dog's`, or `boys'` and `dogs'`.
fn fits_mark(sentence: &Sentence, old: usize, new: &str) -> bool {
    let marked = sentence.words.get(old + 1).is_some_and(|next| next.text.starts_with(['\'', '’']));
    let bare = |noun: &str| is_plural(noun) && noun.ends_with('s');
    !marked || bare(&sentence.words[old].text) == bare(new)
}

/// Whether a negation stands before each word of a sentence: `isn't wearing two hats` is true of whoever wears one.
fn denied(sentence: &Sentence) -> Vec<bool> {
    let mut denied = false;
    let word = |word: &Word| {
        let text = word.text.to_lowercase().replace('’', "'");
        let before = denied;
        denied = match &text[..] {
            "." | "!" | "?" | ";" => false,
            "no" | "not" | "cannot" | "without" | "never" | "neither" | "nor" => true,
            _ => denied || text.ends_with("n't"),
        };
        before
    };
    sentence.words.iter().map(word).collect()
}

fn is_tag(sentence: &Sentence, at: usize, tag: Tag) -> bool {
    sentence.words.get(at).is_some_and(|word| word.tag == tag)
}

#[cfg(test)]
mod tests;

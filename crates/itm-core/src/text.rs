//! Captions as words: cleaning, tokens, the vocabulary.

#[cfg(feature = "pieces")]
mod pieces;
mod terms;

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::files::sha256_hex;
use crate::{Error, Result};

#[cfg(feature = "pieces")]
pub use pieces::WordPieces;
pub use terms::Terms;

/// A word of a caption, and where its pieces are: which of the caption's numbers stand for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As a person reads it.
    pub text: String,
    /// Places in the caption's numbers; with BERT counted from `[CLS]`, 0.
    pub pieces: Range<usize>,
}

/// Words of a caption that [`clean_caption`] keeps.
pub const FNE_MAX_WORDS: usize = 30;

/// Caption cleaning of the FNE program, in its order.
///
/// ```text
/// lower-case → delete , . ' ! ? " ( ) * # : ; ~ → '-', '/' to space → <person> to person
/// → runs of two or more white-space characters to one space → strip newlines at the end, spaces at both ends
/// → split at single spaces, keep the first 30
/// ```
///
/// A single tab or newline inside stays, and does not part words.
///
/// ```
/// use itm_core::text::clean_caption;
///
/// assert_eq!(clean_caption("A t-shirt/jacket"), "a t shirt jacket");
/// assert_eq!(clean_caption("It's John's, a -- b."), "its johns a b");
/// ```
pub fn clean_caption(caption: &str) -> String {
    let text: String = caption
        .to_lowercase()
        .chars()
        .filter(|c| !",.'!?\"()*#:;~".contains(*c))
        .map(|c| if c == '-' || c == '/' { ' ' } else { c })
        .collect();
    let text = collapse(&text.replace("<person>", "person"));
    let text = text.trim_end_matches('\n').trim_matches(' ');
    text.split(' ').take(FNE_MAX_WORDS).collect::<Vec<_>>().join(" ")
}

/// Every run of two or more white-space characters becomes one space; a single one stays as it is.
fn collapse(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if is_space(c) && chars.peek().copied().is_some_and(is_space) {
            while chars.next_if(|&c| is_space(c)).is_some() {}
            out.push(' ');
        } else {
            out.push(c);
        }
    }
    out
}

/// White space as the original's regular expressions see it: Unicode's, and four separators that only Python counts.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Lower-case runs of `[a-z0-9]`: an apostrophe parts words (`dog's` → `dog`, `s`).
///
/// ```
/// assert_eq!(itm_core::text::words("A dog's T-shirt."), ["a", "dog", "s", "t", "shirt"]);
/// ```
pub fn words(caption: &str) -> Vec<String> {
    let lower = caption.to_lowercase();
    let runs = lower.split(|c: char| !c.is_ascii_alphanumeric());
    runs.filter(|w| !w.is_empty()).map(str::to_string).collect()
}

/// Lower-case runs of `[a-z0-9]` that apostrophes may join (`dog's` is one word), as the `tokens` of Karpathy's files.
///
/// ```
/// use itm_core::text::words_with_apostrophes;
///
/// assert_eq!(words_with_apostrophes("The 'big' dog's ball"), ["the", "big", "dog's", "ball"]);
/// ```
pub fn words_with_apostrophes(caption: &str) -> Vec<String> {
    let lower = caption.to_lowercase();
    let runs = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '\'');
    let mut words = Vec::new();
    for run in runs {
        // Of two apostrophes in a row neither stands inside a word.
        for word in run.split("''") {
            let word = word.trim_matches('\'');
            if !word.is_empty() {
                words.push(word.to_string());
            }
        }
    }
    words
}

/// A caption without case, punctuation and spacing: equal captions have equal keys.
pub fn caption_key(caption: &str) -> String {
    words(caption).join(" ")
}

/// How a [`Vocabulary`] finds its words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokens {
    /// [`words`]
    #[default]
    Words,
    /// [`words_with_apostrophes`]
    WordsWithApostrophes,
}

impl Tokens {
    /// The words of a caption.
    pub fn of(self, caption: &str) -> Vec<String> {
        match self {
            Self::Words => words(caption),
            Self::WordsWithApostrophes => words_with_apostrophes(caption),
        }
    }
}

/// The entries of a [`Vocabulary`] that are no words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Specials {
    /// `<pad>` = 0, `<unk>` = 1.
    #[default]
    PadUnk,
    /// The same, and every caption between `<start>` = 2 and `<end>` = 3.
    PadUnkStartEnd,
}

impl Specials {
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Self::PadUnk => &["<pad>", "<unk>"],
            Self::PadUnkStartEnd => &["<pad>", "<unk>", "<start>", "<end>"],
        }
    }
}

/// The words of the training captions: a number for each.
///
/// The order is fixed by the captions alone: by count, most frequent first, then alphabetically.
///
/// ```
/// use itm_core::text::{Vocabulary, VocabularyOptions};
///
/// let train = ["A dog runs.", "A cat and a dog.", "a bird"];
/// let vocabulary = Vocabulary::build(train, VocabularyOptions { min_count: 2, ..Default::default() });
/// assert_eq!(vocabulary.words(), ["<pad>", "<unk>", "a", "dog"]);
/// assert_eq!(vocabulary.encode("A dog sleeps", 30), [2, 3, 1]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Vocabulary {
    options: VocabularyOptions,
    words: Vec<String>,
    counts: Vec<u64>, // of the words after the specials
    index: HashMap<String, u32>,
}

/// What a [`Vocabulary`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VocabularyOptions {
    /// Rarer words are unknown.
    pub min_count: u64,
    /// How words are found.
    pub tokens: Tokens,
    /// What else has a number.
    pub specials: Specials,
}

impl Default for VocabularyOptions {
    fn default() -> Self {
        Self { min_count: 1, tokens: Tokens::default(), specials: Specials::default() }
    }
}

/// Words that a vocabulary does not have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutOfVocabulary {
    /// Words in the captions.
    pub words: usize,
    /// Those without a number.
    pub unknown: usize,
}

impl OutOfVocabulary {
    /// `unknown / words`; 0 without words.
    pub fn rate(&self) -> f64 {
        if self.words == 0 { 0.0 } else { self.unknown as f64 / self.words as f64 }
    }
}

impl Vocabulary {
    /// Number of `<pad>`.
    pub const PAD: u32 = 0;
    /// Number of `<unk>`.
    pub const UNK: u32 = 1;

    /// The number of a word or of what is none, if it has one.
    pub(crate) fn number(&self, word: &str) -> Option<u32> {
        self.index.get(word).copied()
    }

    /// Counts the words of the **training** captions; nothing of a validation or test split may be passed here
    /// ([`crate::data::check_vocabulary`] tests it).
    pub fn build<S: AsRef<str>>(
        captions: impl IntoIterator<Item = S>,
        options: VocabularyOptions,
    ) -> Self {
        let mut counts: HashMap<String, u64> = HashMap::new();
        for caption in captions {
            for word in options.tokens.of(caption.as_ref()) {
                *counts.entry(word).or_default() += 1;
            }
        }
        let mut counts: Vec<_> =
            counts.into_iter().filter(|(_, n)| *n >= options.min_count).collect();
        counts.sort_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
        Self::from_counts(options, counts)
    }

    fn from_counts(options: VocabularyOptions, counted: Vec<(String, u64)>) -> Self {
        let (found, counts): (Vec<_>, Vec<_>) = counted.into_iter().unzip();
        let specials = options.specials.names().iter().map(|s| s.to_string());
        let words: Vec<String> = specials.chain(found).collect();
        let index = words.iter().zip(0..).map(|(word, i)| (word.clone(), i)).collect();
        Self { options, words, counts, index }
    }

    /// What it was built with.
    pub fn options(&self) -> VocabularyOptions {
        self.options
    }

    /// All entries, by number; the specials first.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The word of each number, nothing for the specials.
    pub fn spelled(&self) -> impl Iterator<Item = &str> {
        let specials = self.options.specials.names().len();
        let spelled = move |(i, word)| if i < specials { "" } else { word };
        self.words.iter().map(String::as_str).enumerate().map(spelled)
    }

    /// How often a word stands in the training captions; 0 for specials and unknown words.
    pub fn count(&self, word: &str) -> u64 {
        let specials = self.options.specials.names().len();
        let at = self.index.get(word).and_then(|&i| (i as usize).checked_sub(specials));
        at.map_or(0, |i| self.counts[i])
    }

    /// Number of entries, specials included: rows of an embedding table.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no word beside the specials.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The numbers of a caption's words, at most `max_len` of them (`<start>` and `<end>` included), not padded.
    /// A caption without a word is one `<unk>`, so that no sequence is empty.
    ///
    /// # Panics
    /// If `max_len` leaves no room for a word.
    pub fn encode(&self, caption: &str, max_len: usize) -> Vec<u32> {
        let frame = match self.options.specials {
            Specials::PadUnk => 0,
            Specials::PadUnkStartEnd => 2,
        };
        assert!(max_len > frame, "max_len {max_len} leaves no room for a word");
        let words = self.options.tokens.of(caption);
        let known = |word: &String| self.index.get(word).copied().unwrap_or(Self::UNK);
        let mut ids: Vec<u32> = words.iter().take(max_len - frame).map(known).collect();
        if ids.is_empty() {
            ids.push(Self::UNK);
        }
        if frame == 2 {
            ids.insert(0, 2);
            ids.push(3);
        }
        ids
    }

    /// How many words of some captions have no number.
    pub fn out_of_vocabulary<S: AsRef<str>>(
        &self,
        captions: impl IntoIterator<Item = S>,
    ) -> OutOfVocabulary {
        let mut oov = OutOfVocabulary { words: 0, unknown: 0 };
        for caption in captions {
            for word in self.options.tokens.of(caption.as_ref()) {
                oov.words += 1;
                oov.unknown += usize::from(!self.index.contains_key(&word));
            }
        }
        oov
    }

    /// SHA-256 of the entries, one a line: equal numbers for equal words.
    pub fn sha256(&self) -> String {
        let text: String = self.words.iter().flat_map(|w| [w.as_str(), "\n"]).collect();
        sha256_hex(text.as_bytes())
    }
}

/// The form in files: options and the words with their counts, in order.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    options: VocabularyOptions,
    words: Vec<(String, u64)>,
}

impl From<Vocabulary> for Stored {
    fn from(vocabulary: Vocabulary) -> Self {
        let specials = vocabulary.options.specials.names().len();
        let words = vocabulary.words.into_iter().skip(specials);
        Self { options: vocabulary.options, words: words.zip(vocabulary.counts).collect() }
    }
}

impl TryFrom<Stored> for Vocabulary {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        let ordered = |a: &(String, u64), b: &(String, u64)| (b.1, &a.0) < (a.1, &b.0);
        if let Some(i) = stored.words.windows(2).position(|w| !ordered(&w[0], &w[1])) {
            let (place, got) = (format!("vocabulary, word {}", i + 1), &stored.words[i + 1].0);
            return Err(Error::invalid(place, "words by falling count, then alphabetically", got));
        }
        let bad = |(word, n): &(String, u64)| {
            *n < stored.options.min_count || stored.options.tokens.of(word) != [word.as_str()]
        };
        if let Some(i) = stored.words.iter().position(bad) {
            let (word, n) = &stored.words[i];
            let expected = format!("a lower-case word counted {} times", stored.options.min_count);
            let place = format!("vocabulary, word {i}");
            return Err(Error::invalid(place, expected, format!("\"{word}\", {n} times")));
        }
        Ok(Self::from_counts(stored.options, stored.words))
    }
}

#[cfg(test)]
mod tests;

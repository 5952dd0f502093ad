//! Captions as words: cleaning, tokens, the vocabulary.

#[cfg(feature = "pieces")]
mod pieces;
mod terms;
mod treebank;
#[cfg(not(feature = "pieces"))]
mod unread;
mod vocabulary;

use std::ops::Range;

use serde::{Deserialize, Serialize};

#[cfg(feature = "pieces")]
pub use pieces::{WordPieces, encoded, open_tokenizer, parsed as parsed_tokenizer};
pub use terms::Terms;
pub use treebank::{treebank, treebank_line};
#[cfg(not(feature = "pieces"))]
pub use unread::WordPieces;
pub use vocabulary::{Marks, Vocabulary, VocabularyOptions};

/// A word of a caption, and the positions of its pieces among the caption's numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word as a person reads it.
    pub text: String,
    /// Positions in the caption's numbers; with BERT, `[CLS]` is position 0.
    pub pieces: Range<usize>,
}

/// The `max_words` of [`clean_caption`] in the FNE program.
pub const CLEANED_WORDS: usize = 30;

/// Caption cleaning of the FNE program, in that program's order. The program uses [`CLEANED_WORDS`] for `max_words`.
///
/// ```text
/// lower-case → delete , . ' ! ? " ( ) * # : ; ~ → '-', '/' to space → <person> to person
/// → runs of two or more white-space characters to one space → strip newlines at the end, spaces at both ends
/// → split at single spaces, keep the first max_words
/// ```
///
/// A single tab or newline inside the caption stays, and does not separate words.
///
/// ```
/// use itm_data::text::{CLEANED_WORDS, clean_caption};
///
/// assert_eq!(clean_caption("A t-shirt/jacket", CLEANED_WORDS), "a t shirt jacket");
/// assert_eq!(clean_caption("It's John's, a -- b.", 3), "its johns a");
/// ```
pub fn clean_caption(caption: &str, max_words: usize) -> String {
    let text: String = caption
        .to_lowercase()
        .chars()
        .filter(|c| !",.'!?\"()*#:;~".contains(*c))
        .map(|c| if c == '-' || c == '/' { ' ' } else { c })
        .collect();
    let text = collapse(&text.replace("<person>", "person"));
    let text = text.trim_end_matches('\n').trim_matches(' ');
    text.split(' ').take(max_words).collect::<Vec<_>>().join(" ")
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

/// White space as in the original's regular expressions: Unicode's, and four separators that only Python counts.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Lower-case runs of `[a-z0-9]`: an apostrophe separates words (`dog's` → `dog`, `s`).
///
/// ```
/// assert_eq!(itm_data::text::words("A dog's T-shirt."), ["a", "dog", "s", "t", "shirt"]);
/// ```
pub fn words(caption: &str) -> Vec<String> {
    let lower = caption.to_lowercase();
    let runs = lower.split(|c: char| !c.is_ascii_alphanumeric());
    runs.filter(|w| !w.is_empty()).map(str::to_string).collect()
}

/// Lower-case runs of `[a-z0-9]` that apostrophes may join (`dog's` is one word), like the `tokens` of Karpathy's files.
pub(crate) fn words_with_apostrophes(caption: &str) -> Vec<String> {
    let lower = caption.to_lowercase();
    let runs = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '\'');
    // Two apostrophes in a row are not inside a word.
    let words = runs.flat_map(|run| run.split("''")).map(|word| word.trim_matches('\''));
    words.filter(|w| !w.is_empty()).map(str::to_string).collect()
}

/// A caption without case, punctuation and spacing: equal captions have equal keys. Accented Latin letters part words, as in
/// [`words`], because some published files have lost them.
pub(crate) fn caption_key(caption: &str) -> String {
    let counts = |c: char| c.is_ascii_alphanumeric() || c > '\u{24f}' && c.is_alphanumeric();
    let lower = caption.to_lowercase();
    let runs = lower.split(|c| !counts(c)).filter(|run| !run.is_empty());
    runs.collect::<Vec<_>>().join(" ")
}

/// How a [`Vocabulary`] finds its words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Tokens {
    /// Lower-case runs of `[a-z0-9]`: [`words`].
    #[default]
    Words,
    /// Lower-case runs of `[a-z0-9]` that apostrophes may join: `dog's` is one word.
    WordsWithApostrophes,
    /// As in NAAF's program, sentence by sentence: [`treebank`].
    Treebank,
    /// The same on a caption as one sentence: [`treebank_line`].
    TreebankLine,
}

impl Tokens {
    /// The words of a caption.
    pub fn of(self, caption: &str) -> Vec<String> {
        match self {
            Self::Words => words(caption),
            Self::WordsWithApostrophes => words_with_apostrophes(caption),
            Self::Treebank => treebank(caption),
            Self::TreebankLine => treebank_line(caption),
        }
    }
}

#[cfg(test)]
mod tests;

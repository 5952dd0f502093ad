//! Captions as sentences, aligned with captions as numbers.

use std::ops::Range;

use crate::edits::{Edit, exchanged};
use crate::phrases::{Duplicates, Sentence, parse};
use crate::record::Kind;
use itm_core::Result;
use itm_core::text::Word;

/// A caption as a sentence, and the caption's numbers of each word.
///
/// ```
/// use itm_core::text::Word;
/// use tags_dc::Aligned;
/// use tags_dc::phrases::Duplicates;
///
/// let spell = |text: &str| -> tags_dc::Result<Vec<Word>> {
///     let words = text.split_whitespace().enumerate();
///     Ok(words.map(|(k, word)| Word { text: word.to_owned(), pieces: k..k + 1 }).collect())
/// };
/// let text = "A brown dog";
/// let aligned = Aligned::new(text, &spell)?.expect("the same words");
/// assert_eq!(aligned.phrases(Duplicates::Once), [[2], [1]]);
/// let vocabulary = ["[CLS]", "[SEP]", "A", "brown", "dog", "red"].map(String::from);
/// let edit = aligned.edited(&[0, 2, 5, 4, 1], &[0, 2, 3, 4, 1], &vocabulary).expect("a change");
/// assert_eq!(edit.text, "A red dog");
/// # Ok::<(), tags_dc::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Aligned {
    sentence: Sentence,
    /// The numbers of each word of the sentence, counted without a mark before the words.
    of_word: Vec<Range<usize>>,
    numbers: usize,
}

impl Aligned {
    /// `spell` gives the words of a text as a row reads it. `None` if the text has none, or if the words of the sentence, each spelled alone,
    /// differ from them.
    ///
    /// # Errors
    /// The errors of `spell`.
    pub fn new(text: &str, spell: &dyn Fn(&str) -> Result<Vec<Word>>) -> Result<Option<Self>> {
        let (sentence, all) = (parse(text), spell(text)?);
        let (Some(first), Some(last)) = (all.first(), all.last()) else { return Ok(None) };
        let (mark, end) = (first.pieces.start, last.pieces.end);
        let (mut of_word, mut next) = (vec![], 0);
        for word in &sentence.words {
            let own = spell(&word.text)?;
            let Some(there) = all.get(next..next + own.len()) else { return Ok(None) };
            if own.iter().zip(there).any(|(own, there)| own.text != there.text) {
                return Ok(None);
            }
            let at = |k: usize| all.get(k).map_or(end, |word| word.pieces.start) - mark;
            of_word.push(at(next)..at(next + own.len()));
            next += own.len();
        }
        let fits = next == all.len();
        Ok(fits.then_some(Self { sentence, of_word, numbers: end - mark }))
    }

    /// The sentence with the tokens `new` in place of `own`, spelled by `words`. Both have `[CLS]` and `[SEP]` around them. `None` if
    /// nothing changed.
    ///
    /// # Panics
    /// If `new` or `own` ends before the last word does.
    pub fn edited(&self, new: &[u32], own: &[u32], words: &[String]) -> Option<Edit> {
        let changed = self.of_word.iter().enumerate().filter_map(|(k, at)| {
            let at = at.start + 1..at.end + 1;
            let text = || spelled(&new[at.clone()], words);
            (new[at.clone()] != own[at.clone()]).then(|| (k, text()))
        });
        exchanged(&self.sentence, Kind::Refill, changed.collect())
    }

    /// Position lists of the phrases.
    pub fn phrases(&self, duplicates: Duplicates) -> Vec<Vec<usize>> {
        self.sentence.phrases(duplicates).expand(&self.of_word).lists(self.numbers)
    }
}

/// The tokens of one word, as the word would be written: word pieces are joined, words get a hyphen between them.
pub(crate) fn spelled(tokens: &[u32], words: &[String]) -> String {
    let mut text = String::new();
    for &token in tokens {
        let word = words.get(token as usize).map_or("", String::as_str);
        let ends = [text.chars().last(), word.chars().next()];
        match word.strip_prefix("##") {
            Some(part) => text.push_str(part),
            None if ends.iter().all(|c| c.is_some_and(char::is_alphanumeric)) => {
                text = format!("{text}-{word}");
            }
            None => text.push_str(word),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words in pieces of at most four letters, after a mark.
    fn pieces(text: &str) -> Result<Vec<Word>> {
        let mut at = 1;
        let word = |text: &str| {
            let n = text.len().div_ceil(4);
            at += n;
            Word { text: text.to_lowercase(), pieces: at - n..at }
        };
        Ok(text.split_whitespace().map(word).collect())
    }

    fn read(text: &str) -> Option<Aligned> {
        Aligned::new(text, &pieces).unwrap()
    }

    /// By hand: parts of a word are joined, two words get a hyphen, and a sign between words stays as it is.
    #[test]
    fn golden_words_of_tokens() {
        let words = ["run", "##ning", "-", "shoe", ""].map(String::from);
        for (tokens, want) in [
            (&[0, 1][..], "running"),
            (&[0, 3], "run-shoe"),
            (&[0, 1, 2, 3], "running-shoe"),
            (&[1], "ning"),
            (&[4, 9], ""),
        ] {
            assert_eq!(spelled(tokens, &words), want, "{tokens:?}");
        }
    }

    /// By hand: A | brow-n | dog | jump-s | over a log: positions 0, 1 to 2, 3, 4 to 5, 6, 7, 8. Trap 22.
    #[test]
    fn golden_phrases_cover_every_piece() {
        let read = read("A brown dog jumps over a log").unwrap();
        let mut lists = read.phrases(Duplicates::Once);
        lists.sort();
        assert_eq!(lists, [vec![1, 2], vec![3], vec![4, 5, 6], vec![8]]);
    }

    /// A full stop is a word of the sentence, but here it is in one word with `log`.
    #[test]
    fn other_words_than_the_captions_are_no_alignment() {
        assert!(read("A brown dog jumps over a log.").is_none());
        assert!(read("").is_none());
    }
}

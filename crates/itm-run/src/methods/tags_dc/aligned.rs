//! Captions as sentences beside captions as numbers.

use std::ops::Range;

use itm_core::Result;
use itm_core::text::Word;
use tags_dc::edits::{Edit, exchanged};
use tags_dc::phrases::{Duplicates, Sentence, parse};
use tags_dc::record::Kind;

/// A caption as a sentence, and which of its numbers are a word's.
pub(super) struct Aligned {
    sentence: Sentence,
    /// Of each word of the sentence, counted without a mark before the words.
    of_word: Vec<Range<usize>>,
    numbers: usize,
}

impl Aligned {
    /// `spell` tells the words of a text as a row reads it, and the numbers of each. `None` where the words of the sentence, each by itself,
    /// differ from the caption's, or there is none.
    ///
    /// # Errors
    /// Of `spell`.
    pub(super) fn new(
        text: &str,
        spell: &dyn Fn(&str) -> Result<Vec<Word>>,
    ) -> Result<Option<Self>> {
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

    /// The words, punctuation left out: the number of each among these, and its tokens behind `[CLS]`.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let all = self.sentence.words.iter().zip(&self.of_word);
        let words = all.filter(|(word, _)| word.text.chars().any(char::is_alphanumeric));
        words.enumerate().map(|(at, (_, pieces))| (at, pieces.start + 1..pieces.end + 1))
    }

    /// The sentence with other tokens, `[CLS]` and `[SEP]` around both, spelled by `words`; parts of a word are joined by a hyphen. `None`
    /// where nothing changed.
    pub(super) fn edited(&self, new: &[u32], own: &[u32], words: &[&str]) -> Option<Edit> {
        let changed = self.of_word.iter().enumerate().filter_map(|(k, at)| {
            let at = at.start + 1..at.end + 1;
            let spelled = |&token: &u32| words.get(token as usize).copied().unwrap_or_default();
            let text = || new[at.clone()].iter().map(spelled).collect::<Vec<_>>().join("-");
            (new[at.clone()] != own[at.clone()]).then(|| (k, text()))
        });
        exchanged(&self.sentence, Kind::Refill, changed.collect())
    }

    /// Position lists of the phrases.
    pub(super) fn phrases(&self, duplicates: Duplicates) -> Vec<Vec<usize>> {
        self.sentence.phrases(duplicates).expand(&self.of_word).lists(self.numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of at most four letters a piece, behind a mark.
    fn pieces(text: &str) -> Result<Vec<Word>> {
        let mut at = 1;
        let word = |text: &str| {
            let n = text.len().div_ceil(4);
            at += n;
            Word { text: text.to_lowercase(), pieces: at - n..at }
        };
        Ok(text.split_whitespace().map(word).collect())
    }

    /// By hand: A | brow-n | dog | jump-s | over a log: positions 0, 1 to 2, 3, 4 to 5, 6, 7, 8. Trap 22.
    #[test]
    fn golden_phrases_cover_every_piece() {
        let read = Aligned::new("A brown dog jumps over a log", &pieces).unwrap().unwrap();
        let mut lists = read.phrases(Duplicates::Once);
        lists.sort();
        assert_eq!(lists, [vec![1, 2], vec![3], vec![4, 5, 6], vec![8]]);
    }

    /// A full stop is a word of the sentence, and stands in one with `log` here.
    #[test]
    fn other_words_than_the_captions_are_no_alignment() {
        assert!(Aligned::new("A brown dog jumps over a log.", &pieces).unwrap().is_none());
        assert!(Aligned::new("", &pieces).unwrap().is_none());
    }
}

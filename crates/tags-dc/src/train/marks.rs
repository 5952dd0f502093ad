//! Tokens that are not words.

use std::ops::Range;

use itm_core::{Error, Result};

/// The tokens of a vocabulary that are not words, and the tokens that are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// `[PAD] [UNK] [CLS] [SEP] [MASK]`
    pub(crate) special: [u32; 5],
    /// The first word, and the end of the words.
    words: [u32; 2],
    /// The number of all tokens.
    pub(crate) tokens: usize,
    /// Whether texts come with `[CLS]` and `[SEP]`.
    given: bool,
}

impl Marks {
    /// Captions as numbers of a vocabulary of words: `[PAD]` is 0, `[UNK]` is 1, words follow, and `[CLS]`, `[SEP]` and `[MASK]` come after
    /// the words.
    ///
    /// # Errors
    /// If there is no number for three more.
    pub fn of_words(vocabulary: usize) -> Result<Self> {
        let most = u32::MAX - 3;
        let Some(words) = u32::try_from(vocabulary).ok().filter(|&words| words <= most) else {
            return Err(Error::invalid("vocabulary", format!("at most {most} words"), vocabulary));
        };
        let special = [0, 1, words, words + 1, words + 2];
        Ok(Self { special, words: [2, words], tokens: vocabulary + 3, given: false })
    }

    /// Captions as word pieces of a vocabulary of `tokens` pieces, with `[CLS]` and `[SEP]` around them. `special` are the numbers of
    /// `[PAD] [UNK] [CLS] [SEP] [MASK]`. `words` are the pieces that may replace a word (`v_range`; cased BERT: 106..28996).
    pub const fn of_pieces(special: [u32; 5], words: Range<u32>, tokens: usize) -> Self {
        Self { special, words: [words.start, words.end], tokens, given: true }
    }

    /// `[MASK]`.
    pub fn mask(self) -> u32 {
        self.special[4]
    }

    /// Tokens that are words or parts of words.
    pub(crate) fn words(self) -> Range<u32> {
        self.words[0]..self.words[1]
    }

    /// `[CLS]`, the words, `[SEP]`.
    ///
    /// ```
    /// # #[cfg(feature = "flex")] {
    /// use tags_dc::train::Marks;
    ///
    /// assert_eq!(Marks::of_words(10)?.around(&[4, 7]), [10, 4, 7, 11]);
    /// let pieces = Marks::of_pieces([0, 100, 101, 102, 103], 106..28996, 28996);
    /// assert_eq!(pieces.around(&[101, 7592, 102]), [101, 7592, 102]); // has both already
    /// # }
    /// # Ok::<(), itm_core::Error>(())
    /// ```
    pub fn around(self, text: &[u32]) -> Vec<u32> {
        match self.given {
            true => text.to_vec(),
            false => [&self.special[2..3], text, &self.special[3..4]].concat(),
        }
    }

    /// # Errors
    /// If a mark or a word is not among the tokens.
    pub(super) fn check(self) -> Result<()> {
        let below = format!("a number below {}, the number of tokens", self.tokens);
        for (name, token) in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].iter().zip(self.special)
        {
            Error::unless((token as usize) < self.tokens, name, &below, token)?;
        }
        let [_, end] = self.words;
        let expected = format_args!("{below}, or that number");
        Error::unless(end as usize <= self.tokens, "the end of the words", expected, end)
    }

    /// The number of tokens that [`around`](Self::around) adds.
    pub(super) fn added(self) -> usize {
        if self.given { 0 } else { 2 }
    }
}

//! The sentences that a TAGS-DC makes of a caption, word by word.

use std::any::Any;

use itm_core::Result;
use itm_core::learn::{Items, Method};
use itm_core::text::Word;
use tags_dc::phrases::Duplicates;
use tags_dc::train::{Judged, TagsDc};

use super::aligned::Aligned;

/// A sentence that is made of a caption.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sentence {
    pub(crate) text: String,
    /// The words of the caption, each as it came out.
    pub(crate) words: Vec<SentenceWord>,
    /// Whether it scores below its caption.
    pub(crate) below: bool,
}

/// A word of such a sentence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SentenceWord {
    /// Which word of the caption it was; punctuation is none.
    pub(crate) at: usize,
    /// Whether it is another one.
    pub(crate) changed: bool,
    /// What the heads of words say of it, where the model has these.
    pub(crate) judged: Option<JudgedWord>,
}

/// What heads of words say of a word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JudgedWord {
    /// Whether it matches the image: every piece of it.
    pub(crate) matches: bool,
    /// Whether the caption's word is what should stand there.
    pub(crate) corrected: bool,
}

/// Of the draws.
const SEED: u64 = 0;

/// A caption of a split, as a model reads it.
#[derive(Clone, Copy)]
pub(crate) struct Caption<'a> {
    pub(crate) items: Items<'a>,
    /// Its number.
    pub(crate) text: usize,
    /// As it is written.
    pub(crate) caption: &'a str,
    /// The word of each number, where captions are read as words.
    pub(crate) words: Option<&'a [&'a str]>,
    /// The words of a text, and which of its numbers stand for each.
    pub(crate) spell: &'a dyn Fn(&str) -> Result<Vec<Word>>,
}

/// The sentences that a model in training makes of a caption; `None` where it makes none.
///
/// # Errors
/// If an item cannot be read.
pub(crate) fn sentences(method: &dyn Method, of: Caption) -> Result<Option<Vec<Sentence>>> {
    let any: &dyn Any = method;
    let Some(method) = any.downcast_ref::<TagsDc>() else { return Ok(None) };
    let Caption { items, text, caption, words, spell } = of;
    let (true, Some(words)) = (method.config().loss.synthetic(), words) else {
        return Ok(None);
    };
    let Some(read) = Aligned::new(caption, spell)? else {
        return Ok(Some(vec![]));
    };
    let pool = method.negatives(&items, text, &read.phrases(Duplicates::Kept), SEED)?;
    let own = &pool.caption;
    let of = |negative: &Judged| {
        let text = read.edited(&negative.tokens, &own.tokens, words)?.text;
        let words = read.words().map(|(at, pieces)| SentenceWord {
            at,
            changed: negative.tokens[pieces.clone()] != own.tokens[pieces.clone()],
            judged: negative.words.as_ref().map(|judged| JudgedWord {
                matches: judged[pieces.clone()].iter().all(|piece| piece.matches > 0.5),
                corrected: pieces
                    .clone()
                    .all(|piece| judged[piece].correction == own.tokens[piece]),
            }),
        });
        let below = negative.score < own.score;
        Some(Sentence { text, words: words.collect(), below })
    };
    Ok(Some(pool.negatives.iter().filter_map(of).collect()))
}

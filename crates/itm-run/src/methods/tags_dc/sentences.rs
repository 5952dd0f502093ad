//! The sentences that a TAGS-DC makes of a caption, word by word.

use std::any::Any;

use itm_core::Result;
use itm_core::learn::{Items, Method};
use itm_core::text::Word;
use tags_dc::phrases::Duplicates;
use tags_dc::train::{Judged, TagsDc};

use super::aligned::Aligned;
use crate::report::{JudgedCaption, JudgedText};

/// A sentence that is made of a caption.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sentence {
    pub(crate) text: String,
    /// The words of the caption, each as it came out.
    pub(crate) words: Vec<SentenceWord>,
    /// Whether it scores below its caption.
    pub(crate) below: bool,
    /// As a page shows it; whether the image denies it is not known here.
    pub(crate) judged: JudgedCaption,
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
    let numbers = words;
    let made = |negative: &Judged| {
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
        let (words, below) = (words.collect(), negative.score < own.score);
        let judged = shown(negative, Some(&own.tokens), &of, numbers)?;
        Some(Sentence { text, words, below, judged })
    };
    Ok(Some(pool.negatives.iter().filter_map(made).collect()))
}

/// A caption of a split beside any of its images; `None` if the model judges no words and makes no sentences.
///
/// # Errors
/// If an item cannot be read.
pub(crate) fn judged(
    method: &dyn Method,
    of: Caption,
    image: usize,
) -> Result<Option<JudgedCaption>> {
    let any: &dyn Any = method;
    let (Some(method), Some(words)) = (any.downcast_ref::<TagsDc>(), of.words) else {
        return Ok(None);
    };
    let tokens = method.marks().around(&of.items.texts[of.text]);
    let judged = method.judged(&of.items, image, &[&tokens])?;
    Ok(shown(&judged[0], None, &of, words))
}

/// A sentence of as many tokens as the caption, word by word; `None` where the caption cannot be spelled.
fn shown(
    sentence: &Judged,
    own: Option<&[u32]>,
    of: &Caption,
    words: &[&str],
) -> Option<JudgedCaption> {
    let spelled = (of.spell)(of.caption).ok()?;
    let mark = spelled.first()?.pieces.start;
    let word = |written: &Word| {
        let pieces = written.pieces.start - mark + 1..written.pieces.end - mark + 1;
        let join = |tokens: &[u32]| {
            let text = |&token: &u32| words.get(token as usize).copied().unwrap_or("");
            tokens.iter().map(text).collect::<Vec<_>>().join("-")
        };
        let tokens = &sentence.tokens[pieces.clone()];
        let changed = own.is_some_and(|own| own[pieces.clone()] != *tokens);
        let judged = sentence.words.as_ref().map(|judged| &judged[pieces]);
        let corrected = judged.map(|all| all.iter().map(|one| one.correction).collect::<Vec<_>>());
        JudgedText {
            text: if changed { join(tokens) } else { written.text.clone() },
            changed,
            matches: judged.map(|all| all.iter().map(|one| one.matches).fold(1.0, f32::min)),
            correction: corrected.filter(|new| new != tokens).map(|new| join(&new)),
        }
    };
    let words = spelled.iter().map(word).collect();
    Some(JudgedCaption { score: sentence.score, words, denied: None })
}

//! The sentences that TAGS-DC makes from a caption, word by word.

use std::any::Any;

use itm_core::Result;
use itm_core::learn::{Items, Method};
use itm_core::text::Word;
use tags_dc::phrases::Duplicates;
use tags_dc::train::{Assessment, TagsDc};
use tags_dc::{Aligned, spelled};

use crate::report::{JudgedCaption, JudgedText};

/// A sentence that is made from a caption.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sentence {
    /// The sentence as it would be written.
    pub(crate) text: String,
    /// Whether the sentence scores below its caption.
    pub(crate) below: bool,
    /// The sentence word by word. It is not known here whether the sentence is false of the image.
    pub(crate) judged: JudgedCaption,
}

/// Seed of the draws.
const SEED: u64 = 0;

/// A caption of a split, as a model reads it.
#[derive(Clone, Copy)]
pub(crate) struct Caption<'a> {
    pub(crate) items: Items<'a>,
    /// The caption's number.
    pub(crate) text: usize,
    /// The caption as it is written.
    pub(crate) caption: &'a str,
    /// The word or word piece of each number; `None` if a caption is a set of stems.
    pub(crate) words: Option<&'a [String]>,
    /// The words of a text, each with its range of the text's numbers.
    pub(crate) spell: &'a dyn Fn(&str) -> Result<Vec<Word>>,
}

/// The sentences that a model in training makes from a caption; `None` if it makes none.
///
/// # Errors
/// If an item cannot be read, or the caption cannot be split into words.
pub(crate) fn sentences(method: &dyn Method, of: Caption) -> Result<Option<Vec<Sentence>>> {
    let any: &dyn Any = method;
    let Some(method) = any.downcast_ref::<TagsDc>() else { return Ok(None) };
    let Caption { items, text, caption, words, spell } = of;
    let (true, Some(words)) = (method.config().loss.synthetic(), words) else {
        return Ok(None);
    };
    let written = spell(caption)?;
    let Some(read) = Aligned::new(caption, &written, spell)? else {
        return Ok(Some(vec![]));
    };
    let pool = method.negatives(&items, text, &read.phrases(Duplicates::Kept), SEED)?;
    let own = &pool.caption;
    let made = |negative: &Assessment| {
        Some(Sentence {
            text: read.edited(&negative.tokens, &own.tokens, words)?.text,
            below: negative.score < own.score,
            judged: shown(negative, &own.tokens, &written, words),
        })
    };
    Ok(Some(pool.negatives.iter().filter_map(made).collect()))
}

/// A caption of a split, judged beside any image of the split; `None` if the model is not TAGS-DC, or a caption is a set of stems.
///
/// # Errors
/// If an item cannot be read, or the caption cannot be split into words.
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
    let judged = method.assess(&of.items, image, &[&tokens])?;
    let written = (of.spell)(of.caption)?;
    Ok(Some(shown(&judged[0], &tokens, &written, words)))
}

/// A sentence with as many tokens as its caption. The caption has the tokens `own` and the words `written`.
fn shown(sentence: &Assessment, own: &[u32], written: &[Word], words: &[String]) -> JudgedCaption {
    let mark = written.first().map_or(0, |word| word.pieces.start);
    let mut number = 0..;
    let word = |written: &Word| {
        let pieces = written.pieces.start - mark + 1..written.pieces.end - mark + 1;
        let (tokens, own) = (&sentence.tokens[pieces.clone()], &own[pieces.clone()]);
        let judged = sentence.words.as_ref().map(|judged| &judged[pieces]);
        let corrected = judged.map(|all| all.iter().map(|one| one.correction).collect::<Vec<_>>());
        let is_word = written.text.chars().any(char::is_alphanumeric);
        let changed = own != tokens;
        JudgedText {
            text: if changed { spelled(tokens, words) } else { written.text.clone() },
            at: is_word.then(|| number.next()).flatten(),
            changed,
            matches: judged.map(|all| all.iter().map(|one| one.matches).fold(1.0, f32::min)),
            restored: corrected.as_deref() == Some(own),
            correction: corrected.filter(|new| new != tokens).map(|new| spelled(&new, words)),
        }
    };
    let words = written.iter().map(word).collect();
    JudgedCaption { score: sentence.score, words, denied: None }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use itm_core::data::{Bounds, Regions};
    use itm_core::learn::ImageItems;
    use itm_core::{Error, Pairs};
    use tags_dc::train::Marks;

    use super::*;
    use crate::methods::tags_dc::tests::config;

    /// `[PAD] [UNK] [CLS] [SEP] [MASK]`, whose spelling is empty, and word pieces.
    const PIECES: [&str; 12] = ["", "", "", "", "", "a", "dog", "run", "##s", "cat", "sleep", "."];

    /// Each piece is a word, except that `##s` is part of the word before it.
    fn spell(text: &str) -> Result<Vec<Word>> {
        let mut at = 1; // after [CLS]
        let word = |word: &str| {
            let n = 1 + usize::from(word.ends_with('s'));
            at += n;
            Word { text: word.to_owned(), pieces: at - n..at }
        };
        Ok(text.replace('.', " .").split_whitespace().map(word).collect())
    }

    /// Asks a small model about `a dog runs.` beside its image.
    fn asked<T>(ask: impl Fn(&dyn Method, Caption) -> Result<T>, spell: Spell) -> Result<T> {
        let mut config = config();
        (config.model.layers, config.model.heads, config.model.embed_dim) = (1, 2, 8);
        (config.loss.istm, config.loss.wod, config.loss.woc) = (1.0, 1.0, 1.0);
        config.synthetic.forbid_special = true;
        let marks = Marks::of_pieces([0, 1, 2, 3, 4], 5..12, PIECES.len());
        let model = TagsDc::of(&config, 3, marks, 10, &Device::flex()).unwrap();
        let regions = Regions::new(3, vec![1], vec![0.1, 0.2, 0.3]).unwrap();
        let whole = Bounds { x1: 0.0, y1: 0.0, x2: 1.0, y2: 1.0 };
        let regions = regions.with_boxes(vec![whole]).unwrap();
        let (texts, pairs) = ([vec![2, 5, 6, 7, 8, 11, 3]], Pairs::uniform(1, 1));
        let items = Items { images: ImageItems::Regions(&regions), texts: &texts, pairs: &pairs };
        let words = PIECES.map(String::from);
        let caption = "a dog runs.";
        ask(&model, Caption { items, text: 0, caption, words: Some(&words), spell })
    }

    type Spell<'a> = &'a dyn Fn(&str) -> Result<Vec<Word>>;

    /// By hand: three words and a sign; `runs` has two pieces.
    #[test]
    fn captions_of_word_pieces_are_shown_word_by_word() {
        let caption = asked(|method, of| judged(method, of, 0), &spell).unwrap().unwrap();
        let words: Vec<_> = caption.words.iter().map(|word| (&word.text[..], word.at)).collect();
        assert_eq!(words, [("a", Some(0)), ("dog", Some(1)), ("runs", Some(2)), (".", None)]);
        assert!(caption.words.iter().all(|word| !word.changed && word.matches.is_some()));
    }

    #[test]
    fn word_pieces_make_sentences() {
        let all = asked(sentences, &spell).unwrap().unwrap();
        assert!(!all.is_empty());
        for sentence in &all {
            assert!(!sentence.text.contains('#'), "{}", sentence.text);
            let shown: Vec<_> = sentence.judged.words.iter().map(|word| &word.text[..]).collect();
            let blank = shown.join(" ").replace(" .", "."); // as the sentence is written
            assert_eq!(blank.to_lowercase(), sentence.text.replace(" .", ".").to_lowercase());
            assert!(sentence.judged.words.iter().any(|word| word.changed), "{}", sentence.text);
        }
    }

    /// A caption that cannot be split is an error; it does not count as a row that judges no words.
    #[test]
    fn an_error_of_spelling_is_told() {
        let broken = |text: &str| Err(Error::invalid("caption", "word pieces", text));
        let line = asked(|method, of| judged(method, of, 0), &broken).unwrap_err().to_string();
        assert_eq!(line, "caption: expected word pieces, got a dog runs.");
        assert!(asked(sentences, &broken).is_err());
    }
}

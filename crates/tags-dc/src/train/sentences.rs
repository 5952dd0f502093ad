//! Captions and the sentences that a trained model makes from them, word by word as a reader sees them.

use itm_core::Result;
use itm_core::learn::Items;
use itm_core::text::Word;

use super::{Assessment, TagsDc};
use crate::aligned::{Aligned, spelled};
use crate::phrases::Duplicates;
use crate::pool::among;

/// Seed of the draws.
const SEED: u64 = 0;

/// A caption of a split, as a model reads it.
#[derive(Clone, Copy)]
pub struct Caption<'a> {
    /// Images and captions of the split.
    pub items: Items<'a>,
    /// The caption's number.
    pub text: usize,
    /// The caption as it is written.
    pub caption: &'a str,
    /// The word or word piece of each number.
    pub words: &'a [String],
    /// The words of a text, each with its range of the text's numbers.
    pub spell: &'a dyn Fn(&str) -> Result<Vec<Word>>,
}

/// A caption or a sentence beside an image.
#[derive(Debug, Clone, PartialEq)]
pub struct SentenceText {
    /// As it would be written.
    pub text: String,
    /// How probable it is that sentence and image match: the sigmoid of the match logit.
    pub score: f32,
    /// Whether a sentence made from a caption scores below the caption.
    pub below: bool,
    /// The words in order.
    pub words: Vec<WordText>,
    /// A sentence made from a caption with the proposals of the word correction head in place of the words that do not match the image; `None`
    /// if the model has no word heads.
    pub corrected: Option<String>,
}

/// A word of a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct WordText {
    /// As it is written.
    pub text: String,
    /// Its number among the words of the caption; a punctuation mark has none.
    pub at: Option<usize>,
    /// Whether the caption has another word there.
    pub changed: bool,
    /// How probable it is that the word matches the image; `None` if the model has no word heads.
    pub matches: Option<f32>,
    /// Whether the word correction head proposes the caption's own word here.
    pub restored: bool,
    /// The word that this head proposes, if it is another word than the written one.
    pub correction: Option<String>,
}

impl TagsDc {
    /// The sentences that the model makes from a caption, the best first; `None` if it makes none.
    ///
    /// # Errors
    /// If an item cannot be read, or the caption cannot be split into words.
    pub fn sentences(&self, of: &Caption) -> Result<Option<Vec<SentenceText>>> {
        if !self.config.loss.synthetic() {
            return Ok(None);
        }
        let Some(read) = Aligned::new(of.caption, of.spell)? else { return Ok(Some(vec![])) };
        let written = (of.spell)(of.caption)?;
        let phrases = read.phrases(Duplicates::Kept);
        let (own, negatives) = self.negatives(&of.items, of.text, &phrases, SEED)?;
        let sentence = |negative: &Assessment| {
            let text = read.edited(&negative.tokens, &own.tokens, of.words)?.text;
            let below = negative.score < own.score;
            let words = in_words(negative, &own.tokens, &written, of.words);
            let corrected = corrections(negative, &written).map(|tokens| {
                let edit = read.edited(&tokens, &own.tokens, of.words);
                edit.map_or_else(|| of.caption.to_owned(), |edit| edit.text)
            });
            Some(SentenceText { text, score: negative.score, below, words, corrected })
        };
        Ok(Some(negatives.iter().filter_map(sentence).collect()))
    }

    /// A caption of a split beside any image of the split.
    ///
    /// # Errors
    /// If the caption or the image does not exist, an item cannot be read, or the caption cannot be split into words.
    pub fn caption(&self, of: &Caption, image: usize) -> Result<SentenceText> {
        among("text", of.text, of.items.texts.len())?;
        let tokens = self.marks.around(&of.items.texts[of.text]);
        let assessed = self.assess(&of.items, image, &[&tokens])?;
        let written = (of.spell)(of.caption)?;
        let words = in_words(&assessed[0], &tokens, &written, of.words);
        let (text, score) = (of.caption.to_owned(), assessed[0].score);
        Ok(SentenceText { text, score, below: false, words, corrected: None })
    }
}

/// The tokens of a sentence, where the pieces of every word that does not match the image are the correction head's.
fn corrections(sentence: &Assessment, written: &[Word]) -> Option<Vec<u32>> {
    let heads = sentence.words.as_ref()?;
    let mark = written.first().map_or(0, |word| word.pieces.start);
    let mut tokens = sentence.tokens.clone();
    for word in written {
        let pieces = word.pieces.start - mark + 1..word.pieces.end - mark + 1;
        if heads[pieces.clone()].iter().any(|head| head.matches < 0.5) {
            pieces.for_each(|k| tokens[k] = heads[k].correction);
        }
    }
    Some(tokens)
}

/// The words of a sentence with as many tokens as its caption. The caption has the tokens `own` and the words `written`.
fn in_words(
    sentence: &Assessment,
    own: &[u32],
    written: &[Word],
    words: &[String],
) -> Vec<WordText> {
    let mark = written.first().map_or(0, |word| word.pieces.start);
    let mut number = 0..;
    let word = |written: &Word| {
        let pieces = written.pieces.start - mark + 1..written.pieces.end - mark + 1;
        let (tokens, own) = (&sentence.tokens[pieces.clone()], &own[pieces.clone()]);
        let heads = sentence.words.as_ref().map(|heads| &heads[pieces]);
        let corrected = heads.map(|all| all.iter().map(|one| one.correction).collect::<Vec<_>>());
        let is_word = written.text.chars().any(char::is_alphanumeric);
        let changed = own != tokens;
        WordText {
            text: if changed { spelled(tokens, words) } else { written.text.clone() },
            at: is_word.then(|| number.next()).flatten(),
            changed,
            matches: heads.map(|all| all.iter().map(|one| one.matches).fold(1.0, f32::min)),
            restored: corrected.as_deref() == Some(own),
            correction: corrected.filter(|new| new != tokens).map(|new| spelled(&new, words)),
        }
    };
    written.iter().map(word).collect()
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use burn::tensor::Device;
    use itm_core::data::{Bounds, Regions};
    use itm_core::learn::ImageItems;
    use itm_core::start::StartFrom;
    use itm_core::{Error, Pairs};

    use super::*;
    use crate::Preset;
    use crate::config::TagsDcConfig;
    use crate::train::{Marks, WordAssessment};

    /// `[PAD] [UNK] [CLS] [SEP] [MASK]`, whose spelling is empty, and word pieces.
    const PIECES: [&str; 12] = ["", "", "", "", "", "a", "dog", "run", "##s", "cat", "sleep", "."];

    type Spell<'a> = &'a dyn Fn(&str) -> Result<Vec<Word>>;

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
    fn asked<T>(ask: impl Fn(&TagsDc, &Caption) -> Result<T>, spell: Spell) -> Result<T> {
        let mut config = TagsDcConfig::tags_dc(Preset::Default);
        (config.model.layers, config.model.heads, config.model.embed_dim) = (1, 2, 8);
        (config.model.published, config.model.start) = (None, StartFrom::Random);
        (config.loss.istm, config.loss.wod, config.loss.woc) = (1.0, 1.0, 1.0);
        config.synthetic.forbid_special = true;
        let marks = Marks::of_pieces([0, 1, 2, 3, 4], 5..12, PIECES.len());
        let model = TagsDc::new(&config, 3, marks, 10, &Device::flex()).unwrap();
        let regions = Regions::new(3, vec![1], vec![0.1, 0.2, 0.3]).unwrap();
        let whole = Bounds { x1: 0.0, y1: 0.0, x2: 1.0, y2: 1.0 };
        let regions = regions.with_boxes(vec![whole]).unwrap();
        let (texts, pairs) = ([vec![2, 5, 6, 7, 8, 11, 3]], Pairs::uniform(1, 1));
        let items = Items { images: ImageItems::Regions(&regions), texts: &texts, pairs: &pairs };
        let words = PIECES.map(String::from);
        ask(&model, &Caption { items, text: 0, caption: "a dog runs.", words: &words, spell })
    }

    /// By hand: three words and a sign; `runs` has two pieces.
    #[test]
    fn captions_of_word_pieces_are_shown_word_by_word() {
        let caption = asked(|model, of| model.caption(of, 0), &spell).unwrap();
        let words: Vec<_> = caption.words.iter().map(|word| (&word.text[..], word.at)).collect();
        assert_eq!(words, [("a", Some(0)), ("dog", Some(1)), ("runs", Some(2)), (".", None)]);
        assert!(caption.words.iter().all(|word| !word.changed && word.matches.is_some()));
    }

    #[test]
    fn a_caption_that_is_not_there_is_refused() {
        let none = |model: &TagsDc, of: &Caption| model.caption(&Caption { text: 1, ..*of }, 0);
        let line = asked(none, &spell).unwrap_err().to_string();
        assert_eq!(line, "text: expected a number below 1, got 1");
    }

    /// By hand: `runs` has two pieces, and one of them does not match: both are corrected. `dog` matches, so its proposal is not used.
    #[test]
    fn golden_corrections_are_of_whole_words() {
        let head = |matches, correction| WordAssessment { matches, correction };
        let heads = [(0.1, 9), (0.9, 9), (0.6, 9), (0.7, 10), (0.4, 8), (0.9, 9), (0.1, 9)]
            .map(|(m, c)| head(m, c));
        let tokens = vec![2, 5, 6, 7, 8, 11, 3];
        let words = Some(heads.to_vec());
        let sentence = Assessment { tokens: tokens.clone(), score: 0.5, words };
        let written = spell("a dog runs.").unwrap();
        assert_eq!(corrections(&sentence, &written), Some(vec![2, 5, 6, 10, 8, 11, 3]));
        assert_eq!(corrections(&Assessment { words: None, ..sentence }, &written), None);
    }

    #[test]
    fn word_pieces_make_sentences() {
        let all = asked(TagsDc::sentences, &spell).unwrap().unwrap();
        assert!(!all.is_empty());
        for sentence in &all {
            assert!(!sentence.text.contains('#'), "{}", sentence.text);
            let shown: Vec<_> = sentence.words.iter().map(|word| &word.text[..]).collect();
            let blank = shown.join(" ").replace(" .", "."); // as the sentence is written
            assert_eq!(blank.to_lowercase(), sentence.text.replace(" .", ".").to_lowercase());
            assert!(sentence.words.iter().any(|word| word.changed), "{}", sentence.text);
            let doubted = sentence.words.iter().any(|word| word.matches.is_some_and(|m| m < 0.5));
            assert!(doubted || sentence.corrected.as_ref() == Some(&sentence.text));
        }
    }

    /// A caption that cannot be split is an error; it does not count as a caption without sentences.
    #[test]
    fn an_error_of_spelling_is_told() {
        let broken = |text: &str| Err(Error::invalid("caption", "word pieces", text));
        let line = asked(|model, of| model.caption(of, 0), &broken).unwrap_err().to_string();
        assert_eq!(line, "caption: expected word pieces, got a dog runs.");
        assert!(asked(TagsDc::sentences, &broken).is_err());
    }
}

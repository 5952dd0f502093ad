//! Negatives of a caption by your own model, without any framework: phrases, masks, refills, filter, pool, JSON lines.
//!
//! The model here counts words. A word is more probable if more captions have it. A sentence matches the image better if more captions of
//! the image have its words.
//!
//! ```text
//! cargo run -p tags-dc --example own_negatives
//! ```

use std::io::Write;

use tags_dc::edits::exchanged;
use tags_dc::phrases::{Duplicates, Sentence, parse};
use tags_dc::record::{self, Kind, Record};
use tags_dc::{
    CaptionWords, Choice, Filter, Generator, MaskBy, Masker, Masking, Negative, Refill, Result,
    Scores, Tailor,
};

/// Captions of three images.
const IMAGES: [&[&str]; 3] = [
    &["A brown dog jumps over a log.", "A dog leaps over a fallen tree."],
    &["Two women talk near a red bus.", "Two people wait for a bus."],
    &["A child eats a cake.", "A small child holds a brown cake."],
];
const SEED: u64 = 1;

/// The tokens before a sentence, after it, and in place of a masked word. Words have the numbers from 3 on.
const CLS: u32 = 0;
const SEP: u32 = 1;
const MASK: u32 = 2;

/// The words of all captions in lower case, without punctuation. Word `k` is token `k + 3`.
struct Vocabulary(Vec<String>);

impl Vocabulary {
    fn of(captions: impl Iterator<Item = Sentence>) -> Self {
        let all =
            captions.flat_map(|caption| words(&caption).map(|(_, word)| word).collect::<Vec<_>>());
        let mut all: Vec<String> = all.collect();
        all.sort();
        all.dedup();
        Self(all)
    }

    fn tokens(&self) -> usize {
        self.0.len() + 3
    }

    fn word(&self, token: u32) -> &str {
        &self.0[token as usize - 3]
    }

    /// `[CLS]`, the words, `[SEP]`.
    fn read(&self, caption: &Sentence) -> Vec<u32> {
        let number = |(_, word): (usize, String)| {
            self.0.binary_search(&word).expect("the vocabulary has all words") as u32 + 3
        };
        [CLS].into_iter().chain(words(caption).map(number)).chain([SEP]).collect()
    }
}

/// Position and lower-case form of each word that is not punctuation.
fn words(caption: &Sentence) -> impl Iterator<Item = (usize, String)> {
    let words = caption.words.iter().enumerate();
    let words = words.filter(|(_, word)| word.text.chars().any(char::is_alphanumeric));
    words.map(|(at, word)| (at, word.text.to_lowercase()))
}

/// The phrases of a caption, as positions among the words that are not punctuation.
fn phrases(caption: &Sentence) -> Vec<Vec<usize>> {
    let kept: Vec<usize> = words(caption).map(|(at, _)| at).collect();
    let pieces = (0..caption.words.len()).map(|at| match kept.binary_search(&at) {
        Ok(place) => place..place + 1,
        Err(_) => 0..0, // punctuation has no token
    });
    let pieces: Vec<_> = pieces.collect();
    caption.phrases(Duplicates::Once).expand(&pieces).lists(kept.len())
}

/// A model beside one image.
struct Counts {
    /// How many captions of all images have a token.
    all: Vec<f32>,
    /// How many captions of this image have a token.
    here: Vec<f32>,
}

impl Counts {
    fn new(tokens: usize, all: &[Vec<u32>], here: &[Vec<u32>]) -> Self {
        let counts = |captions: &[Vec<u32>]| {
            let of = |token| captions.iter().filter(|caption| caption.contains(&token)).count();
            (0..tokens as u32).map(|token| of(token) as f32).collect()
        };
        Self { all: counts(all), here: counts(here) }
    }
}

impl Generator for Counts {
    fn vocabulary(&self) -> usize {
        self.all.len()
    }

    /// Log counts, the same at every target.
    fn logits(&mut self, rows: &[Masking]) -> Result<Vec<f32>> {
        let targets: usize = rows.iter().map(|row| row.targets().count()).sum();
        let one: Vec<f32> = self.all.iter().map(|count| count.ln()).collect();
        Ok(one.repeat(targets))
    }
}

impl Scores for Counts {
    fn scores(&mut self, rows: &[&[u32]]) -> Result<Vec<f32>> {
        let of = |row: &&[u32]| row.iter().map(|&token| self.here[token as usize]).sum::<f32>();
        Ok(rows.iter().map(of).collect())
    }
}

/// A negative as a record: which words of the caption were replaced, and by which words.
fn record(
    id: String,
    caption: &Sentence,
    own: &[u32],
    negative: &Negative,
    vocabulary: &Vocabulary,
) -> Option<Record> {
    let tokens = own.iter().zip(&negative.tokens).skip(1);
    let changed = words(caption).zip(tokens).filter(|(_, (old, new))| old != new);
    let changed = changed.map(|((at, _), (_, &new))| (at, vocabulary.word(new).to_owned()));
    let edit = exchanged(caption, Kind::Refill, changed.collect())?;
    let (positions, old, new, text) = (edit.positions, edit.old, edit.new, edit.text);
    let (kind, score) = (Kind::Refill, Some(negative.score));
    Some(Record { caption: id, seed: SEED, kind, positions, old, new, text, score })
}

/// Writes the three best negatives of every caption as JSON lines.
pub(crate) fn write(out: &mut impl Write) -> Result<()> {
    let images: Vec<Vec<Sentence>> =
        IMAGES.iter().map(|image| image.iter().map(|text| parse(text)).collect()).collect();
    let vocabulary = Vocabulary::of(images.iter().flatten().cloned());
    let read = |image: &Vec<Sentence>| -> Vec<Vec<u32>> {
        image.iter().map(|caption| vocabulary.read(caption)).collect()
    };
    let tokens: Vec<Vec<Vec<u32>>> = images.iter().map(read).collect();
    let all = tokens.concat();
    let words = MASK + 1..vocabulary.tokens() as u32;
    let tailor = Tailor {
        masker: Masker::new(MaskBy::Phrases, 0.15, MASK, words)?,
        maskings: 20,
        refill: Refill { draws: 20, temperature: 1.5, forbid: vec![CLS, SEP, MASK] },
        filter: Filter::Paper,
        choice: Choice::Best,
        kept: 3,
    };
    let mut number = 0;
    let mut lines = vec![];
    for (image, (sentences, here)) in images.iter().zip(&tokens).enumerate() {
        let mut model = Counts::new(vocabulary.tokens(), &all, here);
        let told = CaptionWords::of(here.iter().map(Vec::as_slice));
        for (k, (caption, own)) in sentences.iter().zip(here).enumerate() {
            let lists = phrases(caption);
            let best = tailor.negatives(own, &lists, &told, &mut model, SEED, number)?;
            for negative in &best {
                let id = format!("{image}#{k}");
                lines.extend(record(id, caption, own, negative, &vocabulary));
            }
            number += 1;
        }
    }
    record::write(&lines, out, "the negatives")
}

fn main() {
    if let Err(error) = write(&mut std::io::stdout()) {
        eprintln!("{error}");
        std::process::exit(2);
    }
}

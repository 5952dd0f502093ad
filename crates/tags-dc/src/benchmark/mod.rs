//! Benchmarks of compositional captions: SugarCrepe, ARO, VALSE and Winoground, from their published files, for any model with scores.
//!
//! | benchmark | a question is right if | chance |
//! |---|---|---|
//! | SugarCrepe, VALSE, ARO's VG-Relation and VG-Attribution | s(v, w) > s(v, w⁻) | 1/2 |
//! | ARO's COCO-Order and Flickr30k-Order | s(v, w) > s(v, w⁻) for up to four orders w⁻ of the words | 1/5, more with fewer orders |
//! | Winoground, text score | s(v₀, w₀) > s(v₀, w₁) and s(v₁, w₁) > s(v₁, w₀) | 1/4 |
//! | Winoground, image score | s(v₀, w₀) > s(v₁, w₀) and s(v₁, w₁) > s(v₀, w₁) | 1/4 |
//! | Winoground, group score | both | 1/6 |
//!
//! A model that never sees the picture passes much of some of these sets, so a blind score stands beside the model's:
//! [`Benchmark::blind`].
//!
//! # Departures
//! - A tie counts against the model everywhere. ARO's program takes the first of equal captions, which is the true one in the order sets
//!   and the false one elsewhere.
//! - The order sets are not published: ARO's program draws them with the tags of spaCy and the tokens of NLTK. Here the tags and words are
//!   [`parse`](crate::phrases::parse)'s; an order that equals the caption is drawn again, and one that equals another order is left out. Blanks stand
//!   around each token, also in the true caption (`the boy 's dog , a brown one ,`). Compare accuracies of these sets with each other,
//!   and only roughly with printed ones.
//! - VALSE: only the sentences that two of three annotators confirmed, as its authors advise.

mod judge;
mod orders;
mod read;

use std::collections::{HashMap, HashSet};

use itm_core::{Error, Result};
use serde::Serialize;

use crate::fluency::Trigrams;

pub use judge::{Line, Measure};
pub use read::Format;

/// The longest caption, in bytes.
const LONGEST: usize = 10_000;

/// What a false caption changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Category {
    /// An object: another one, one more, or two that change places.
    Object,
    /// An attribute; numbers and quantifiers are attributes.
    Attribute,
    /// A relation; verbs are relations.
    Relation,
    /// The order of the same words.
    Order,
    /// What a pronoun stands for, or words of a model.
    Other,
}

/// A picture of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchmarkPicture {
    /// Its name: the file's name, with the box if the picture is a part of the file.
    pub name: String,
    /// The file that the benchmark names.
    pub file: String,
    /// Left, top, width and height in pixels of the part that the questions show: ARO's pictures of Visual Genome.
    pub part: Option<[i64; 4]>,
}

/// What a question asks of the scores. The numbers count pictures and captions of the benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Which caption does the picture show?
    Caption {
        /// The picture.
        picture: usize,
        /// The true caption, then the false ones.
        captions: Vec<usize>,
    },
    /// Which caption belongs to which picture? Caption k is true of picture k.
    Pairs {
        /// Both pictures.
        pictures: [usize; 2],
        /// Both captions.
        captions: [usize; 2],
    },
}

/// A question of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What the false caption changes.
    pub category: Category,
    /// The benchmark's own name for questions of this sort: a file, a relation, a pair of attributes, a tag.
    pub subset: String,
    /// What is asked.
    pub ask: Ask,
}

/// Questions with their pictures and captions.
///
/// ```
/// use tags_dc::benchmark::{Benchmark, Format, Measure};
///
/// let folder = tempfile::tempdir().expect("a folder");
/// let file = folder.path().join("swap_att.json");
/// let text = r#"{"0": {"filename": "1.jpg", "caption": "A red bus by a blue car", "negative_caption": "A blue bus by a red car"}}"#;
/// std::fs::write(&file, text).expect("a file");
/// let benchmark = Benchmark::read(Format::Sugarcrepe, &[file], 0)?;
/// assert_eq!(benchmark.pairs(), [(0, 0), (0, 1)]); // picture and caption: your model scores these
/// let lines = benchmark.judge(|_, caption| [0.7, 0.4][caption])?;
/// assert_eq!((lines[0].measure, lines[0].right.value), (Measure::Accuracy, 1.0));
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Benchmark {
    /// All pictures, each once.
    pub pictures: Vec<BenchmarkPicture>,
    /// All captions, each once, with single blanks.
    pub captions: Vec<String>,
    /// The questions.
    pub questions: Vec<Question>,
    /// Entries that are no questions: annotators did not confirm them, or the words have no other order.
    pub left_out: usize,
}

impl Benchmark {
    /// The pairs of a picture and a caption that need a score, each once, in the order of the questions.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let mut seen = HashSet::new();
        let all = self.questions.iter().flat_map(|question| question.ask.pairs());
        all.filter(|&pair| seen.insert(pair)).collect()
    }

    /// The log-probability per word of each caption under a model of captions alone: a score that does not see the picture.
    pub fn blind(&self, model: &Trigrams) -> Vec<f64> {
        let score = |caption: &String| {
            let (surprise, words) = model.surprise(caption);
            -surprise / words as f64
        };
        self.captions.iter().map(score).collect()
    }
}

impl Ask {
    fn pairs(&self) -> Vec<(usize, usize)> {
        match self {
            Self::Caption { picture, captions } => {
                captions.iter().map(|&caption| (*picture, caption)).collect()
            }
            Self::Pairs { pictures, captions } => {
                let of = |&picture: &usize| captions.map(|caption| (picture, caption));
                pictures.iter().flat_map(of).collect()
            }
        }
    }
}

/// One entry of SugarCrepe's files.
#[derive(Serialize, serde::Deserialize)]
pub(crate) struct Contrast {
    /// Name of the picture.
    #[serde(rename = "filename")]
    pub(crate) picture: String,
    /// The true caption.
    pub(crate) caption: String,
    /// The false caption.
    #[serde(rename = "negative_caption")]
    pub(crate) negative: String,
}

/// Pictures and captions, each once, while a file is read.
#[derive(Default)]
struct Builder {
    benchmark: Benchmark,
    pictures: HashMap<String, usize>,
    captions: HashMap<String, usize>,
}

impl Builder {
    fn picture(&mut self, place: &str, file: &str, part: Option<[i64; 4]>) -> Result<usize> {
        let fits = !file.trim().is_empty() && !file.contains(char::is_control);
        Error::unless(fits, place, "the name of a picture", format_args!("{file:?}"))?;
        let name = part.map_or_else(|| file.to_owned(), |part| part_name(file, part));
        let all = &mut self.benchmark.pictures;
        Ok(*self.pictures.entry(name.clone()).or_insert_with(|| {
            all.push(BenchmarkPicture { name, file: file.to_owned(), part });
            all.len() - 1
        }))
    }

    fn caption(&mut self, place: &str, text: &str) -> Result<usize> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = format_args!("a caption of 1 to {LONGEST} bytes");
        let fits = !text.is_empty() && text.len() <= LONGEST;
        Error::unless(fits, place, expected, format_args!("{} bytes", text.len()))?;
        let all = &mut self.benchmark.captions;
        Ok(*self.captions.entry(text.clone()).or_insert_with(|| {
            all.push(text);
            all.len() - 1
        }))
    }

    fn ask(&mut self, category: Category, subset: &str, ask: Ask) {
        self.benchmark.questions.push(Question { category, subset: subset.to_owned(), ask });
    }
}

/// `17.jpg` and a box become `17_1_2_30_40.jpg`.
fn part_name(file: &str, [x, y, width, height]: [i64; 4]) -> String {
    let (stem, end) = file.rsplit_once('.').unwrap_or((file, "jpg"));
    format!("{stem}_{x}_{y}_{width}_{height}.{end}")
}

#[cfg(test)]
mod tests;

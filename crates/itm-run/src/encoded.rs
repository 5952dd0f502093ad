//! The splits in the form that a method reads: transformed features, and captions as numbers of words, word pieces or stems.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use itm_core::cca::CcaOptions;
use itm_core::data::{CentredRoots, Dataset, Features, Split, WordVectors, mean_row};
use itm_core::encoders::{DualPieces, DualShape};
use itm_core::learn::Word;
use itm_core::text::{
    CLEANED_WORDS, Marks, Terms, Vocabulary, VocabularyOptions, WordPieces, clean_caption,
};
use itm_core::{Error, Result};
use rayon::prelude::*;

use crate::config::{ImageFeatures, Target};
use crate::source::Source;

/// How a method reads captions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Captions {
    /// As words of the target's vocabulary. Marks around the words are for an encoder that needs them, such as a BERT with random
    /// weights, which has no vocabulary of its own.
    Words(Marks),
    /// As the word pieces of a BERT whose vocabulary is in this folder; captions are not cut off here.
    Pieces(PathBuf, Cleaning),
    /// As the word pieces of the CLIP or SigLIP in this folder, which cuts captions itself.
    DualPieces(PathBuf),
    /// As a set of stems, for a bag of words, with the number of the caption's given row, if there are rows. Stems that the training
    /// captions do not have are left out, so the set may be empty.
    Stems,
    /// As the number of the caption's given row alone.
    Rows,
}

impl Default for Captions {
    fn default() -> Self {
        Self::Words(Marks::Off)
    }
}

/// What happens to a caption before it becomes word pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleaning {
    /// Nothing: case, punctuation and accents stay for the tokenizer.
    Raw,
    /// [`clean_caption`], as FNE does.
    Cleaned,
}

impl Cleaning {
    fn of(self, caption: &str) -> Cow<'_, str> {
        match self {
            Self::Raw => Cow::Borrowed(caption),
            Self::Cleaned => Cow::Owned(clean_caption(caption, CLEANED_WORDS)),
        }
    }
}

impl Captions {
    /// Adds the marks that a target wants around the words; `None` if captions already have marks, or have no order.
    pub(crate) fn marked(self, marks: Marks) -> Option<Self> {
        match (marks, self) {
            (Marks::Off, captions) => Some(captions),
            (Marks::StartEnd, Self::Words(Marks::Off)) => Some(Self::Words(marks)),
            (Marks::StartEnd, _) => None,
        }
    }
}

/// The transformed features of all splits; a mean is the mean of the training split.
///
/// Given rows stand beside them, minus their own mean. The features have width 0 if a method sees pictures. In the order of [`Split::ALL`].
pub(crate) fn features(data: &Dataset, target: &Target) -> [Features; 3] {
    let parts = [&data.train, &data.val, &data.test];
    let train = &data.train.features;
    let centred = match target.features {
        ImageFeatures::Pictures => return parts.map(|_| Features { dim: 0, values: vec![] }),
        ImageFeatures::Given => None,
        ImageFeatures::CentredRoots => Some(CentredRoots::of(train)),
        ImageFeatures::CentredRootsFree => Some(CentredRoots::of_free_length(train)),
    };
    let given = &data.train.embeddings.images;
    let mean = mean_row(&given.values, given.dim);
    parts.map(|part| {
        let features = match &centred {
            Some(centred) => centred.apply(&part.features),
            None => part.features.clone(),
        };
        beside(features, &part.embeddings.images, &mean)
    })
}

/// Features with rows minus `mean` beside them.
fn beside(features: Features, rows: &Features, mean: &[f64]) -> Features {
    if rows.dim == 0 {
        return features;
    }
    let mut values = Vec::with_capacity(features.values.len() + rows.values.len());
    for k in 0..rows.rows() {
        values.extend_from_slice(features.row(k));
        values.extend(rows.row(k).iter().zip(mean).map(|(&x, mean)| (f64::from(x) - mean) as f32));
    }
    Features { dim: features.dim + rows.dim, values }
}

/// The given rows of captions, of width 0 if there are none, and the row of each caption.
fn caption_rows(data: &Dataset) -> (Arc<Features>, HashMap<String, u32>) {
    let dim = data.train.embeddings.texts.dim;
    let (mut values, mut numbers) = (vec![], HashMap::new());
    for part in [&data.train, &data.val, &data.test].into_iter().filter(|_| dim > 0) {
        for (k, caption) in part.captions.iter().enumerate() {
            if !numbers.contains_key(caption) {
                numbers.insert(caption.clone(), numbers.len() as u32);
                values.extend_from_slice(part.embeddings.texts.row(k));
            }
        }
    }
    (Arc::new(Features { dim, values }), numbers)
}

/// The captions of all splits as numbers. The vocabulary comes from the training split only, or from a file.
pub(crate) struct Reading {
    /// How the captions are read.
    pub(crate) captions: Captions,
    /// Number of words, word pieces or stems.
    pub(crate) vocabulary: usize,
    /// In the order of [`Split::ALL`].
    texts: [Vec<Vec<u32>>; 3],
    reader: Reader,
}

impl Reading {
    /// Reads all splits.
    ///
    /// # Errors
    /// If the folder has no word pieces, a caption has no word pieces, no stem of the training captions is frequent enough, the
    /// vocabulary file cannot be read, or a caption without marks is empty.
    pub(crate) fn new(source: &Source, target: &Target, captions: Captions) -> Result<Self> {
        let data = &source.dataset;
        let words = |marks: Marks| {
            let Target { min_word_count: min_count, tokens, .. } = *target;
            let options = VocabularyOptions { min_count, tokens, marks };
            match &source.vocabulary {
                Some(file) => Vocabulary::read(file, options),
                None => Ok(Vocabulary::build(&data.train.captions, options)),
            }
        };
        let reader = match &captions {
            Captions::Words(marks) => Reader::Words(words(*marks)?, target.max_words),
            Captions::Pieces(folder, cleaning) => {
                Reader::Pieces(Box::new(WordPieces::open(folder)?), *cleaning)
            }
            Captions::DualPieces(folder) => {
                let shape = DualShape::read(folder)?.text;
                Reader::DualPieces(Box::new(DualPieces::open(folder, &shape)?))
            }
            Captions::Stems => {
                let (terms, (rows, numbers)) = (stems(data)?, caption_rows(data));
                Reader::Stems(terms, rows, numbers)
            }
            Captions::Rows => {
                let (rows, numbers) = caption_rows(data);
                let (place, expected) =
                    ("model.text.pooling = \"off\"", "rows of captions in target.embeddings");
                Error::unless(rows.dim > 0, place, expected, "none")?;
                Reader::Stems(Terms::fit(&[] as &[&str], 1, 0), rows, numbers)
            }
        };
        let vocabulary = match &reader {
            Reader::Words(vocabulary, _) => vocabulary.len(),
            Reader::Pieces(pieces, _) => pieces.vocabulary(),
            Reader::DualPieces(pieces) => pieces.vocabulary(),
            Reader::Stems(terms, rows, _) => terms.len() + rows.dim,
        };
        let mut reading = Self { captions, vocabulary, texts: Default::default(), reader };
        let read = |split: Split| -> Result<Vec<Vec<u32>>> {
            let all = source.part(split).0.captions.par_iter().enumerate();
            let place = |k: usize| format!("{}, line {} of the {split} captions", data.name, k + 1);
            all.map(|(k, caption)| reading.read_at(&|| place(k), caption)).collect()
        };
        let [train, val, test] = Split::ALL.map(read);
        reading.texts = [train?, val?, test?];
        Ok(reading)
    }

    /// The texts of a split.
    pub(crate) fn texts(&self, split: Split) -> &[Vec<u32>] {
        &self.texts[split as usize]
    }

    /// The stems, if captions are read as stems.
    pub(crate) fn terms(&self) -> Option<&Terms> {
        if let Reader::Stems(terms, ..) = &self.reader { Some(terms) } else { None }
    }

    /// The given rows of captions, if they are read.
    pub(crate) fn rows(&self) -> Option<Arc<Features>> {
        let Reader::Stems(_, rows, _) = &self.reader else { return None };
        (rows.dim > 0).then(|| rows.clone())
    }

    /// A caption as numbers.
    ///
    /// # Errors
    /// If the caption is empty and has no marks, or if it has no word pieces.
    pub(crate) fn read(&self, caption: &str) -> Result<Vec<u32>> {
        self.read_at(&|| format!("caption \"{caption}\""), caption)
    }

    fn read_at(&self, place: &dyn Fn() -> String, caption: &str) -> Result<Vec<u32>> {
        let is_bare =
            matches!(self.captions, Captions::Words(Marks::Off) | Captions::Stems | Captions::Rows);
        if caption.trim().is_empty() && is_bare {
            let expected = "a caption that is not empty, because it has no marks";
            return Err(Error::invalid(place(), expected, "an empty line"));
        }
        match &self.reader {
            Reader::Words(vocabulary, most) => Ok(vocabulary.encode(caption, *most)),
            Reader::Pieces(pieces, cleaning) => pieces.encode(&cleaning.of(caption)),
            Reader::DualPieces(pieces) => Ok(pieces.encode(caption)?.0),
            Reader::Stems(terms, rows, of_captions) => {
                let mut numbers = terms.numbers(caption);
                if rows.dim > 0 {
                    let row = of_captions.get(caption).ok_or_else(|| {
                        Error::invalid(place(), "a caption with a row in target.embeddings", "none")
                    })?;
                    numbers.push(self.vocabulary as u32 + row);
                }
                Ok(numbers)
            }
        }
    }

    /// The words, if captions are read as words.
    fn known_words(&self) -> Option<&Vocabulary> {
        if let Reader::Words(vocabulary, _) = &self.reader { Some(vocabulary) } else { None }
    }

    /// The word of each number, empty for a number that is no word; `None` if captions are not read as words.
    pub(crate) fn words_by_number(&self) -> Option<Vec<&str>> {
        Some(self.known_words()?.spelled().collect())
    }

    /// The word or word piece of each number, empty for a number that is neither; `None` if captions are read in another way.
    pub(crate) fn spelled_by_number(&self) -> Option<Vec<String>> {
        match &self.reader {
            Reader::Words(vocabulary, _) => Some(vocabulary.spelled().map(str::to_owned).collect()),
            Reader::Pieces(pieces, _) => Some(pieces.spelled()),
            Reader::DualPieces(_) | Reader::Stems(..) => None,
        }
    }

    /// Ready vectors for the words, from a file.
    ///
    /// # Errors
    /// If captions are not read as words, or if [`WordVectors::read`] fails.
    pub(crate) fn vectors(&self, file: &Path) -> Result<WordVectors> {
        let others = || Error::invalid("word vectors", "captions that are read as words", "others");
        WordVectors::read(file, self.known_words().ok_or_else(others)?)
    }

    /// What a reader of a report must know about a vocabulary that is not built from the training captions.
    pub(crate) fn note(&self, source: &Source) -> Option<String> {
        let (vocabulary, file) = (self.known_words()?, source.vocabulary.as_ref()?);
        let unseen = vocabulary.unseen(&source.dataset.train.captions);
        let (name, all) = (file.file_name()?.to_string_lossy(), vocabulary.len());
        Some(format!(
            "the vocabulary comes from `{name}`: {all} entries, {unseen} of them in no training caption"
        ))
    }

    /// What a reader of a report must know about captions that were cut at the largest number of words, or have no known word.
    pub(crate) fn cut(&self, source: &Source) -> Vec<String> {
        let (most, by) = match &self.reader {
            Reader::Words(_, most) => (*most, "max_words"),
            Reader::Pieces(_, Cleaning::Cleaned) => {
                (CLEANED_WORDS, "as the released cleaning does")
            }
            Reader::Pieces(..) | Reader::DualPieces(_) | Reader::Stems(..) => return vec![],
        };
        let known: HashSet<&str> = self.words_by_number().into_iter().flatten().collect();
        let lost = |caption: &String| {
            let Some(vocabulary) = self.known_words() else {
                let words = clean_caption(caption, most + 1).split(' ').count();
                return [usize::from(words > most), 0];
            };
            let words = vocabulary.options().tokens.of(caption);
            let without = !words.iter().take(most).any(|word| known.contains(word.as_str()));
            [words.len() > most, without].map(usize::from)
        };
        let counted = |split: Split| {
            let captions = &source.part(split).0.captions;
            let lost = captions.par_iter().map(lost);
            let [cut, without] = lost.reduce(|| [0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
            let (all, first) = (captions.len(), format!("cut to their first {most} words ({by})"));
            [note(split, cut, all, &first), note(split, without, all, "have no known word")]
        };
        Split::ALL.into_iter().flat_map(counted).flatten().collect()
    }

    /// What a reader of a report must know about captions of more word pieces than an encoder takes.
    pub(crate) fn cut_pieces(&self, source: &Source, most: usize) -> Vec<String> {
        let counted = |split: Split| {
            let texts = self.texts(split);
            let cut = match &self.reader {
                Reader::DualPieces(pieces) => {
                    let captions = source.part(split).0.captions.par_iter();
                    captions.filter(|c| pieces.encode(c).is_ok_and(|(_, cut)| cut)).count()
                }
                _ => texts.iter().filter(|text| text.len() > most).count(),
            };
            let what = format!("have more than {most} word pieces (max_length)");
            note(split, cut, texts.len(), &what)
        };
        Split::ALL.into_iter().filter_map(counted).collect()
    }

    /// The words of a caption as a method reads it; empty if the words are not known.
    ///
    /// # Errors
    /// If the caption has no word pieces.
    pub(crate) fn words(&self, caption: &str) -> Result<Vec<Word>> {
        match &self.reader {
            Reader::Words(vocabulary, most) => {
                let VocabularyOptions { tokens, marks, .. } = vocabulary.options();
                let first = usize::from(marks == Marks::StartEnd);
                let words = tokens.of(caption).into_iter().take(*most).zip(first..);
                Ok(words.map(|(text, k)| Word { text, pieces: k..k + 1 }).collect())
            }
            Reader::Pieces(pieces, cleaning) => pieces.words(&cleaning.of(caption)),
            Reader::DualPieces(_) | Reader::Stems(..) => Ok(vec![]),
        }
    }
}

/// What a reader of a report must know about some captions of a split, if there are any.
fn note(split: Split, some: usize, all: usize, what: &str) -> Option<String> {
    (some > 0).then(|| format!("{split}: {some} of {all} captions {what}"))
}

enum Reader {
    /// The vocabulary, and the largest number of words of a caption.
    Words(Vocabulary, usize),
    Pieces(Box<WordPieces>, Cleaning),
    DualPieces(Box<DualPieces>),
    /// Stems, which may be none, given rows, which may be of width 0, and the row of each caption.
    Stems(Terms, Arc<Features>, HashMap<String, u32>),
}

/// The stems of the closed-form baseline.
///
/// # Errors
/// If no stem of the training captions is frequent enough.
pub(crate) fn stems(data: &Dataset) -> Result<Terms> {
    let CcaOptions { min_captions, max_terms, .. } = CcaOptions::default();
    let terms = Terms::fit(&data.train.captions, min_captions, max_terms);
    let place = format_args!("{}, training captions", data.name);
    let expected = format_args!("a word that occurs in {min_captions} of them");
    Error::unless(!terms.is_empty(), place, expected, "none")?;
    Ok(terms)
}

#[cfg(test)]
mod tests;

//! Forms of the text map: converts the map of CCA, which is for stems, for encoders that read captions in other ways.

use serde::{Deserialize, Serialize};

use super::Start;
use crate::text::Terms;

/// The weights of the terms of a caption in a bag of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BagPooling {
    /// Each term has its inverse document frequency; the vector of a caption has unit length.
    #[default]
    TfIdf,
    /// All terms have the same weight: the mean of the rows, as with an ordinary embedding table.
    Mean,
    /// No term counts, only the given row of a caption.
    Off,
}

/// The input of a text encoder. It decides the rows of the text map of a [`Start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TextForm {
    /// The set of stems of a caption: one row per stem.
    Stems(BagPooling),
    /// The words in order: one row per number of the vocabulary.
    Words,
}

/// Number of training captions that give the scale of mean-pooled word vectors.
const POOLED_CAPTIONS: usize = 3000;

impl Start {
    /// Converts the start for a text encoder that averages the word vectors of a caption and does not use idf.
    ///
    /// ```text
    /// e_t = c · idf_t · W′y[t]     c = mean of n / √(Σ_t idf_t²) over the first 3,000 captions with a known term
    /// ```
    ///
    /// `n` counts the distinct terms of a caption. `c` replaces the factor of each caption, so the scores are close to
    /// the scores of CCA but not equal.
    ///
    /// # Panics
    /// If the text map has fewer rows than there are terms.
    pub fn mean_pooled(mut self, captions: &[String], terms: &Terms) -> Self {
        let factors: Vec<f64> = captions
            .iter()
            .take(POOLED_CAPTIONS)
            .map(|text| terms.numbers(text))
            .filter(|numbers| !numbers.is_empty())
            .map(|numbers| {
                let squares = numbers.iter().map(|&n| terms.idf()[n as usize].powi(2));
                numbers.len() as f64 / squares.sum::<f64>().sqrt()
            })
            .collect();
        let (width, n) = (self.text.bias.len(), terms.len());
        let fits = width > 0 && self.text.weight.len() >= n * width; // given rows stand behind the terms
        assert!(fits, "a text map of {} values for {n} terms", self.text.weight.len());
        let c = factors.iter().sum::<f64>() / factors.len().max(1) as f64;
        for (row, idf) in self.text.weight.chunks_mut(self.text.bias.len()).zip(terms.idf()) {
            row.iter_mut().for_each(|w| *w = (c * idf * f64::from(*w)) as f32);
        }
        self
    }

    /// Converts the start for a text encoder that reads words in order.
    ///
    /// ```text
    /// e_w = Σ_t c · idf_t · W′y[t] + b′y     t: the known stems of w; `t-shirt` has two, most words one
    /// ```
    ///
    /// `words` lists the vocabulary by number, with an empty string for a number that is no word. Row `w` of
    /// [`Start::text`] is `e_w − b′y`: zeros for a number without a word and for a word without a known stem. `c` is
    /// the factor of [`Start::mean_pooled`]. So if every word of a caption has a known stem and occurs once, the mean
    /// over the words is the mean over the terms.
    ///
    /// # Panics
    /// As [`Start::mean_pooled`].
    pub fn of_words<S: AsRef<str>>(self, captions: &[String], terms: &Terms, words: &[S]) -> Self {
        let mut start = self.mean_pooled(captions, terms);
        let (width, rows) = (start.text.bias.len(), start.text.weight);
        start.text.weight = vec![0.0; words.len() * width];
        for (word, to) in words.iter().zip(start.text.weight.chunks_mut(width)) {
            for stem in terms.numbers(word.as_ref()) {
                let row = &rows[stem as usize * width..][..width];
                to.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
        }
        start
    }
}

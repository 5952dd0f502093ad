//! Forms of the text map: what CCA has for stems, for encoders that read captions in other ways.

use serde::{Deserialize, Serialize};

use super::Start;
use crate::text::Terms;

/// What the terms of a caption count in a bag of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BagPooling {
    /// Their inverse document frequency; the values of a caption together have unit length.
    #[default]
    TfIdf,
    /// All the same: the mean of the rows, an ordinary embedding table.
    Mean,
}

/// What a text encoder reads: which rows the text map of a [`Start`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TextForm {
    /// The set of the stems of a caption: a row a stem.
    Stems(BagPooling),
    /// Words in their order: a row a number of the vocabulary.
    Words,
}

/// Training captions that the scale of mean-pooled word vectors is taken from.
const POOLED_CAPTIONS: usize = 3000;

impl Start {
    /// The same for a text encoder that averages the word vectors of a caption, and knows no idf.
    ///
    /// ```text
    /// e_t = c · idf_t · W′y[t]     c = mean of n / √(Σ_t idf_t²) over the first 3,000 captions with a known term
    /// ```
    ///
    /// `n` counts the distinct terms of a caption. `c` stands in for each caption's own factor, so scores are near to those
    /// of CCA and not equal.
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
        let c = factors.iter().sum::<f64>() / factors.len().max(1) as f64;
        for (row, idf) in self.text.weight.chunks_mut(self.text.bias.len()).zip(terms.idf()) {
            row.iter_mut().for_each(|w| *w = (c * idf * f64::from(*w)) as f32);
        }
        self
    }

    /// The same for a text encoder that reads words in their order.
    ///
    /// ```text
    /// e_w = Σ_t c · idf_t · W′y[t] + b′y     t: the known stems of w; `t-shirt` has two, most words one
    /// ```
    ///
    /// `words` names the vocabulary by number, with nothing for a number that is no word. [`Start::text`] has `e_w − b′y` as
    /// row `w`: zeros for a number without a word and for a word without a known stem. `c` is that of
    /// [`Start::mean_pooled`]: a mean over the words of a caption, each of known stem and once, is a mean over its terms.
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

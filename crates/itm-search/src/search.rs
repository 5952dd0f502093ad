//! Answers to queries.

use std::cmp::Ordering;

use image::DynamicImage;
use itm_core::tiles::{Embeddings, Panels};
use itm_core::{Error, Result};

use crate::encoder::{length, pictures, texts};
use crate::exif::{has_form, is_day};
use crate::pass::Pass;
use crate::{Encoder, Index, Query, What};

/// Words of a query that [`Searcher::why`] shows.
const MOST_WORDS: usize = 32;

/// An index with the model of its rows.
pub struct Searcher {
    index: Index,
    encoder: Box<dyn Encoder>,
    pass: Pass,
}

/// Which pictures may answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Only pictures below this folder of the photographs.
    pub folder: Option<String>,
    /// Only pictures taken then or later: `2024`, `2024-05`, `2024-05-01T12:30`.
    pub after: Option<String>,
    /// Only pictures taken earlier.
    pub before: Option<String>,
}

/// How a query is answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The most hits.
    pub top: usize,
    /// Whether scores are corrected for hubs.
    pub corrected: bool,
    /// The least score of a hit.
    pub threshold: Option<f32>,
    /// Which pictures may answer.
    pub filter: Filter,
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Best first; equal scores in the order of the pictures. Pictures of the query itself are left out.
    pub hits: Vec<Hit>,
    /// Whether the best score reaches the level. Without words in the query: whether another picture passed the filter, because the level
    /// is of sentences.
    pub found: bool,
    /// What ordinary queries reach: the median over the bank of the score of the best picture.
    pub level: f32,
    /// Pictures that pass the filter.
    pub candidates: usize,
}

/// One picture of an [`Answer`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its number.
    pub picture: usize,
    /// The score by which it is ranked.
    pub score: f32,
    /// Its cosine with the query.
    pub cosine: f32,
}

/// Which patches of a picture the words of a query are near to.
#[derive(Debug, Clone, PartialEq)]
pub struct Why {
    /// Rows and columns of the patches.
    pub grid: [usize; 2],
    /// Each word with its cosine with each patch.
    pub words: Vec<(String, Vec<f32>)>,
}

impl Searcher {
    /// Joins an index and a model.
    ///
    /// # Errors
    /// If the index has rows of another model.
    pub fn new(index: Index, encoder: Box<dyn Encoder>) -> Result<Self> {
        let (model, of) = (encoder.model(), &index.manifest);
        let fits = (&model.identity, model.width) == (&of.identity, of.width);
        let expected = format_args!("{}, as the index was made with", of.model);
        Error::unless(fits, "model", expected, format_args!("{}, or other weights", model.name))?;
        Ok(Self { index, encoder, pass: Pass::default() })
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The model.
    pub fn encoder(&self) -> &dyn Encoder {
        &*self.encoder
    }

    /// The best pictures. Scores are corrected only if the query has words: the bank has no pictures.
    ///
    /// # Errors
    /// If `top` is 0, the threshold is NaN, a date of the filter is none, the query has a picture that the index does not have, the terms of the query add up to
    /// nothing, or the model fails.
    pub fn search(&self, query: &Query, options: &Options) -> Result<Answer> {
        Error::unless(options.top > 0, "top", "at least 1", 0)?;
        let Options { corrected, threshold, filter, .. } = options;
        Error::unless(threshold.is_none_or(|t| !t.is_nan()), "threshold", "a number", f32::NAN)?;
        filter.check()?;
        let index = &self.index;
        let corrected = *corrected && query.has_words();
        let cosines = self.pass.scores(self.row(query)?, &index.rows)?;
        let all = index.pictures();
        let score =
            |at: usize| f64::from(cosines[at]) - if corrected { index.biases[at] } else { 0.0 };
        let passes = (0..all.len()).filter(|&at| filter.passes(&all[at]));
        let mut ranked: Vec<(usize, f64)> = passes.map(|at| (at, score(at))).collect();
        let candidates = ranked.len();
        let asked = |at: usize| query.terms.iter().any(|term| term.what == What::Picture(at));
        ranked.retain(|&(at, _)| !asked(at));
        let order = |a: &(usize, f64), b: &(usize, f64)| -> Ordering {
            b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
        };
        if options.top < ranked.len() {
            ranked.select_nth_unstable_by(options.top, order);
            ranked.truncate(options.top);
        }
        ranked.sort_unstable_by(order);
        let level = index.level(corrected);
        let reaches = |&(_, score): &(usize, f64)| score as f32 >= level || !query.has_words();
        let found = ranked.first().is_some_and(reaches);
        let hit = |(picture, score): (usize, f64)| Hit {
            picture,
            score: score as f32,
            cosine: cosines[picture],
        };
        let least = threshold.unwrap_or(f32::NEG_INFINITY);
        let hits = ranked.into_iter().map(hit).filter(|hit| hit.score >= least).collect();
        Ok(Answer { hits, found, level, candidates })
    }

    /// The cosines of the patches of a picture with each word of the query; `None` if the model has no patches or the query no words.
    ///
    /// # Errors
    /// If the photograph has gone or cannot be decoded, or the model fails.
    ///
    /// # Panics
    /// If there is no such picture.
    pub fn why(&self, query: &Query, picture: usize) -> Result<Option<Why>> {
        let words: Vec<&str> = (query.terms.iter())
            .filter_map(|term| match &term.what {
                What::Words(words) => Some(words.split_whitespace()),
                _ => None,
            })
            .flatten()
            .take(MOST_WORDS)
            .collect();
        if words.is_empty() {
            return Ok(None);
        }
        let photograph = DynamicImage::ImageRgb8(self.index.photograph(picture)?);
        let Some(patches) = self.encoder.patches(&photograph)? else { return Ok(None) };
        let count = patches.grid[0] * patches.grid[1];
        let of_patches = crate::encoder::checked(&*self.encoder, count, patches.rows)?;
        let rows = texts(&*self.encoder, &words)?;
        let width = self.index.width();
        let of_patches = Panels::new(&Embeddings::new("patches", count, width, &of_patches)?);
        let cosines = of_patches.scores(&Embeddings::new("words", words.len(), width, &rows)?)?;
        let cosines = (0..words.len()).map(|word| cosines.row(word).to_vec());
        let words = words.iter().map(|&word| word.to_owned()).zip(cosines).collect();
        Ok(Some(Why { grid: patches.grid, words }))
    }

    /// The unit row of a query.
    fn row(&self, query: &Query) -> Result<Vec<f32>> {
        let encoder = &*self.encoder;
        let row = |what: &What| match what {
            What::Words(words) => texts(encoder, &[words]),
            What::Picture(picture) => {
                let all = self.index.pictures().len();
                let expected = format_args!("a picture's number below {all}");
                Error::unless(*picture < all, "query", expected, picture)?;
                Ok(self.index.row(*picture))
            }
            What::Image(image) => pictures(encoder, std::slice::from_ref(image)),
        };
        if let [term] = &query.terms[..]
            && term.weight > 0.0
        {
            return row(&term.what); // as an evaluation has it, to the last bit
        }
        let mut sum = vec![0.0f32; self.index.width()];
        for term in &query.terms {
            let row = row(&term.what)?;
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += term.weight * value);
        }
        let length = length(&sum) as f32;
        let got = format_args!("a sum of length {length}");
        let fits = length > 1e-6 && length.is_finite();
        Error::unless(fits, "query", "terms that do not cancel", got)?;
        sum.iter_mut().for_each(|value| *value /= length);
        Ok(sum)
    }
}

impl Filter {
    /// Refuses what begins no date, because every picture would fail it.
    pub(crate) fn check(&self) -> Result<()> {
        let fits = |date: &str| {
            let whole = [4, 7, 10, 13, 16, 19].contains(&date.len());
            whole && has_form(date, "dddd-dd-ddTdd:dd:dd") && is_day(date)
        };
        for (name, date) in [("after", &self.after), ("before", &self.before)] {
            if let Some(date) = date.as_ref().filter(|date| !fits(date)) {
                let expected = "a date as 2024, 2024-05 or 2024-05-01T12:30";
                return Err(Error::invalid(name, expected, date));
            }
        }
        Ok(())
    }

    /// Whether a picture may answer. One without a date fails every date.
    pub(crate) fn passes(&self, picture: &crate::Picture) -> bool {
        let taken = picture.taken.as_deref();
        let below = |folder: &str| {
            let folder = folder.trim_end_matches('/');
            let rest = picture.path.strip_prefix(folder);
            folder.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.folder.as_deref().is_none_or(below)
            && self.after.as_deref().is_none_or(|after| taken.is_some_and(|taken| taken >= after))
            && self.before.as_deref().is_none_or(|before| taken.is_some_and(|taken| taken < before))
    }
}

#[cfg(test)]
mod tests;

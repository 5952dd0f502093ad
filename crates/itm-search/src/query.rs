//! Queries: weighted sums of words and pictures.

use image::DynamicImage;
use itm_core::{Error, Result};

use crate::Index;

/// The longest query, in characters.
pub(crate) const MOST_CHARACTERS: usize = 1000;
/// The largest weight of a term.
const MOST_WEIGHT: f32 = 1000.0;

/// A sum of weighted terms: `2:beach + photo.jpg - people`.
///
/// ```text
/// q = unit(Σ_t weight_t · row_t)        row_t: the unit row of the words, or of the picture
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// At least one.
    pub terms: Vec<Term>,
}

/// A term of a [`Query`].
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// Its factor; negative after `-`.
    pub weight: f32,
    /// Words or a picture.
    pub what: What,
}

/// What a [`Term`] stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// For the text encoder.
    Words(String),
    /// A picture of the index, by its number.
    Picture(usize),
    /// A picture from elsewhere.
    Image(DynamicImage),
}

impl Query {
    /// Reads a query as a person types it.
    ///
    /// Terms stand between `+` and `-`. A sign counts only at the start of a word, so `t-shirt` is one word. `2:` or `0.5:` before a
    /// term is its weight; `10:30` is a time of day. A term that is the path of a picture of the index, or a file name that one
    /// picture has, is that picture; a path in which blanks or signs matter must be the whole query.
    ///
    /// # Errors
    /// If the query is empty or longer than `MOST_CHARACTERS`, a sign has no term, or a weight is not above 0 and at most 1,000.
    pub fn parse(text: &str, index: &Index) -> Result<Self> {
        let length = text.chars().count();
        let expected = format_args!("at most {MOST_CHARACTERS} characters");
        Error::unless(length <= MOST_CHARACTERS, "query", expected, length)?;
        if let Some(picture) = index.named(text).or_else(|| index.named(text.trim())) {
            return Ok(Self::like(picture)); // a path may hold anything
        }
        let mut terms = vec![];
        for (sign, text) in signed(text) {
            // A path may begin like a weight.
            let (weight, text) =
                if index.named(&text).is_some() { (1.0, &*text) } else { weighted(&text)? };
            Error::unless(!text.is_empty(), "query", "words or a picture after each sign", "none")?;
            let what = match index.named(text) {
                Some(picture) => What::Picture(picture),
                None => What::Words(text.to_owned()),
            };
            terms.push(Term { weight: sign * weight, what });
        }
        Error::unless(!terms.is_empty(), "query", "words or a picture", "nothing")?;
        Ok(Self { terms })
    }

    /// Pictures like a picture of the index.
    pub fn like(picture: usize) -> Self {
        Self { terms: vec![Term { weight: 1.0, what: What::Picture(picture) }] }
    }

    /// Pictures like a picture from elsewhere.
    pub fn image(image: DynamicImage) -> Self {
        Self { terms: vec![Term { weight: 1.0, what: What::Image(image) }] }
    }

    /// Whether a term has words. The levels of an index are of such queries.
    pub fn has_words(&self) -> bool {
        self.terms.iter().any(|term| matches!(term.what, What::Words(_)))
    }
}

/// The terms between the signs; white space becomes single spaces.
fn signed(text: &str) -> Vec<(f32, String)> {
    let mut terms: Vec<(f32, String)> = vec![];
    for word in text.split_whitespace() {
        let (sign, rest) = match word.strip_prefix(['+', '-']) {
            Some(rest) if word.starts_with('-') => (Some(-1.0), rest),
            Some(rest) => (Some(1.0), rest),
            None => (None, word),
        };
        match (sign, terms.last_mut()) {
            (None, Some((_, words))) => {
                if !words.is_empty() {
                    words.push(' ');
                }
                words.push_str(rest);
            }
            (sign, _) => terms.push((sign.unwrap_or(1.0), rest.to_owned())),
        }
    }
    terms
}

/// The weight before a colon, and the rest.
fn weighted(text: &str) -> Result<(f32, &str)> {
    let is_weighted = |(number, rest): &(&str, &str)| {
        let numeric = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        numeric && !number.is_empty() && !rest.starts_with(|c: char| c.is_ascii_digit())
    };
    let parts = text.split_once(':').filter(is_weighted);
    let Some((number, rest)) = parts else { return Ok((1.0, text)) };
    match number.parse::<f32>() {
        Ok(weight) if weight > 0.0 && weight <= MOST_WEIGHT => Ok((weight, rest.trim_start())),
        _ => {
            let expected = format!("a weight above 0 and at most {MOST_WEIGHT}");
            Err(Error::invalid(format!("query: {text}"), expected, number))
        }
    }
}

#[cfg(test)]
mod tests;

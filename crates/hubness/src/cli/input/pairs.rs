//! Which texts belong to which image: from a file, or guessed from the shapes.

use std::collections::HashMap;

use itm_core::data::{ByName, FileBytes, Npy, Repeats, excerpt};
use itm_core::files::utf8;
use itm_core::{Error, Pairs, Result};
use serde_json::Value;

use super::array::is_npy;
use super::messages::Messages;
use super::names::{NameFormat, parse_names};
use super::qrels::{Judgement, Qrels};
use super::text::{at_line, each_line};
use crate::Direction;
use crate::words::{count, first_ten};

/// A file of pairs as it was read, before it is checked against the shapes.
#[derive(Debug, Clone, PartialEq)]
pub enum PairList {
    /// The image row of each text: `.npy` integers, a JSON list of integers.
    Rows(Vec<usize>),
    /// The image of each text, row number or name: lines, a JSON list of names.
    Words(Vec<String>),
    /// The text rows that are true of each image: a JSON list of lists.
    Lists(Vec<Vec<usize>>),
    /// Judged pairs of names: TREC qrels, a JSON object with the names of the true items of each query.
    Qrels(Qrels),
}

/// How a file of pairs is written; `.npy` files and JSON lists are recognised by their first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairFormat<'a> {
    /// One image per line, by row number or name.
    Lines,
    /// One image per line, with the quotes of CSV.
    Csv,
    /// A field of the JSON object on each line.
    Jsonl(Option<&'a str>),
    /// TREC's `qid 0 docid relevance`.
    Qrels,
}

impl PairList {
    /// Reads a file of pairs.
    ///
    /// # Errors
    /// If the file is malformed; the error names the line or row.
    pub fn parse(place: &str, format: PairFormat<'_>, bytes: FileBytes) -> Result<Self> {
        if is_npy(&bytes) {
            return Ok(Self::Rows(Npy::from_bytes(place, bytes)?.to_indices()?));
        }
        match format {
            PairFormat::Qrels => Qrels::parse(place, &bytes).map(Self::Qrels),
            PairFormat::Jsonl(field) => {
                parse_names(place, NameFormat::Jsonl(field), &bytes).map(Self::Words)
            }
            PairFormat::Lines | PairFormat::Csv => {
                let text = utf8(place, &bytes)?;
                match text.trim_start().chars().next() {
                    Some('[') => return json(place, text),
                    Some('{') => return json_by_name(place, text).map(Self::Qrels),
                    _ => (),
                }
                words(place, format, text).map(Self::Words)
            }
        }
    }
}

fn words(place: &str, format: PairFormat<'_>, text: &str) -> Result<Vec<String>> {
    each_line(place, text, "an image on each line", |here, line| {
        let line = line.trim();
        let quoted = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let (word, separators) = match (format, quoted) {
            (PairFormat::Csv, Some(inside)) => (inside.replace("\"\"", "\""), ['\t', '\t']),
            (PairFormat::Csv, None) => (line.to_string(), ['\t', ',']),
            _ => (line.to_string(), ['\t', '\t']),
        };
        let got = match word.split(separators).count() {
            1 if word.is_empty() => "an empty line".to_string(),
            1 => return Ok(word),
            n => format!("{n} fields"),
        };
        Err(Error::invalid(here(), "one image (row or name)", got))
    })
}

fn json(place: &str, text: &str) -> Result<PairList> {
    let list = serde_json::from_str(text).map(PairList::Rows);
    let list = list.or_else(|_| serde_json::from_str(text).map(PairList::Words));
    if let Ok(list) = list.or_else(|_| serde_json::from_str(text).map(PairList::Lists)) {
        return Ok(list);
    }
    // None of them: read the list once more to find the bad entry.
    let entries: Vec<Value> =
        serde_json::from_str(text).map_err(|e| Error::invalid(place, "a JSON list", e))?;
    // An empty list was a list of numbers.
    let (expected, bad_of): (_, fn(&Value) -> Option<&Value>) = match &entries[0] {
        Value::String(_) => ("an image name", |entry| (!entry.is_string()).then_some(entry)),
        Value::Array(_) => ("a list of text rows", |entry| match entry {
            Value::Array(rows) => rows.iter().find(|row| !row.is_u64()),
            other => Some(other),
        }),
        _ => ("an image row", |entry| (!entry.is_u64()).then_some(entry)),
    };
    let mut bad = entries.iter().enumerate().filter_map(|(at, entry)| Some((at, bad_of(entry)?)));
    let (at, bad) = bad.next().unwrap_or((0, &entries[0]));
    Err(Error::invalid(format!("{place} entry {at}"), expected, excerpt(&bad.to_string())))
}

/// An object with the names of the true items of each query: `{"dog.jpg": ["cap3", "cap8"]}`.
fn json_by_name(place: &str, text: &str) -> Result<Qrels> {
    let ByName(object) = serde_json::from_str::<ByName<Vec<String>>>(text)
        .map_err(|e| Error::invalid(place, "an object of lists of names", e))?;
    let judge = |(query, docs): (String, Vec<String>)| {
        let of_query = move |doc| Judgement { query: query.clone(), doc, relevance: 1 };
        docs.into_iter().map(of_query)
    };
    Ok(Qrels { judged: object.into_iter().flat_map(judge).collect() })
}

/// The images and texts that pairs must fit.
pub(crate) struct PairSides<'a> {
    pub(crate) images: usize,
    pub(crate) texts: usize,
    /// The row of each image's name, if names were given.
    pub(crate) image_names: Option<HashMap<&'a str, usize>>,
    pub(crate) text_names: Option<HashMap<&'a str, usize>>,
}

impl PairSides<'_> {
    /// The pairs, and how the file was understood.
    ///
    /// # Errors
    /// If the number of texts differs, an image does not exist, a name is unknown, or the lines can be read as names and as
    /// row numbers of different images.
    pub(crate) fn resolve(&self, place: &str, list: PairList) -> Result<(Pairs, String)> {
        let (images_of_text, what) = match list {
            PairList::Rows(rows) => (self.one_each(place, rows)?, "row numbers"),
            PairList::Words(words) => {
                let (rows, what) = self.rows_of(place, &words)?;
                (self.one_each(place, rows)?, what)
            }
            PairList::Lists(lists) => (self.turned(place, &lists)?, "text rows of each image"),
            PairList::Qrels(qrels) => (self.judged(place, qrels)?, "judged pairs of names"),
        };
        let pairs = true_pairs(self.images, images_of_text)?;
        Ok((pairs, format!("pairs from {place} ({what})")))
    }

    /// The images of each text, from the image of each text.
    fn one_each(&self, place: &str, image_of_text: Vec<usize>) -> Result<Vec<Vec<usize>>> {
        let got = image_of_text.len();
        let expected = format_args!("an image for each of {} texts", self.texts);
        Error::unless(got == self.texts, place, expected, got)?;
        if let Some(text) = image_of_text.iter().position(|&image| image >= self.images) {
            let expected = format!("an image row below {}", self.images);
            let row = image_of_text[text];
            let from_one = row == self.images && !image_of_text.contains(&0);
            let hint = if from_one { " (rows count from 0)" } else { "" };
            let place = format!("{place}, text {text}");
            return Err(Error::invalid(place, expected, format!("{row}{hint}")));
        }
        Ok(image_of_text.into_iter().map(|image| vec![image]).collect())
    }

    /// The images of each text, from the texts of each image.
    fn turned(&self, place: &str, lists: &[Vec<usize>]) -> Result<Vec<Vec<usize>>> {
        let expected = format_args!("a list of text rows for each of {} images", self.images);
        Error::unless(lists.len() == self.images, place, expected, lists.len())?;
        let mut images_of_text = vec![vec![]; self.texts];
        for (image, texts) in lists.iter().enumerate() {
            for &text in texts {
                let Some(images) = images_of_text.get_mut(text) else {
                    let expected = format!("a text row below {}", self.texts);
                    return Err(Error::invalid(format!("{place}, image {image}"), expected, text));
                };
                images.push(image);
            }
        }
        Ok(images_of_text)
    }

    /// Reads the lines as names if all are names, as row numbers if all are numbers. If both readings are possible and
    /// differ, this is an error.
    fn rows_of(&self, place: &str, words: &[String]) -> Result<(Vec<usize>, &'static str)> {
        let number = |word: &String| word.parse::<usize>().ok();
        let numbers: Option<Vec<_>> = words.iter().map(number).collect();
        let refused = |is_bad: &dyn Fn(&String) -> bool, expected: &str| {
            let at = words.iter().position(is_bad).unwrap_or(0);
            Err(Error::invalid(at_line(place, at + 1), expected, excerpt(&words[at])))
        };
        let name = |word: &String| self.image_names.as_ref()?.get(word.as_str()).copied();
        let named: Option<Vec<_>> = words.iter().map(name).collect();
        match (named, numbers) {
            (Some(named), Some(rows)) if named != rows && rows.iter().all(|&r| r < self.images) => {
                let at = (0..words.len()).find(|&at| named[at] != rows[at]).unwrap_or(0);
                let got = format!("{}, which may be either", excerpt(&words[at]));
                Err(Error::invalid(at_line(place, at + 1), "image names or row numbers", got))
            }
            (Some(named), _) => Ok((named, "names")),
            (None, Some(rows)) => Ok((rows, "row numbers")),
            (None, None) if self.image_names.is_some() => {
                refused(&|w| name(w).is_none(), "a name of --image-names")
            }
            (None, None) => {
                let images = self.images;
                let expected = format!(
                    "a row number (names need --image-names with a name for each of {images} images)"
                );
                refused(&|w| number(w).is_none(), &expected)
            }
        }
    }

    fn judged(&self, place: &str, qrels: Qrels) -> Result<Vec<Vec<usize>>> {
        let (Some(images), Some(texts)) = (&self.image_names, &self.text_names) else {
            let expected = format!(
                "--image-names with a name for each of {} images, and --text-names, for judged pairs of names",
                self.images
            );
            return Err(Error::invalid(place, expected, "at most one of them"));
        };
        let is_image = |name: &str| images.contains_key(name);
        let from_images = qrels.images_first(place, is_image, |name| texts.contains_key(name))?;
        let find = |of: &HashMap<&str, usize>, name: &str, what: &str| {
            let expected = format!("{what} among the given names");
            of.get(name).copied().ok_or_else(|| Error::invalid(place, expected, excerpt(name)))
        };
        let mut images_of_text = vec![vec![]; self.texts];
        for (text, of_text) in from_images.images_of_text() {
            let found = of_text.into_iter().map(|image| find(images, image, "an image"));
            images_of_text[find(texts, text, "a text")?] = found.collect::<Result<_>>()?;
        }
        Ok(images_of_text)
    }
}

/// Pairs of one image for each text, if that is what they are and every image has a text; otherwise judged pairs.
pub(crate) fn true_pairs(images: usize, images_of_text: Vec<Vec<usize>>) -> Result<Pairs> {
    let mut has_text = vec![false; images];
    images_of_text.iter().flatten().filter(|&&i| i < images).for_each(|&i| has_text[i] = true);
    let simple = images_of_text.iter().all(|of_text| of_text.len() == 1);
    if simple && has_text.into_iter().all(|has| has) {
        return Pairs::new(images, images_of_text.concat());
    }
    Pairs::judged(images, images_of_text)
}

/// Says which items are true of nothing: they stay as items, and recalls leave them out as queries.
pub(crate) fn name_the_lonely(
    pairs: &Pairs,
    names: [Option<&[String]>; 2],
    directions: &[Direction],
    messages: &mut Messages,
) {
    let [images, texts] = names;
    for (direction, names, noun) in
        [(Direction::I2t, images, "image"), (Direction::T2i, texts, "text")]
    {
        let queries = 0..direction.queries(pairs.images(), pairs.texts());
        let lonely: Vec<_> = queries.filter(|&q| direction.truths(pairs, q).is_empty()).collect();
        if lonely.is_empty() {
            continue;
        }
        let name = |&at: &usize| names.map_or_else(|| at.to_string(), |names| names[at].clone());
        let first = first_ten(&lonely.iter().map(name).collect::<Vec<_>>());
        let other = direction.items("an image", "a text");
        let asks = directions.contains(&direction);
        let left_out =
            if asks { "left out of recalls but not of hubs and corrections, " } else { "" };
        let n = count(lonely.len(), noun);
        messages.warnings.push(format!("{n} without {other}, {left_out}kept as items: {first}"));
    }
}

/// Guesses from the numbers of rows: texts are a multiple of images, or images are stored once per text. The result is how many
/// consecutive rows of the image file are one image, if it is not one row, and how many consecutive texts an image has.
///
/// `repeats` looks at the image rows. It is called only if the numbers of rows do not decide.
///
/// # Errors
/// If neither fits.
pub(crate) fn guess(
    place: &str,
    images: usize,
    texts: usize,
    repeats: impl FnOnce() -> Option<Repeats>,
) -> Result<(Option<Repeats>, usize)> {
    if texts > images && texts.is_multiple_of(images) {
        return Ok((None, texts / images));
    }
    match repeats() {
        Some(found) if texts.is_multiple_of(images / found.every) => {
            Ok((Some(found), texts / (images / found.every)))
        }
        _ if texts == images => Ok((None, 1)),
        _ => {
            let expected = format!("a multiple of {images} images (or --pairs)");
            let swapped =
                if images.is_multiple_of(texts) { " (images and texts swapped?)" } else { "" };
            let got = format!("{}{swapped}", count(texts, "text"));
            Err(Error::invalid(place, expected, got))
        }
    }
}

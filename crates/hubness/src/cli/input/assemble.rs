//! Turns the options into the data that a command works on.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use itm_core::data::{Features, Npy};
use itm_core::files::entries;
use itm_core::scored::{EmbeddingRows, Similarity};
use itm_core::{Error, Pairs, Result};

use super::args::{InputArgs, Source};
use super::array::Array;
use super::loaded::{InputData, InputScores};
use super::location::{Files, Location};
use super::messages::Messages;
use super::names::{NameFormat, fit_images, index, parse_names};
use super::pairs::{PairFormat, PairList, PairSides, guess, name_the_lonely};
use super::qrels::Qrels;
use super::rows::{embeddings, repeats, scores};
use super::run::Run;
use super::runs::{RunFile, spread};
use super::scale::ScaleArray;
use super::{table, torch};
use crate::Direction;
use crate::report::PerDirection;
use crate::study::ItemNames;
use crate::words::count;

/// Reads and checks everything that the options name.
///
/// # Errors
/// If a file is malformed, or two files do not fit together; the error is one line.
pub fn load(input: &InputArgs) -> Result<InputData> {
    load_from(input, &mut io::stdin().lock())
}

/// [`load`] for a command that needs no pairs: without `--pairs` every row stays as it is.
///
/// # Errors
/// As [`load`].
pub(crate) fn load_rows(input: &InputArgs) -> Result<InputData> {
    load_with(input, false, &mut io::stdin().lock())
}

/// [`load`] with `stdin` as standard input.
///
/// # Errors
/// As [`load`].
pub fn load_from(input: &InputArgs, stdin: &mut dyn Read) -> Result<InputData> {
    load_with(input, true, stdin)
}

/// With `guesses`, rows without `--pairs` are paired by the shapes, and copies of an image are left out; otherwise they have no pairs, and
/// all stay.
fn load_with(input: &InputArgs, guesses: bool, stdin: &mut dyn Read) -> Result<InputData> {
    let reader = InputReader::new(input, guesses, stdin);
    match input.source()? {
        Source::Embeddings { images, texts } => reader.read_embeddings(images, texts),
        Source::Matrix(at) => reader.read_matrix(at),
        Source::Runs { i2t, t2i } => reader.read_runs(i2t, t2i),
    }
}

/// The files of embeddings, whose rows are not yet read.
pub(crate) struct Arrays {
    /// Images and texts.
    pub(crate) rows: [Array; 2],
    /// A hash of each, from the whole files.
    pub(crate) hashes: [String; 2],
    /// Their pairs, if they are wanted.
    pub(crate) pairs: Option<Pairs>,
}

/// The files of embeddings, and their pairs if they are wanted.
///
/// # Errors
/// As [`load`], and if images are stored once for each of their texts, or an option names a bank.
pub(crate) fn arrays(input: &InputArgs, with_pairs: bool) -> Result<Arrays> {
    let Source::Embeddings { images: at_images, texts: at_texts } = input.source()? else {
        return Err(Error::invalid("options", "--images and --texts", "scores"));
    };
    let fits = input.bank_images.is_none() && input.bank_texts.is_none();
    let expected = "the bank itself as --images or --texts: parts have no other bank";
    Error::unless(fits, "options", expected, "--bank-images or --bank-texts")?;
    let mut stdin = io::stdin().lock();
    let mut reader = InputReader::new(input, true, &mut stdin);
    let images = array(&mut reader.files, at_images)?;
    let of_images = reader.files.identity(at_images, images.place());
    let texts = as_wide(&mut reader.files, at_texts, &images)?;
    let hashes = [of_images, reader.files.identity(at_texts, texts.place())];
    if !with_pairs {
        return Ok(Arrays { rows: [images, texts], hashes, pairs: None });
    }
    let layout = reader.layout(&images, texts.place(), texts.rows())?;
    let got = format_args!("each {} times", layout.every);
    Error::unless(layout.every <= 1, images.place(), "every image once", got)?;
    Ok(Arrays { rows: [images, texts], hashes, pairs: layout.pairs })
}

/// Another file of rows as wide as `beside`.
///
/// # Errors
/// As [`load`].
pub(crate) fn other(at: &Location, beside: &Array) -> Result<Array> {
    as_wide(&mut Files::new(&mut io::stdin().lock()), at, beside)
}

/// What is read for one input.
struct InputReader<'a> {
    input: &'a InputArgs,
    guesses: bool,
    files: Files<'a>,
    messages: Messages,
}

impl<'a> InputReader<'a> {
    fn new(input: &'a InputArgs, guesses: bool, stdin: &'a mut dyn Read) -> Self {
        Self { input, guesses, files: Files::new(stdin), messages: Messages::default() }
    }

    fn read_embeddings(mut self, images: &Location, texts: &Location) -> Result<InputData> {
        let images = array(&mut self.files, images)?;
        let texts = as_wide(&mut self.files, texts, &images)?;
        for array in [&images, &texts].into_iter().filter(|array| array.element.is_byte()) {
            let how = match &array.scale {
                Some(scale) => format!("with the scale in {}", scale.places),
                None => "are taken as they are, so one scale must serve all columns".into(),
            };
            self.messages.notes.push(format!("{}: bytes {how}", array.place()));
        }
        let layout = self.layout(&images, texts.place(), texts.rows())?;
        let (length, messages) = (self.input.length(), &mut self.messages);
        let rows = embeddings(&images, layout.every, length, messages)?;
        let test = EmbeddingRows {
            dim: rows.dim,
            images: rows.values,
            texts: embeddings(&texts, 1, length, messages)?.values,
            similarity: Similarity::Cosine,
        };
        let mut bank = |at: &Option<Location>, own: &[f32]| -> Result<Option<Features>> {
            let Some(at) = at else { return Ok(None) };
            let rows = embeddings(&as_wide(&mut self.files, at, &images)?, 1, length, messages)?;
            if rows.values == own {
                messages.warnings.push(format!("{at}: the bank is the test set itself"));
            }
            Ok(Some(rows))
        };
        let i2t = bank(&self.input.bank_images, &test.images)?;
        let bank = PerDirection { i2t, t2i: bank(&self.input.bank_texts, &test.texts)? };
        Ok(self.loaded(InputScores::Embeddings(test), bank, layout))
    }

    fn read_matrix(mut self, at: &Location) -> Result<InputData> {
        no_bank(self.input)?;
        let matrix = array(&mut self.files, at)?;
        let layout = self.layout(&matrix, matrix.place(), matrix.dim())?;
        let scores = InputScores::Matrix(scores(&matrix, layout.every, &mut self.messages)?);
        Ok(self.loaded(scores, PerDirection::default(), layout))
    }

    fn loaded(
        self,
        scores: InputScores,
        bank: PerDirection<Features>,
        RowsAndPairs { pairs, names, .. }: RowsAndPairs,
    ) -> InputData {
        let messages = Messages { files: self.files.hashes, ..self.messages };
        InputData { scores, pairs, names, bank, messages }
    }

    fn read_runs(mut self, i2t: Option<&Location>, t2i: Option<&Location>) -> Result<InputData> {
        let (input, files) = (self.input, &mut self.files);
        no_bank(input)?;
        let mut runs = Vec::new();
        for (direction, at) in [(Direction::I2t, i2t), (Direction::T2i, t2i)] {
            let Some(at) = at else { continue };
            let place = at.to_string();
            let run = Run::parse(&place, &files.open(at)?)?;
            runs.push(RunFile { place, run, direction });
        }
        let qrels = match &input.pairs {
            None => None,
            Some(at) => Some((at.to_string(), Qrels::parse(&at.to_string(), &files.open(at)?)?)),
        };
        let mut given = |at: &Option<Location>| -> Result<Option<Vec<String>>> {
            let Some(at) = at else { return Ok(None) };
            let (place, names) = names(files, at)?;
            index(&place, &names)?;
            Ok(Some(names))
        };
        let (images, texts) = (given(&input.image_names)?, given(&input.text_names)?);
        let given = ItemNames { images, texts };
        let mut loaded = spread(&runs, qrels, given)?;
        loaded.messages.files = self.files.hashes;
        Ok(loaded)
    }

    fn layout(&mut self, images: &Array, texts_place: &str, texts: usize) -> Result<RowsAndPairs> {
        let Self { input, guesses, files, messages } = self;
        let image_names = input.image_names.as_ref().map(|at| names(files, at)).transpose()?;
        let text_names = input.text_names.as_ref().map(|at| names(files, at)).transpose()?;
        if let Some((place, names)) = &text_names {
            let expected = format_args!("a name for each of {texts} texts");
            Error::unless(names.len() == texts, place, expected, count(names.len(), "name"))?;
        }
        let (every, pairs) = match &input.pairs {
            Some(at) => {
                let place = at.to_string();
                let list = PairList::parse(&place, pair_format(at), files.open(at)?)?;
                // Names are looked up only where the file has names, and only then must they be unique.
                let has_names = matches!(list, PairList::Words(_) | PairList::Qrels(_));
                let of_images = image_names.as_ref().filter(|_| has_names);
                let of_texts = text_names.as_ref().filter(|_| matches!(list, PairList::Qrels(_)));
                let sides = PairSides {
                    images: images.rows(),
                    texts,
                    image_names: lookup(of_images, images.rows())?,
                    text_names: lookup(of_texts, texts)?,
                };
                let (pairs, how) = sides.resolve(&place, list)?;
                messages.pairs(how);
                (1, Some(pairs))
            }
            None if !*guesses => (1, None),
            None => {
                let (repeats, captions) =
                    guess(texts_place, images.rows(), texts, || repeats(images))?;
                let every = repeats.map_or(1, |repeats| repeats.every);
                let kept = images.rows() / every;
                if let Some(repeats) = repeats {
                    messages.notes.push(format!(
                        "{}: each image stored {every} times in a row ({repeats}): {kept} images kept of {} rows",
                        images.place(),
                        images.rows()
                    ));
                }
                messages.guessed = true;
                messages.pairs(format!(
                    "pairs guessed from the shapes: {}, {}: {} per image, in order",
                    count(kept, "image"),
                    count(texts, "text"),
                    count(captions, "text")
                ));
                (every, Some(Pairs::uniform(kept, captions)))
            }
        };
        let fit = |(place, mut names): PlacedNames| {
            // Tables name every stored row, and copies of an image may have names of their own.
            if input.image_names.as_ref().is_some_and(Location::is_folder)
                && names.len() == images.rows()
            {
                names = names.into_iter().step_by(every).collect();
            }
            fit_images(&place, names, images.rows() / every, pairs.as_ref())
        };
        let image_names = image_names.map(fit).transpose()?;
        let names = ItemNames { images: image_names, texts: text_names.map(|(_, names)| names) };
        let sides = [names.images.as_deref(), names.texts.as_deref()];
        if let Some(pairs) = &pairs {
            name_the_lonely(pairs, sides, &Direction::BOTH, messages);
        }
        Ok(RowsAndPairs { every, pairs, names })
    }
}

/// How many rows are one image, the pairs if there are any, and the names.
struct RowsAndPairs {
    every: usize,
    pairs: Option<Pairs>,
    names: ItemNames,
}

/// Names and their file.
type PlacedNames = (String, Vec<String>);

fn lookup(names: Option<&PlacedNames>, size: usize) -> Result<Option<HashMap<&str, usize>>> {
    let fits = names.filter(|(_, names)| names.len() == size);
    fits.map(|(place, names)| index(place, names)).transpose()
}

/// A file, or the numbered `.npy` files of a folder in the order of their numbers.
fn array(files: &mut Files, at: &Location) -> Result<Array> {
    let (place, part) = (at.to_string(), at.part.as_deref());
    let Some(path) = &at.path else { return Array::parse(&place, part, files.open(at)?) };
    if at.is_folder() && part.is_none() {
        let shard = |path| {
            let at = Location { path: Some(path), part: None };
            Array::parse(&at.to_string(), None, files.open(&at)?)
        };
        // A part of all pictures may have no captions.
        let has_rows =
            |path: &PathBuf| !Npy::open(path).is_ok_and(|npy| matches!(npy.shape(), [0, _]));
        let shards = numbered(path, "npy")?.into_iter().filter(has_rows).map(shard);
        let shards = shards.collect::<Result<_>>()?;
        return Array::joined(&place, shards);
    }
    if ["pt", "pth"].iter().any(|end| at.has_extension(end)) {
        return torch::array(&place, part, path, &files.open(at)?);
    }
    if at.has_extension("parquet") {
        files.open(at)?; // for its hash
        return table::matrix(&place, part, path);
    }
    let array = Array::parse(&place, part, files.open(at)?)?;
    if array.scale.is_some() || !at.has_extension("npy") {
        return Ok(array);
    }
    // The scale of `image.npy` is in `image_scale.npy`.
    let beside = |name: &str| path.with_file_name(name).with_added_extension("npy");
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let numbers = |name: &str| {
        let at = Location { path: Some(beside(name)), part: None };
        ScaleArray::of_npy(&Npy::from_bytes(at.to_string(), files.open(&at)?)?)
    };
    let own = |name: &str| name.starts_with(&stem) && beside(name).is_file();
    array.scaled(&stem, own, numbers)
}

/// The files of a folder with this extension, by the last number in their names: `img_emb_0.npy`, `img_emb_1.npy`, …, `img_emb_10.npy`.
fn numbered(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut numbered = vec![];
    let has_extension = |path: &PathBuf| path.extension().is_some_and(|end| end == extension);
    for path in entries(folder)?.into_iter().filter(has_extension) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let digits = stem.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let Ok(number) = stem[digits..].parse::<u64>() else {
            let expected = "a name that ends in its number, as its neighbours are read in order";
            return Err(Error::invalid(path.display(), expected, "none"));
        };
        numbered.push((number, path));
    }
    numbered.sort();
    let missing = (0..).zip(&numbered).find(|(at, (number, _))| numbered[0].0 + at != *number);
    if let Some((at, _)) = missing {
        let expected = format!("a file with the number {}", numbered[0].0 + at);
        return Err(Error::invalid(folder.display(), expected, "none"));
    }
    Ok(numbered.into_iter().map(|(_, path)| path).collect())
}

fn names(files: &mut Files, at: &Location) -> Result<PlacedNames> {
    let place = at.to_string();
    if let Some(folder) = at.path.as_ref().filter(|_| at.is_folder()) {
        let mut all = vec![];
        for path in numbered(folder, "parquet")? {
            let table = Location { path: Some(path), part: at.part.clone() };
            all.extend(names(files, &table)?.1);
        }
        Error::unless(!all.is_empty(), &place, "numbered .parquet tables with rows", "none")?;
        return Ok((place, all));
    }
    if let Some(path) = at.path.as_ref().filter(|_| at.has_extension("parquet")) {
        files.open(at)?; // for its hash
        return Ok((place.clone(), table::names(&place, at.part.as_deref(), path)?));
    }
    let jsonl = at.part.is_some() || at.has_extension("jsonl");
    let format = if jsonl { NameFormat::Jsonl(at.part.as_deref()) } else { NameFormat::Lines };
    let names = parse_names(&place, format, &files.open(at)?)?;
    Ok((place, names))
}

fn pair_format(at: &Location) -> PairFormat<'_> {
    let named = at.path.as_ref().and_then(|path| path.file_name()?.to_str());
    if at.part.is_some() || at.has_extension("jsonl") {
        PairFormat::Jsonl(at.part.as_deref())
    } else if named.is_some_and(|name| name.contains("qrels")) {
        PairFormat::Qrels
    } else if at.has_extension("csv") {
        PairFormat::Csv
    } else {
        PairFormat::Lines
    }
}

/// An array whose rows are as wide as the images'.
fn as_wide(files: &mut Files, at: &Location, images: &Array) -> Result<Array> {
    let other = array(files, at)?;
    let expected = format_args!("rows of {} numbers as in {}", images.dim(), images.place());
    Error::unless(other.dim() == images.dim(), other.place(), expected, other.dim())?;
    Ok(other)
}

fn no_bank(input: &InputArgs) -> Result<()> {
    let fits = input.bank_images.is_none() && input.bank_texts.is_none();
    let expected = "embeddings (--images and --texts) with --bank-images or --bank-texts";
    Error::unless(fits, "options", expected, "a score matrix or run")
}

#[cfg(test)]
mod tests;

//! Reports of a run: `report.json`, `report.md`, one self-contained `report.html`, and the table
//! that ends `itm reproduce` in a terminal.
//!
//! The loop fills a [`ReportInput`] with plain data; everything here is a function of this input.
//! [`Report`] holds the numbers once, and `tables` builds every table from it, so the four outputs
//! cannot disagree.

mod examples;
mod html;
mod json;
mod judged;
mod markdown;
mod plots;
mod tables;
mod terminal;
mod verdict;
mod word_effects;
mod word_patches;

use std::collections::BTreeMap;
use std::path::Path;

use itm_core::Result;
use itm_core::data::Bounds;
use itm_core::encoders::Places;
use itm_core::learn::WordMap;

use crate::checkpoint::write_atomically;

pub(crate) use self::html::{explained, judged_page, maps_page};
pub use self::json::{
    Auc, CI95_UNIT, Claim, Comparison, Detected, DetectionAt, Distribution, DistributionOf,
    EditedCaptions, EpochDraws, Figure, FigurePoint, Fluency, HubCounts, HubDifference, Kind,
    Measured, Mismatch, PaperNumbers, PaperRecalls, PaperReference, PaperRow, Pointed, Pointing,
    RecallIntervals, Recalls, Reliability, ReliabilityBin, Report, Rescored, Row, RowHubs,
    SCHEMA_VERSION, SeedResult, Share, Spread, SyntheticSentences, Truth,
};
pub use self::judged::{JudgedCaption, JudgedPair, JudgedText};
pub(crate) use self::terminal::{Detail, render as terminal};
pub(crate) use self::word_patches::largest;

/// Name of the row that ranks at random, in every table.
pub const CHANCE: &str = "chance";
/// Name of the row of an oracle that knows every true pair and ranks the true items in random order.
pub const ORACLE: &str = "oracle, random ties";
/// Name of the row of the same oracle if texts that are true of few images come first.
pub const SPECIFIC_ORACLE: &str = "oracle, specific first";
/// Name of the row of an oracle that ranks by the probability that a caption was written for an image.
pub const BAYES: &str = "oracle, Bayes";

/// Name of the row of closed-form CCA, in every table.
pub const CCA: &str = "CCA (closed form)";

/// Everything that the reports of one run are made of.
#[derive(Clone, Debug)]
pub struct ReportInput {
    /// The numbers.
    pub report: Report,
    /// Data that is only drawn.
    pub figures: Figures,
}

/// Data of `report.html` that is not in `report.json`. The page leaves empty parts out.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Training loss and validation rSum of every trained row and seed.
    pub curves: Vec<Curve>,
    /// Similarities of matching and other pairs, of the rows worth showing.
    pub similarities: Vec<Similarities>,
    /// A dozen queries with their first answers.
    pub examples: Vec<Example>,
    /// Some queries with their most probable false negatives; scores are probabilities.
    pub false_negatives: Vec<Example>,
    /// Pictures with the maps of words laid over them, or with the regions that words attend to.
    pub word_maps: Vec<PairMaps>,
}

/// An image and a caption, and where each row finds some of the caption's words in the picture.
#[derive(Clone, Debug)]
pub struct PairMaps {
    /// The image.
    pub picture: Picture,
    /// The caption.
    pub caption: String,
    /// What the two are to each other.
    pub kind: PairKind,
    /// The places of the maps: patches or regions of the picture.
    pub places: Places,
    /// The words that are shown.
    pub words: Vec<String>,
    /// Boxes of what each word is about in the image, where that is known.
    pub boxes: Vec<Vec<Bounds>>,
    /// The rows, in order.
    pub rows: Vec<RowMaps>,
}

/// Maps of one row and seed.
#[derive(Clone, Debug)]
pub struct RowMaps {
    /// The row's name.
    pub row: String,
    /// The seed.
    pub seed: u64,
    /// The pair's score, if it is made of the effects of words.
    pub score: Option<f32>,
    /// One map per word: how close the word is to each place, and what it does to the score.
    pub maps: Vec<WordMap>,
}

/// What an image and a caption are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairKind {
    /// A pair of the data set.
    Annotated,
    /// Not a pair of the data set, but true: a false negative (known on Scenes only).
    FalseNegative,
    /// The most similar image that is not annotated, true or not.
    MostSimilar,
    /// A user named it; not annotated, and not known to be true.
    Asked,
}

/// The course of one training: one row, one seed.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The row's name, as in [`Report::rows`].
    pub row: String,
    /// The seed.
    pub seed: u64,
    /// Mean training loss: `(epochs done, loss)`.
    pub loss: Vec<(f64, f64)>,
    /// rSum on the validation split: `(epochs done, rSum)`.
    pub validation_rsum: Vec<(f64, f64)>,
    /// Further numbers of the method, by name: `(epochs done, value)`.
    pub numbers: BTreeMap<String, Vec<(f64, f64)>>,
}

/// Similarity samples of one row and one seed, with the posterior P(false negative | s) or
/// P(match | s) that the row's sampler used.
#[derive(Clone, Debug)]
pub struct Similarities {
    /// The row's name.
    pub row: String,
    /// The seed.
    pub seed: u64,
    /// Two or three groups in the order matching, (true but not annotated,) other. A few tens of
    /// thousands of values per group are enough; the histogram is normalised per group.
    pub groups: Vec<SimilarityGroup>,
    /// Curves of the posterior, one per prior, as `(s, P)` with s ascending.
    pub posteriors: Vec<PosteriorCurve>,
}

/// Samples of one kind of pair.
#[derive(Clone, Debug)]
pub struct SimilarityGroup {
    /// `matching pairs`, `other pairs`.
    pub label: String,
    /// Scores; values that are not finite are not drawn.
    pub values: Vec<f32>,
}

/// P as a function of s.
#[derive(Clone, Debug)]
pub struct PosteriorCurve {
    /// `P(match | s), p = 1e-4`.
    pub label: String,
    /// `(s, P)`, s ascending.
    pub points: Vec<(f64, f64)>,
}

/// One query and the items that a row's scores rank first.
#[derive(Clone, Debug)]
pub struct Example {
    /// The row whose scores were used.
    pub row: String,
    /// The query.
    pub query: Item,
    /// The first answers in order, usually five.
    pub answers: Vec<Answer>,
    /// Rank of the best annotated item, counted from 1.
    pub annotated_rank: Option<usize>,
}

/// A retrieved item.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What was retrieved.
    pub item: Item,
    /// Its score.
    pub score: f64,
    /// Whether it is right.
    pub mark: Mark,
}

/// Whether a retrieved item is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The data set says so.
    Annotated,
    /// True although not annotated: a false negative (known on Scenes only).
    TrueNotAnnotated,
    /// Neither.
    Other,
}

/// An image or a caption.
#[derive(Clone, Debug)]
pub enum Item {
    /// An image.
    Image(Picture),
    /// A caption.
    Caption(String),
}

/// An encoded image, a thumbnail of about 200 pixels.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The file's name or the image's number: shown if there are no bytes, and the alternative text.
    pub name: String,
    /// `image/png` or `image/jpeg`.
    pub mime: &'static str,
    /// The encoded file; empty if only features are available.
    pub bytes: Vec<u8>,
}

/// Writes `report.json`, `report.md` and `report.html` into the folder `dir`.
///
/// All three texts are made before the first is written. A new file replaces the old one as a
/// whole: it is written beside the old file, synced and renamed.
///
/// # Errors
/// If a number is not finite, or a file cannot be written.
pub fn write(dir: &Path, input: &ReportInput) -> Result<()> {
    let files = [
        ("report.json", input.report.to_json()?),
        ("report.md", markdown::render(&input.report)),
        ("report.html", html::render(input)),
    ];
    for (name, text) in files {
        write_atomically(&dir.join(name), text.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;

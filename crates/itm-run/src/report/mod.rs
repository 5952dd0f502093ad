//! Reports of a run: `report.json`, `report.md`, one self-contained `report.html`, and the table
//! that ends `itm reproduce` in a terminal.
//!
//! A [`Report`] is what every run has: rows with their recalls, comparisons, the paper's numbers. Each measure adds a [`Section`].
//! The four outputs lay out the same sections, so they cannot disagree.

mod examples;
mod html;
mod json;
mod markdown;
mod plots;
mod tables;
mod terminal;
mod verdict;
mod word_effects;
mod word_patches;

use std::path::Path;

use itm_core::data::Bounds;
use itm_core::encoders::Places;
use itm_core::learn::WordMap;
use itm_core::output::write_bytes;
use itm_core::{Error, Result};
use itm_report::table::Table;
use maud::{Markup, html};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::source::Thumbnail;

pub(crate) use self::examples::{AnswerNumbers, data_url, render as shown_examples};
pub(crate) use self::html::headed;
pub(crate) use self::json::{
    CI95_UNIT, Comparison, Figure, FigurePoint, Measured, Numbers, PaperNumbers, PaperReference,
    PaperRow, RecallIntervals, Recalls, Report, Row, RowKind, SCHEMA_VERSION, SeedResult,
};
pub(crate) use self::plots::{coloured, dotted};
pub(crate) use self::tables::{of_rows, percent, role};
pub(crate) use self::terminal::{Detail, render as terminal};
pub(crate) use self::word_patches::{kind, largest};

/// Name of the row that ranks at random, in every table.
pub(crate) const CHANCE: &str = "chance";
/// Name of the row of an oracle that knows every true pair and ranks the true items in random order.
pub(crate) const ORACLE: &str = "oracle, random ties";
/// Name of the row of the same oracle if texts that are true of few images come first.
pub(crate) const SPECIFIC_ORACLE: &str = "oracle, specific first";
/// Name of the row of an oracle that ranks by the probability that a caption was written for an image.
pub(crate) const BAYES: &str = "oracle, Bayes";

/// Name of the row of closed-form CCA, in every table.
pub(crate) const CCA: &str = "CCA (closed form)";

/// An image and a caption, and where each row finds some of the caption's words in the picture.
#[derive(Clone, Debug)]
pub(crate) struct PairMaps {
    /// The image.
    pub(crate) picture: Thumbnail,
    /// The share of the picture's shorter side that the encoder sees, in the centre; `None`: the whole picture, squeezed to a square.
    pub(crate) crop: Option<f32>,
    /// The caption.
    pub(crate) caption: String,
    /// What the two are to each other.
    pub(crate) kind: PairKind,
    /// The places of the maps: patches or regions of the picture.
    pub(crate) places: Places,
    /// The words that are shown.
    pub(crate) words: Vec<String>,
    /// Boxes of what each word is about in the image, where that is known.
    pub(crate) boxes: Vec<Vec<Bounds>>,
    /// The rows, in order.
    pub(crate) rows: Vec<RowMaps>,
}

/// Maps of one row and seed.
#[derive(Clone, Debug)]
pub(crate) struct RowMaps {
    /// Row and seed, as lines name a model.
    pub(crate) name: String,
    /// The pair's score, if it is made of the effects of words.
    pub(crate) score: Option<f32>,
    /// One map per word: how close the word is to each place, and what it does to the score.
    pub(crate) maps: Vec<WordMap>,
}

/// An image and a caption of a split, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The image.
    pub(crate) image: usize,
    /// The caption.
    pub(crate) text: usize,
    /// What the two are to each other.
    pub(crate) kind: PairKind,
}

/// What an image and a caption are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PairKind {
    /// A pair of the data set.
    Annotated,
    /// Not a pair of the data set, but true: a false negative (known on Scenes only).
    FalseNegative,
    /// The most similar image that is not annotated, true or not.
    MostSimilar,
    /// A user named the pair, or a model found it; not annotated, and not known to be true.
    Asked,
}

/// One query and the items that a row's scores rank first.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    /// The row whose scores were used.
    pub(crate) row: String,
    /// The query.
    pub(crate) query: Item,
    /// The first answers in order, usually five.
    pub(crate) answers: Vec<RankedItem>,
    /// Rank of the best annotated item, counted from 1.
    pub(crate) annotated_rank: Option<usize>,
}

/// A retrieved item.
#[derive(Clone, Debug)]
pub(crate) struct RankedItem {
    /// What was retrieved.
    pub(crate) item: Item,
    /// Its score.
    pub(crate) score: f64,
    /// What it is to the query.
    pub(crate) mark: PairKind,
}

/// An image or a caption.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// An image.
    Image(Thumbnail),
    /// A caption.
    Caption(String),
}

/// What one measure found. Every report shows the tables, the page also figures and pictures.
#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) figures: Vec<itm_report::figure::Figure>,
    pub(crate) pictures: Markup,
    /// A table with the section's title stands before the figures.
    pub(crate) tables: Vec<Table>,
}

impl Section {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// The section without lines, columns and tables that have no value.
    #[must_use]
    pub(crate) fn filled(self) -> Self {
        let tables = self.tables.into_iter().map(Table::filled);
        Self { tables: tables.filter(|table| !table.lines.is_empty()).collect(), ..self }
    }

    /// Adds the numbers of the rows of a report that have any, in their `place`.
    ///
    /// # Errors
    /// As [`keys`](Self::keys).
    pub(crate) fn add_rows<T>(
        &self,
        report: &mut Report,
        place: fn(&mut Row) -> &mut Numbers,
        rows: &[Option<T>],
    ) -> Result<()>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        for (row, numbers) in report.rows.iter_mut().zip(rows) {
            if let Some(numbers) = numbers {
                place(row).extend(self.keys(numbers)?);
            }
        }
        Ok(())
    }

    /// Every key of `numbers`, which must serialise as an object.
    ///
    /// # Errors
    /// If a number is not finite: JSON has no such numbers, and `null` would mean "not measured".
    pub(crate) fn keys<T>(&self, numbers: &T) -> Result<Numbers>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        let Some(Value::Object(keys)) = json::finite_json(numbers) else {
            let place = format!("report.json, {}", self.title);
            return Err(Error::invalid(place, "finite numbers", "NaN or an infinity"));
        };
        Ok(keys.into_iter().collect())
    }
}

/// The mean of some numbers, such as a number of each seed; `None` if there are none.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0u32), |(sum, n), x| (sum + x, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

/// Pictures with the maps of words laid over them, and pictures with the regions that words attend to.
pub(crate) fn word_pictures(pairs: &[PairMaps]) -> Markup {
    html! { (word_patches::render(pairs)) (word_effects::render(pairs)) }
}

/// The sections that every report begins with: recalls, and the paper's numbers.
fn first_sections(report: &Report) -> Vec<Section> {
    let of_tables = |tables: [Option<Table>; 2], figures| {
        let tables: Vec<_> = tables.into_iter().flatten().collect();
        let title = tables.first().map_or(String::new(), |first| first.title.clone());
        Section { figures, tables, ..Section::new(title) }
    };
    let recalls = [Some(tables::recalls(report)), tables::comparisons(report)];
    let paper = [tables::paper(report), tables::paper_differences(report)];
    let figures = [plots::parameter(report), plots::recall(report)].concat();
    vec![of_tables(recalls, figures), of_tables(paper, vec![])]
}

/// Writes `report.json`, `report.md` and `report.html` into the folder `dir`; `measured` are the sections of the measures.
///
/// All three texts are made before the first is written. A new file replaces the old one as a
/// whole: it is written beside the old file, synced and renamed.
///
/// # Errors
/// If a number is not finite, or a file cannot be written.
pub(crate) fn write(dir: &Path, report: &Report, measured: &[Section]) -> Result<()> {
    let first = first_sections(report);
    let sections: Vec<_> = first.iter().chain(measured).collect();
    let files = [
        ("report.json", report.to_json()?),
        ("report.md", markdown::render(report, &sections)),
        ("report.html", html::render(report, &sections)),
    ];
    for (name, text) in files {
        write_bytes(&dir.join(name), text.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;

//! Negatives on disk: one JSON object per line, usable by any method.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use itm_core::files::open;
use itm_core::{Error, Result, output};
use serde::{Deserialize, Serialize};

use crate::lines::each_line;

/// The longest line that is accepted, in bytes.
const LONGEST: usize = 1 << 20;

/// Which change makes a sentence a negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Kind {
    /// Another noun.
    Noun,
    /// Another number, and the noun with it.
    Numeral,
    /// Who does what to whom: two chunks changed places, or another preposition.
    Relation,
    /// The words in another order.
    Order,
    /// Tokens of a language model.
    #[cfg_attr(feature = "cli", value(skip))]
    Refill,
}

impl Kind {
    /// The kinds that rules make.
    pub const RULES: [Self; 4] = [Self::Noun, Self::Numeral, Self::Relation, Self::Order];
}

/// One negative of one caption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Id of the caption that the negative contradicts.
    pub caption: String,
    /// Seed of the draws: the same seed, captions and rules give the same file.
    pub seed: u64,
    /// What was changed.
    pub kind: Kind,
    /// Positions of the replaced words in the caption, from 0.
    pub positions: Vec<usize>,
    /// The replaced words.
    pub old: Vec<String>,
    /// The new words.
    pub new: Vec<String>,
    /// The whole sentence.
    pub text: String,
    /// Score of image and sentence, where a model gave one. `negatives` writes the sigmoid of the match logit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
}

/// Writes records, one per line. Errors give `path` as the place.
///
/// # Errors
/// If a line cannot be written, a score is not finite, or [`read`] would refuse a record.
pub fn write(records: &[Record], out: &mut impl Write, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    for record in records {
        let place = format!("{}, caption {}", path.display(), record.caption);
        Error::unless_finite(record.score.as_slice(), |_| place.clone(), "a finite score")?;
        check(record, &place)?;
        let line = serde_json::to_string(record).expect("words and numbers") + "\n";
        let got = format_args!("{} bytes", line.len());
        Error::unless(line.len() <= LONGEST, place, "a line of at most 1 MiB", got)?;
        out.write_all(line.as_bytes()).map_err(Error::io(path))?;
    }
    Ok(())
}

/// Writes a file whole or not at all: a temporary file in the same folder is renamed to `path`.
///
/// ```
/// use tags_dc::record::{self, Kind, Record};
///
/// let negative = Record {
///     caption: "17#0".into(),
///     seed: 1,
///     kind: Kind::Noun,
///     positions: vec![1],
///     old: vec!["dog".into()],
///     new: vec!["cat".into()],
///     text: "A cat runs.".into(),
///     score: None,
/// };
/// let folder = tempfile::tempdir().expect("a folder");
/// let path = folder.path().join("negatives.jsonl");
/// record::save(&path, std::slice::from_ref(&negative))?;
/// assert_eq!(record::read(&path)?, [negative]);
/// # Ok::<(), itm_core::Error>(())
/// ```
///
/// # Errors
/// As [`write()`]; the temporary file is removed.
pub fn save(path: &Path, records: &[Record]) -> Result<()> {
    output::write(path, |file| write(records, file, path))
}

/// All records of a file. Empty lines are skipped.
///
/// # Errors
/// If the file cannot be read, or a line has other fields, positions that do not ascend, another number of old words than of positions, or
/// more than 1 MiB. The error names file and line.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    parse(&path.display().to_string(), BufReader::new(open(path)?))
}

/// The records of any source of lines. Errors give `name` as the place.
///
/// # Errors
/// As [`read`].
pub fn parse(name: &str, lines: impl BufRead) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    each_line(name, lines, LONGEST, |number, line| {
        let place = format!("{name} line {number}");
        if !line.trim_ascii().is_empty() {
            let record = serde_json::from_slice(line.trim_ascii())
                .map_err(|e| Error::invalid(&place, "a negative", e))?;
            check(&record, &place)?;
            records.push(record);
        }
        Ok(())
    })?;
    Ok(records)
}

/// Refuses positions that do not ascend, or that do not have an old word each.
fn check(Record { positions, old, .. }: &Record, place: &str) -> Result<()> {
    let ascend = positions.is_sorted_by(|a, b| a < b);
    Error::unless(ascend, place, "positions that ascend", format_args!("{positions:?}"))?;
    let expected = format_args!("{} old words", positions.len());
    Error::unless(old.len() == positions.len(), place, expected, old.len())
}

#[cfg(test)]
mod tests;

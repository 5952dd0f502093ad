//! The printed lines of a paper: a CSV file.

use std::collections::BTreeMap;
use std::path::Path;

use itm_core::files::read_text;
use itm_core::{Error, Result};
use serde::Deserialize;

use crate::report::{PaperNumbers, Recalls};

/// The lines of a CSV file. `counts` has the number of lines of each table.
///
/// # Errors
/// If the file cannot be read, or has a line too many or too few, twice, or with a malformed number.
pub(super) fn read(file: &Path, counts: &BTreeMap<String, usize>) -> Result<Vec<Printed>> {
    let text = read_text(file)?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let wrong = |e| Error::invalid(file.display(), "lines of numbers under known columns", e);
    let lines = reader.deserialize().collect::<csv::Result<Vec<_>>>().map_err(wrong)?;
    counted(file, &lines, counts)?;
    Ok(lines)
}

/// Refuses lines that are missing or there twice.
fn counted(file: &Path, lines: &[Printed], counts: &BTreeMap<String, usize>) -> Result<()> {
    let place = |at: usize| format!("{} line {}", file.display(), at + 2); // the first line is the header
    for (at, line) in lines.iter().enumerate() {
        if let Some(first) = lines[..at].iter().position(|other| other.key() == line.key()) {
            let got = format!("`{}` of line {} again", line.row, first + 2);
            return Err(Error::invalid(place(at), "each row once", got));
        }
        if !counts.contains_key(&line.table) {
            let known: Vec<_> = counts.keys().map(String::as_str).collect();
            let expected = format!("one of {}, which `lines` counts", known.join(", "));
            let place = format!("{}, table", place(at));
            return Err(Error::invalid(place, expected, format!("`{}`", line.table)));
        }
    }
    for (table, &count) in counts {
        let of_table = || lines.iter().enumerate().filter(|(_, line)| line.table == *table);
        let found = of_table().count();
        if found != count {
            let last = of_table().next_back().map_or(0, |(at, _)| at);
            let expected = format!("{count} lines up to here");
            return Err(Error::invalid(format!("{}, table {table}", place(last)), expected, found));
        }
    }
    Ok(())
}

/// One printed line. A cell is `None` if it is not printed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Printed {
    /// The number of its table, or `repository`: printed beside the released code.
    pub table: String,
    /// Its name, or its number.
    pub row: String,
    /// `flickr30k` or `mscoco`.
    pub dataset: String,
    /// `test_1k`, `test_first_1k`, `test_1k_5fold` or `test_5k`.
    pub protocol: String,
    /// `baseline`, `ablation` or `method`.
    pub kind: Option<String>,
    /// `single` or `ensemble`; for an inference, the line that trained its model.
    pub model: Option<String>,
    /// HAL: how scores are ranked, for example `CSLS+RGM`.
    pub inference: Option<String>,
    /// HAL: encoders of a line.
    pub architecture: Option<String>,
    /// HAL: what was minimised.
    pub loss: Option<String>,
    /// HAL: `ours` or `reported`.
    pub origin: Option<String>,
    /// HAL: the line that trained the model of an inference.
    pub model_row: Option<String>,
    /// HAL: k of Eq. 4.
    pub k: Option<u32>,
    /// HAL: the name of a line of another paper.
    pub label: Option<String>,
    /// FNE: what a row of Tables 4 and 5 varies.
    pub param: Option<String>,
    /// TAGS-DC: `base` or `large`.
    pub size: Option<String>,
    /// TAGS-DC: what wrote the sentences.
    pub generator: Option<String>,
    /// TAGS-DC: what tells sentences apart.
    pub discriminator: Option<String>,
    i2t_r1: Option<f64>,
    i2t_r5: Option<f64>,
    i2t_r10: Option<f64>,
    /// HAL: median rank.
    pub i2t_medr: Option<f64>,
    /// HAL: mean rank.
    pub i2t_meanr: Option<f64>,
    t2i_r1: Option<f64>,
    t2i_r5: Option<f64>,
    t2i_r10: Option<f64>,
    /// HAL: median rank.
    pub t2i_medr: Option<f64>,
    /// HAL: mean rank.
    pub t2i_meanr: Option<f64>,
    /// Sum of the recalls as printed. It can differ by 0.1 from the sum of the rounded recalls.
    pub rsum: Option<f64>,
    /// HAL: skewness of N_1, N_5 and N_10, summed over both directions.
    pub hs_sum: Option<f64>,
    /// TAGS-DC: of sentences, under GPT-2.
    pub perplexity: Option<f64>,
    /// TAGS-DC: of a discriminator, in percent.
    pub accuracy: Option<f64>,
    /// What is uncertain about the reading of the page.
    pub note: Option<String>,
}

impl Printed {
    /// The line's recalls, and their sum if all six are printed.
    pub(crate) fn numbers(&self, table: u32) -> PaperNumbers {
        let i2t = Recalls { r1: self.i2t_r1, r5: self.i2t_r5, r10: self.i2t_r10 };
        let t2i = Recalls { r1: self.t2i_r1, r5: self.t2i_r5, r10: self.t2i_r10 };
        let rsum = i2t.values().into_iter().chain(t2i.values()).sum();
        PaperNumbers { table, i2t, t2i, rsum }
    }

    /// Its data set and its protocol.
    pub(super) fn data(&self) -> [&str; 2] {
        [&self.dataset, &self.protocol]
    }

    /// What tells a line from all other lines.
    fn key(&self) -> impl PartialEq {
        let Self { table, row, dataset, protocol, model, .. } = self.clone();
        (table, row, dataset, protocol, model, self.generator.clone(), self.discriminator.clone())
    }

    pub(super) fn has_recalls(&self) -> bool {
        let recalls =
            [self.i2t_r1, self.i2t_r5, self.i2t_r10, self.t2i_r1, self.t2i_r5, self.t2i_r10];
        recalls.iter().chain([&self.rsum]).any(Option::is_some)
    }
}

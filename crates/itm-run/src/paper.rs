//! The papers' printed numbers, from `papers/<tables>.toml` beside the targets: to compare with measured numbers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use itm_core::eval::Protocol;
use itm_core::{Error, Result};
use serde::Deserialize;
use toml::{Table, Value};

use crate::config::{AnyConfig, DatasetName, Origin, Shown, names, parse, section};
use crate::report::{PaperNumbers, PaperRecalls, PaperReference, PaperRow};

/// The tables of a paper.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paper {
    /// The lines of the tables.
    pub lines: Vec<Printed>,
    /// Numbers of the tables that no target makes.
    unmade: Vec<u32>,
}

impl Paper {
    /// The paper of a target: the file that the key `tables` names. Without the key: the file with the method's name,
    /// if it exists.
    ///
    /// # Errors
    /// If the file cannot be read, or has a table that no target makes.
    pub(crate) fn of(target: &Origin) -> Result<Self> {
        let Origin { path: target, method, tables } = *target;
        let targets = target.parent().unwrap_or(target);
        let (folder, name) = (targets.join("papers"), tables.unwrap_or(method));
        let file = folder.join(format!("{name}.toml"));
        if file.is_file() {
            let paper = Self::read(&file)?;
            paper.check(&file, &made(targets, name)?)?;
            return Ok(paper);
        }
        if tables.is_none() {
            return Ok(Self::default());
        }
        let place = format!("{}, target.tables", target.display());
        let known = if folder.is_dir() { names(&folder)? } else { vec![] };
        let expected = format!("a file of {}: {}", folder.display(), known.join(", "));
        Err(Error::invalid(place, expected, format!("`{name}`")))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read or is not TOML, or if a common key of a line has the wrong type.
    pub fn read(file: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Lines {
            row: Vec<Table>,
            #[serde(default)]
            unmade: Vec<u32>,
        }
        let text = fs::read_to_string(file).map_err(Error::io(file))?;
        let Lines { row, unmade } = section(file, "tables", parse(file, &text)?)?;
        let line = |(at, row)| section(file, &place(at), row);
        Ok(Self { lines: row.into_iter().enumerate().map(line).collect::<Result<_>>()?, unmade })
    }

    /// Refuses a table of recalls that no target makes, unless the file says so.
    fn check(&self, file: &Path, made: &[u32]) -> Result<()> {
        for (at, line) in self.lines.iter().enumerate() {
            let Number::Of(table) = line.table else { continue };
            if line.has_recalls() && !made.contains(&table) && !self.unmade.contains(&table) {
                let list = made.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                let place = format!("{}, {}, table", file.display(), place(at));
                let expected = format!("a table that a target makes ({list}) or `unmade` names");
                return Err(Error::invalid(place, expected, table));
            }
        }
        Ok(())
    }

    /// The lines of a table.
    fn of_table(&self, table: u32) -> impl Iterator<Item = &Printed> {
        self.lines.iter().filter(move |line| line.table == Number::Of(table))
    }

    /// The line of a row in a table, for a data set and a protocol.
    pub fn line(&self, table: u32, on: Measured, row: &str) -> Option<&Printed> {
        self.of_table(table).find(|line| on.is(line) && line.row == row)
    }

    /// The lines of a table: first the lines of `rows` (our name, the printed name), then the baselines. All lines
    /// have one data set and protocol: `on` if the paper prints it, else the first that it prints. `None` if the paper
    /// prints none of the rows.
    pub(crate) fn reference(
        &self,
        table: u32,
        on: Option<Measured>,
        rows: &[(&str, &str)],
    ) -> Option<PaperReference> {
        let named = || self.of_table(table).filter(|l| rows.iter().any(|(_, n)| l.row == *n));
        let same = named().find(|line| on.is_some_and(|on| on.is(line)));
        let of = same.or_else(|| named().next())?;
        let lines = || {
            let key =
                |line: &Printed| (&line.dataset, &line.protocol) == (&of.dataset, &of.protocol);
            self.of_table(table).filter(move |line| key(line))
        };
        let ours =
            rows.iter().filter_map(|(name, n)| Some((*name, lines().find(|l| l.row == *n)?)));
        let others = lines().filter(|line| line.kind.as_deref() == Some("baseline"));
        let row = |(name, line): (&str, &Printed)| PaperRow {
            name: name.into(),
            numbers: line.numbers(table),
        };
        Some(PaperReference {
            dataset: title(&of.dataset).into(),
            protocol: of.protocol.clone(),
            table,
            rows: ours.chain(others.map(|line| (line.row.as_str(), line))).map(row).collect(),
        })
    }

    /// What a table of inferences prints for a model. If none is named: for the model of its first line.
    ///
    /// # Errors
    /// If the table does not have the model. `place` says where the model is named.
    pub fn inferences(
        &self,
        table: u32,
        model: Option<&str>,
        place: impl FnOnce() -> String,
    ) -> Result<Inferences> {
        let mut models: Vec<_> = self.of_table(table).filter_map(|l| l.model.as_deref()).collect();
        models.dedup();
        let Some(model) = model.or(models.first().copied()) else {
            return Ok(Inferences::default());
        };
        let over = || self.of_table(table).filter(|line| line.model.as_deref() == Some(model));
        let Some(first) = over().next() else {
            let expected = format!("models of the paper's Table {table}: {}", models.join(", "));
            return Err(Error::invalid(place(), expected, format!("`{model}`")));
        };
        let rsum = |line: &Printed| Some((line.word("inference")?.to_lowercase(), line.rsum?));
        Ok(Inferences {
            model: model.into(),
            dataset: first.dataset.clone(),
            rsum: over().filter_map(rsum).collect(),
        })
    }
}

/// The place of a line in its file, for an error.
fn place(at: usize) -> String {
    format!("row {}", at + 1)
}

/// The tables of a paper that the targets of a folder make, sorted. A target that is broken makes none.
fn made(folder: &Path, tables: &str) -> Result<Vec<u32>> {
    let mut made: Vec<_> = names(folder)?
        .iter()
        .filter_map(|name| AnyConfig::load(folder, name).ok())
        .filter(|config| config.origin().tables.unwrap_or(config.origin().method) == tables)
        .flat_map(|config| config.shown())
        .filter_map(|shown| if let Shown::Table(n) = shown { Some(n) } else { None })
        .collect();
    made.sort_unstable();
    made.dedup();
    Ok(made)
}

/// Printed values of rSum for one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inferences {
    /// The line of another table that trained the model.
    pub model: String,
    /// `flickr30k` or `mscoco`.
    pub dataset: String,
    /// rSum by our name of the inference, for example `csls+rgm`.
    pub rsum: BTreeMap<String, f64>,
}

/// Data and protocol of a printed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    dataset: &'static str,
    protocol: &'static str,
}

impl Measured {
    /// The data set and the protocol in the papers' terms; `None` for data that no paper measured.
    pub fn new(dataset: DatasetName, protocol: Protocol) -> Option<Self> {
        let (dataset, protocol) = match (dataset, protocol) {
            (DatasetName::Flickr30k, Protocol::Flickr1k) => ("flickr30k", "test_1k"),
            (DatasetName::Coco, Protocol::Coco1kFolds) => ("mscoco", "test_1k_5fold"),
            (DatasetName::Coco, Protocol::CocoFirst1k) => ("mscoco", "test_first_1k"),
            (DatasetName::Coco, Protocol::Coco5k) => ("mscoco", "test_5k"),
            _ => return None,
        };
        Some(Self { dataset, protocol })
    }

    fn is(self, line: &Printed) -> bool {
        line.dataset == self.dataset && line.protocol == self.protocol
    }
}

fn title(dataset: &str) -> &'static str {
    if dataset == "mscoco" { "MS-COCO" } else { "Flickr30K" }
}

/// The number of a table, or a word for numbers that are printed outside the paper.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// Table 3.
    Of(u32),
    /// `repository`: beside the released code.
    Word(String),
}

/// One printed line. A number is `None` if it is not printed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Printed {
    /// Its table.
    pub table: Number,
    /// Its name, or its number.
    #[serde(default)]
    pub row: String,
    /// `flickr30k` or `mscoco`.
    #[serde(default)]
    pub dataset: String,
    /// `test_1k`, `test_first_1k`, `test_1k_5fold` or `test_5k`.
    #[serde(default)]
    pub protocol: String,
    /// `baseline`, `ablation` or `method`.
    pub kind: Option<String>,
    /// `single` or `ensemble`; for an inference, the line that trained its model.
    pub model: Option<String>,
    i2t_r1: Option<f64>,
    i2t_r5: Option<f64>,
    i2t_r10: Option<f64>,
    t2i_r1: Option<f64>,
    t2i_r5: Option<f64>,
    t2i_r10: Option<f64>,
    /// Sum of the recalls as printed. It can differ by 0.1 from the sum of the rounded recalls.
    pub rsum: Option<f64>,
    /// Keys that only one paper has.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

impl Printed {
    /// The line's recalls, and their sum if all six are printed.
    pub(crate) fn numbers(&self, table: u32) -> PaperNumbers {
        let i2t = PaperRecalls { r1: self.i2t_r1, r5: self.i2t_r5, r10: self.i2t_r10 };
        let t2i = PaperRecalls { r1: self.t2i_r1, r5: self.t2i_r5, r10: self.t2i_r10 };
        let rsum = i2t.values().into_iter().chain(t2i.values()).sum();
        PaperNumbers { table, i2t, t2i, rsum }
    }

    /// A number that only one paper has, for example `hs_sum`.
    pub fn number(&self, key: &str) -> Option<f64> {
        let value = self.extra.get(key)?;
        value.as_float().or_else(|| value.as_integer().map(|n| n as f64))
    }

    /// A word that only one paper has, for example `loss`.
    pub fn word(&self, key: &str) -> Option<&str> {
        self.extra.get(key)?.as_str()
    }

    fn has_recalls(&self) -> bool {
        let recalls =
            [self.i2t_r1, self.i2t_r5, self.i2t_r10, self.t2i_r1, self.t2i_r5, self.t2i_r10];
        recalls.iter().chain([&self.rsum]).any(Option::is_some)
    }
}

#[cfg(test)]
mod tests;

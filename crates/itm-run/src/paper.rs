//! The papers' printed numbers, from `papers/<tables>.csv` beside the targets: to compare with measured numbers. `papers/<tables>.toml` says
//! where they come from, and how many lines each table has.

mod lines;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use itm_core::eval::Protocol;
use itm_core::files::read_text;
use itm_core::{Error, Result};
use serde::Deserialize;

use crate::config::{Config, DatasetName, Exhibit, PaperTable, Target, View, parse, section};
use crate::report::{PaperReference, PaperRow};

pub use self::lines::Printed;

/// The tables of a paper.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paper {
    /// Title and venue.
    title: String,
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
    pub(crate) fn of(config: &Config) -> Result<Self> {
        let Target { tables, method, .. } = &config.target;
        let folder = folder(config);
        if tables.is_none() && !folder.join(format!("{method}.toml")).is_file() {
            return Ok(Self::default());
        }
        let name = tables.as_ref().unwrap_or(method);
        let paper = Self::named(config, "target.tables", name)?;
        let file = folder.join(format!("{name}.toml"));
        paper.check(&file, &made(folder.parent().unwrap_or(&folder), name)?)?;
        Ok(paper)
    }

    /// The paper that a key of a target names.
    ///
    /// # Errors
    /// If there is no such paper, or its files cannot be read.
    pub(crate) fn named(config: &Config, key: &str, name: &str) -> Result<Self> {
        let folder = folder(config);
        let file = folder.join(format!("{name}.toml"));
        if file.is_file() {
            return Self::read(&file);
        }
        let known = if folder.is_dir() { Config::names(&folder)? } else { vec![] };
        let expected = format!("a file of {}: {}", folder.display(), known.join(", "));
        Err(Error::invalid(config.place(key), expected, format!("`{name}`")))
    }

    /// Reads `<name>.toml` and the lines of `<name>.csv` beside it.
    ///
    /// # Errors
    /// If a file cannot be read, or the lines are not those that the first file counts.
    pub fn read(file: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct PaperFile {
            paper: String,
            lines: BTreeMap<String, usize>,
            #[serde(default)]
            unmade: Vec<u32>,
        }
        let text = read_text(file)?;
        let PaperFile { paper, lines: counts, unmade } =
            section(file, "tables", parse(file, &text)?)?;
        let file = file.with_extension("csv");
        Ok(Self { title: paper, lines: lines::read(&file, &counts)?, unmade })
    }

    /// Refuses a table of recalls that no target makes, unless the file says so.
    fn check(&self, file: &Path, made: &BTreeSet<u32>) -> Result<()> {
        for line in self.lines.iter().filter(|line| line.has_recalls()) {
            let Ok(table) = line.table.parse::<u32>() else { continue };
            if !made.contains(&table) && !self.unmade.contains(&table) {
                let list = made.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                let expected = format!("a table that a target makes ({list}) or `unmade` names");
                return Err(Error::invalid(format!("{}, lines", file.display()), expected, table));
            }
        }
        Ok(())
    }

    /// The lines of a table.
    pub fn of_table(&self, table: u32) -> impl Iterator<Item = &Printed> {
        let table = table.to_string();
        self.lines.iter().filter(move |line| line.table == table)
    }

    /// The line of a row in a table, for a data set and a protocol.
    pub(crate) fn line(&self, table: u32, on: PaperData, row: &str) -> Option<&Printed> {
        self.of_table(table).find(|line| line.data() == on && line.row == row)
    }

    /// The lines of a table: first the lines of `rows` (our name, the printed name), then the baselines. All lines
    /// have one data set and protocol: `on` if the paper prints it, else the first that it prints. `None` if the paper
    /// prints none of the rows.
    pub(crate) fn reference(
        &self,
        table: u32,
        on: Option<PaperData>,
        rows: &[(&str, &str)],
    ) -> Option<PaperReference> {
        let named = || self.of_table(table).filter(|l| rows.iter().any(|(_, n)| l.row == *n));
        let same = named().find(|line| on == Some(line.data()));
        let of = same.or_else(|| named().next())?;
        let lines = || self.of_table(table).filter(move |line| line.data() == of.data());
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
        let rsum = |line: &Printed| Some((line.inference.as_ref()?.to_lowercase(), line.rsum?));
        Ok(Inferences {
            model: model.into(),
            dataset: first.dataset.clone(),
            rsum: over().filter_map(rsum).collect(),
        })
    }
}

/// The folder of the papers' tables.
fn folder(config: &Config) -> PathBuf {
    config.path.parent().unwrap_or(&config.path).join("papers")
}

/// The tables of a paper that the targets of a folder make. A target that is broken makes none.
fn made(folder: &Path, tables: &str) -> Result<BTreeSet<u32>> {
    let names = Config::names(folder)?.into_iter();
    let targets = names.filter_map(|name| Config::load(folder, &name).ok());
    let is_of = |target: &Target| target.tables.as_ref().unwrap_or(&target.method) == tables;
    let shown = targets.filter(|config| is_of(&config.target)).flat_map(|config| config.shown());
    let number = |shown| if let Exhibit::Table(n) = shown { Some(n) } else { None };
    Ok(shown.filter_map(number).collect())
}

/// What a paper prints for the corrections of the rows of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Corrections {
    /// Title and venue of the paper.
    pub paper: String,
    /// The number of the paper's table.
    pub table: u32,
    /// The printed values of each row's model.
    pub rows: Vec<Inferences>,
}

impl Corrections {
    /// For a table of a target; nothing if the table has no corrections. `own` is the target's paper.
    ///
    /// # Errors
    /// If there is no such paper, or if its table does not have the model that `printed` names.
    pub(crate) fn of(target: &Config, own: &Paper, shown: &Exhibit, view: &View) -> Result<Self> {
        let other;
        let (paper, table) = match (&view.corrections, shown) {
            _ if view.rescore.is_empty() => return Ok(Self::default()),
            (Some(PaperTable { tables, table }), _) => {
                other = Paper::named(target, &shown.key("corrections"), tables)?;
                (&other, *table)
            }
            (None, Exhibit::Table(table)) => (own, *table),
            (None, Exhibit::Named(_) | Exhibit::Figure(_)) => {
                let rows = vec![Inferences::default(); view.rows.len()];
                return Ok(Self { rows, ..Self::default() });
            }
        };
        let place = || target.place(&shown.key("printed"));
        let of = |row: &String| {
            paper.inferences(table, view.printed.get(row).map(String::as_str), place)
        };
        let (paper, rows) = (paper.title.clone(), view.rows.iter().map(of).collect::<Result<_>>()?);
        Ok(Self { paper, table, rows })
    }
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

/// The data set and the protocol of a printed line, in the papers' terms.
pub(crate) type PaperData = [&'static str; 2];

/// The papers' terms for a data set and a protocol; `None` for data that no paper measured.
pub(crate) fn paper_data(dataset: DatasetName, protocol: Protocol) -> Option<PaperData> {
    match (dataset, protocol) {
        (DatasetName::Flickr30k, Protocol::Flickr1k) => Some(["flickr30k", "test_1k"]),
        (DatasetName::Coco, Protocol::Coco1kFolds) => Some(["mscoco", "test_1k_5fold"]),
        (DatasetName::Coco, Protocol::CocoFirst1k) => Some(["mscoco", "test_first_1k"]),
        (DatasetName::Coco, Protocol::Coco5k) => Some(["mscoco", "test_5k"]),
        _ => None,
    }
}

fn title(dataset: &str) -> &'static str {
    if dataset == "mscoco" { "MS-COCO" } else { "Flickr30K" }
}

#[cfg(test)]
mod tests;

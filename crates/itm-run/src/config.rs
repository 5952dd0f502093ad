//! One file is one target; its rows are `[row.<name>]` sections that override it.

mod data;
mod views;

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use itm_core::data::sha256_hex;
use itm_core::eval::Protocol;
use itm_core::{Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::hubs::HubsConfig;

pub use self::data::{DatasetName, ScenesConfig};
pub use self::views::{ClaimConfig, Shown, View};

/// What the runner reads of a target, `[target]`: the rest of the file belongs to the method.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Which method crate.
    pub method: Method,
    /// Title and venue of the paper.
    pub paper: String,
    /// The table of the paper that is made where the command line names none: its section `[table.N]`, or all rows.
    pub table: u32,
    /// Where the data come from.
    pub dataset: DatasetName,
    /// How the test split is evaluated.
    pub protocol: Protocol,
    /// Target to run instead when the data are not there.
    pub substitute: Option<String>,
    /// Number of seeds, from 0, unless the command line says otherwise.
    pub seeds: u64,
    /// What is done to the image features first.
    pub features: ImageFeatures,
    /// Words that occur in fewer training captions become `<unk>`.
    pub min_word_count: u64,
    /// Captions are cut to this many words.
    pub max_words: usize,
    /// What stands around the words of a caption.
    #[serde(default)]
    pub marks: Marks,
    /// A checkpoint every so many steps, besides the one at each epoch's end.
    pub checkpoint_steps: usize,
    /// A line of the log every so many steps.
    pub log_steps: usize,
    /// An observation of the drawn negatives every so many steps; 0 for never.
    pub observe_steps: usize,
    /// Size of the built-in world.
    pub scenes: Option<ScenesConfig>,
}

impl Target {
    fn check(&self, path: &Path) -> Result<()> {
        let place = |key: &str| format!("{}, target.{key}", path.display());
        within(place("seeds"), self.seeds, 1..=MOST_SEEDS)?;
        within(place("max_words"), self.max_words as u64, 1..=10_000)?;
        within(place("checkpoint_steps"), self.checkpoint_steps as u64, 1..=u64::MAX)?;
        within(place("log_steps"), self.log_steps as u64, 1..=u64::MAX)?;
        self.scenes.map_or(Ok(()), |scenes| scenes.check(|key| place(&format!("scenes.{key}"))))
    }
}

/// The methods that can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// False Negative Elimination.
    Fne,
    /// HAL and its rivals: SUM, MAX, the AAAI loss.
    Hal,
}

/// What is done to the image features before a method sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageFeatures {
    /// Nothing.
    Given,
    /// Roots, centred by the training split, of unit length: [`itm_core::data::CentredRoots`].
    CentredRoots,
    /// No features: a method sees the pictures themselves.
    Pictures,
}

/// What stands around the words of a caption.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Marks {
    /// Nothing; text encoders that cannot do without have their own.
    #[default]
    Off,
    /// A first and a last word of their own (HAL, released code).
    StartEnd,
}

/// Largest number of seeds of a run.
pub const MOST_SEEDS: u64 = 1000;

/// Refuses a number outside of its range.
pub(crate) fn within(place: String, got: u64, range: RangeInclusive<u64>) -> Result<()> {
    if range.contains(&got) {
        return Ok(());
    }
    Err(Error::invalid(place, format!("{} to {}", range.start(), range.end()), got))
}

/// A target of either kind, told apart by its `target.method`.
#[derive(Debug, Clone)]
pub enum AnyConfig {
    /// Its rows are trained.
    Trained(Box<Config>),
    /// Its rows are inferences over models that another target has trained.
    Hubs(Box<HubsConfig>),
}

impl AnyConfig {
    /// Reads `<folder>/<name>.toml`.
    ///
    /// # Errors
    /// If there is no such file (the targets that exist are named), if it is not TOML, or if a key is unknown or missing.
    pub fn load(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(format!("{name}.toml"));
        if !path.is_file() {
            let known = Config::names(folder)?.join(", ");
            return Err(Error::invalid("target", format!("one of {known}"), format!("`{name}`")));
        }
        let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
        Self::parse(name, path, text)
    }

    pub(crate) fn parse(name: &str, path: PathBuf, text: String) -> Result<Self> {
        let root: Table = toml::from_str(&text).map_err(|e| syntax_error(&path, &text, &e))?;
        let method = root.get("target").and_then(|t| t.get("method")).and_then(Value::as_str);
        if method == Some("hubness") {
            return HubsConfig::parse(name, path, text, root).map(Box::new).map(Self::Hubs);
        }
        Config::parse(name, path, text, root).map(Box::new).map(Self::Trained)
    }
}

/// The file of a target that trains, read and checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// The target's name: the file's, without its ending.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The text, as it goes into the run directory.
    pub text: String,
    /// SHA-256 of the text.
    pub sha256: String,
    /// The runner's part.
    pub target: Target,
    method: Table,
    rows: Vec<(String, Table)>,
    views: Vec<(Shown, View)>,
}

impl Config {
    /// Reads `<folder>/<name>.toml`.
    ///
    /// # Errors
    /// If there is no such file (the targets that exist are named), if it is not TOML, if a key is unknown or missing, or
    /// if it is a target that trains nothing.
    pub fn load(folder: &Path, name: &str) -> Result<Self> {
        match AnyConfig::load(folder, name)? {
            AnyConfig::Trained(config) => Ok(*config),
            AnyConfig::Hubs(config) => {
                let place = format!("{}, target.method", config.path.display());
                Err(Error::invalid(place, "a method that trains", "`hubness`"))
            }
        }
    }

    /// The targets in a folder, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn names(folder: &Path) -> Result<Vec<String>> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .map_err(Error::io(folder))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|file| file.strip_suffix(".toml").map(str::to_owned))
            .collect();
        names.sort();
        Ok(names)
    }

    fn parse(name: &str, path: PathBuf, text: String, mut root: Table) -> Result<Self> {
        let target = take_table(&mut root, &path, "target")?;
        let target: Target = section(&path, "target", target)?;
        target.check(&path)?;
        let mut rows = Vec::new();
        for (row, value) in take_table(&mut root, &path, "row")? {
            match value {
                Value::Table(table) => rows.push((row, table)),
                other => {
                    let place = format!("{}, row.{row}", path.display());
                    return Err(Error::invalid(place, "a section", other.type_str()));
                }
            }
        }
        if rows.is_empty() {
            return Err(Error::invalid(path.display(), "at least one [row.<name>]", "none"));
        }
        let views = views::take(&mut root, &path, &rows)?;
        let sha256 = sha256_hex(text.as_bytes());
        Ok(Self { name: name.into(), path, text, sha256, target, method: root, rows, views })
    }

    /// A place in the file, for an error.
    pub fn place(&self, section: &str) -> String {
        format!("{}, {section}", self.path.display())
    }

    /// Adapter for `map_err`: says in which section of the file a wrong value stands.
    pub(crate) fn inside(&self, section: &str) -> impl FnOnce(Error) -> Error + use<> {
        let outer = self.place(section);
        move |error| match error {
            Error::Invalid { place, expected, got } => {
                Error::invalid(format!("{outer}, {place}"), expected, got)
            }
            other => other,
        }
    }

    /// The names of the rows, in the file's order.
    pub fn rows(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|(name, _)| name.as_str())
    }

    /// The tables and figures of the paper that the file has sections for.
    pub fn shown(&self) -> impl Iterator<Item = Shown> {
        self.views.iter().map(|(shown, _)| *shown)
    }

    /// The rows of a table or a figure; `None` if the file has no such section, and it is not the target's own table.
    pub fn view(&self, shown: Shown) -> Option<View> {
        let found = self.views.iter().find(|(other, _)| *other == shown);
        let own = shown == Shown::Table(self.target.table);
        let all = || View::of_all(self.rows().map(str::to_owned).collect());
        found.map(|(_, view)| view.clone()).or_else(|| own.then(all))
    }

    /// The points of a figure: each of its rows with the number on the x axis, ascending; none of a table.
    ///
    /// # Errors
    /// If the key of the axis is no number in a row.
    pub fn points(&self, shown: Shown, view: &View) -> Result<Vec<(String, f64)>> {
        let (Shown::Figure(n), Some(key)) = (shown, &view.x) else { return Ok(vec![]) };
        let point = |row: &String| {
            let expected = || format!("a key that is a number in row.{row}");
            let place = || self.place(&format!("figure.{n}, x"));
            let missing = || Error::invalid(place(), expected(), format!("`{key}`"));
            Ok((row.clone(), self.number(row, key).ok_or_else(missing)?))
        };
        let mut points = view.rows.iter().map(point).collect::<Result<Vec<_>>>()?;
        points.sort_by(|a, b| a.1.total_cmp(&b.1));
        Ok(points)
    }

    /// The number at a dotted key of a row's configuration, `train.batch`.
    pub fn number(&self, row: &str, key: &str) -> Option<f64> {
        views::number(&self.method, &self.rows, row, key)
    }

    /// The method's configuration for a row: the file's sections, overridden by the row's.
    ///
    /// # Errors
    /// If the row does not exist, or if a key of its configuration is unknown or missing.
    pub fn row<C: DeserializeOwned>(&self, row: &str) -> Result<C> {
        let Some((_, overrides)) = self.rows.iter().find(|(name, _)| name == row) else {
            let known = self.rows().collect::<Vec<_>>().join(", ");
            let expected = format!("one of {known}");
            return Err(Error::invalid(self.place("rows"), expected, format!("`{row}`")));
        };
        let mut merged = self.method.clone();
        override_with(&mut merged, overrides);
        section(&self.path, &format!("row.{row}"), merged)
    }
}

/// Sections merge key by key; everything else replaces.
fn override_with(base: &mut Table, overrides: &Table) {
    for (key, value) in overrides {
        match (base.get_mut(key), value) {
            (Some(Value::Table(base)), Value::Table(overrides)) => override_with(base, overrides),
            _ => _ = base.insert(key.clone(), value.clone()),
        }
    }
}

pub(crate) fn take_table(root: &mut Table, path: &Path, key: &str) -> Result<Table> {
    match root.remove(key) {
        Some(Value::Table(table)) => Ok(table),
        Some(other) => {
            Err(Error::invalid(format!("{}, {key}", path.display()), "a section", other.type_str()))
        }
        None => Err(Error::invalid(path.display(), format!("a section [{key}]"), "none")),
    }
}

pub(crate) fn section<C: DeserializeOwned>(path: &Path, place: &str, table: Table) -> Result<C> {
    Value::Table(table).try_into().map_err(|e: toml::de::Error| {
        let mut lines = e.message().lines();
        let reason = lines.next().unwrap_or("a wrong value").to_owned();
        // The key's own path stands on a line of its own: "in `train.epochs`".
        let key =
            e.to_string().lines().rev().find_map(|l| l.strip_prefix("in ").map(str::to_owned));
        let place = match key {
            Some(key) => format!("{}, {place}, {}", path.display(), key.trim_matches('`')),
            None => format!("{}, {place}", path.display()),
        };
        Error::invalid(place, "every key known, present and of its type", reason)
    })
}

fn syntax_error(path: &Path, text: &str, error: &toml::de::Error) -> Error {
    let before = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = 1 + text.as_bytes()[..before].iter().filter(|&&b| b == b'\n').count();
    let reason = error.message().lines().next().unwrap_or("a wrong value").to_owned();
    Error::invalid(format!("{} line {line}", path.display()), "valid TOML", reason)
}

#[cfg(test)]
mod tests;

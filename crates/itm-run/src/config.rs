//! One file is one target; its rows are `[row.<name>]` sections that override it. `methods` opens the file: a file begins with a preset of
//! its method, and says what differs.

mod data;
mod read;
mod rows;
mod set;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use itm_core::data::{RegionSource, RegionTransform, sha256_hex};
use itm_core::eval::Protocol;
use itm_core::text::{Marks, Tokens};
use itm_core::{Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use self::read::{table_of, take_table};

pub use self::data::ScenesConfig;
pub(crate) use self::data::{DatasetName, load_options};
pub(crate) use self::read::{
    chain, check_seed, file, merged, method, override_with, parse, section, within,
};
pub(crate) use self::views::PaperTable;
pub use self::views::{Claim, Exhibit, View};

/// The runner's part of a target, `[target]`; the rest of the file belongs to the method.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The method: fne, hal, naaf or tags-dc.
    pub method: String,
    /// Title and venue of the paper.
    pub paper: String,
    /// The file of the paper's tables, `papers/<tables>.toml`, if it does not have the method's name.
    pub tables: Option<String>,
    /// The table of the paper that is made by default: its section `[table.N]`, or all rows.
    pub table: u32,
    /// Where the data come from.
    pub(crate) dataset: DatasetName,
    /// How the test split is evaluated.
    pub protocol: Protocol,
    /// Validation and test use only this number of images, the first of their splits, with all their captions; without this key, all
    /// images.
    pub images: Option<usize>,
    /// Whether every row also scores edited test captions, as in Table 4 of TAGS-DC.
    #[serde(default)]
    pub edits: bool,
    /// Target to run instead if the data are missing.
    pub substitute: Option<String>,
    /// Number of seeds, from 0, unless the command line says otherwise.
    pub seeds: u64,
    /// The transform of the image features.
    pub(crate) features: ImageFeatures,
    /// Folders of `itm embed`, from the data folder: their rows of images stand beside the features, and their rows of captions
    /// beside the stems of a bag. Towers over pictures and word pieces do not read them: their projections begin with closed-form CCA
    /// of the rows, which must be of the towers' own weights.
    #[serde(default)]
    pub embeddings: Vec<PathBuf>,
    /// Which region features are read beside the global features; without this key, none.
    pub regions: Option<RegionSource>,
    /// The transform of the region features.
    #[serde(default)]
    pub region_transform: RegionTransform,
    /// The largest number of validation captions: the first captions of the validation files.
    pub val_captions: Option<usize>,
    /// How a caption is split into words.
    #[serde(default)]
    pub tokens: Tokens,
    /// A file in the data folder with the vocabulary; without this key, the vocabulary is built from the training captions.
    pub vocabulary: Option<PathBuf>,
    /// A file in the data folder with ready word vectors, such as GloVe's, for rows whose word embeddings begin with them.
    pub word_vectors: Option<PathBuf>,
    /// Words that occur less often in the training captions become `<unk>`, if the vocabulary is built from these captions.
    pub min_word_count: u64,
    /// Captions are cut to this many words. Stems of a bag and word pieces are not.
    pub max_words: usize,
    /// The marks around the words of a caption, besides the marks that the encoder needs.
    #[serde(default)]
    pub marks: Marks,
    /// Steps from one checkpoint to the next, besides the checkpoint at each epoch's end.
    pub checkpoint_steps: usize,
    /// Steps from one line of the log to the next.
    pub log_steps: usize,
    /// Steps from one observation of the drawn negatives to the next; 0 for never.
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
        if let Some(images) = self.images {
            within(place("images"), images as u64, 1..=1_000_000)?;
            let expected = "none: only the protocol `full` takes a part of a split";
            Error::unless(self.protocol == Protocol::Full, place("images"), expected, images)?;
        }
        data::check(self, path)?;
        if let (DatasetName::Scenes, Some(file)) = (self.dataset, &self.vocabulary) {
            let expected = "none: Scenes have no folder, and their vocabulary is built";
            return Err(Error::invalid(place("vocabulary"), expected, file.display()));
        }
        if let (DatasetName::Scenes, Some(file)) = (self.dataset, &self.word_vectors) {
            let expected = "none: Scenes have no folder";
            return Err(Error::invalid(place("word_vectors"), expected, file.display()));
        }
        self.scenes.map_or(Ok(()), |scenes| scenes.check(|key| place(&format!("scenes.{key}"))))
    }
}

/// The transform of image features before a method sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum ImageFeatures {
    /// Nothing.
    Given,
    /// Roots, centred by the training split, of unit length: [`itm_core::data::CentredRoots`].
    CentredRoots,
    /// As `centred_roots`, but without unit length: the lengths stay as they are after centring.
    CentredRootsFree,
    /// No features: a method sees the pictures themselves.
    Pictures,
}

/// Largest number of seeds of a run.
pub(crate) const MOST_SEEDS: u64 = 1000;

/// The file of a target, read and checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// The target's name: the file's, without its ending.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The text, as it goes into the run directory: with every key of the preset, and of the target that the file extends. So the copy needs no
    /// other file, and its hash is the run's hash.
    pub text: String,
    /// SHA-256 of the text.
    pub sha256: String,
    /// The keys that the command line replaced, as it names them.
    pub set: Vec<String>,
    /// The runner's part.
    pub target: Target,
    method: Table,
    rows: rows::RowMap,
    from: BTreeMap<String, String>,
    views: BTreeMap<Exhibit, View>,
}

impl Config {
    /// A target of these tables. `text` is what they were read from, or made of.
    ///
    /// # Errors
    /// If a key is unknown or missing.
    pub(crate) fn new(name: &str, path: PathBuf, text: String, mut root: Table) -> Result<Self> {
        read::check_counts(&path, &root)?;
        let target = take_table(&mut root, &path, "target")?;
        let target: Target = section(&path, "target", target)?;
        target.check(&path)?;
        let mut rows = rows::RowMap::new();
        for (row, value) in take_table(&mut root, &path, "row")? {
            let place = format!("{}, row.{row}", path.display());
            rows.insert(row, vec![table_of(value, place)?]);
        }
        Error::unless(!rows.is_empty(), path.display(), "at least one [row.<name>]", "none")?;
        rows::check_folders(&rows, &path)?;
        rows::resolve(&mut rows, &path)?;
        let from = rows::take(&mut rows, "from", &path)?;
        let views = views::take(&mut root, &path, &rows)?;
        let sha256 = sha256_hex(text.as_bytes());
        let (name, method, set) = (name.into(), root, vec![]);
        Ok(Self { name, path, text, sha256, set, target, method, rows, from, views })
    }

    /// A place in the file, for an error.
    pub(crate) fn place(&self, section: &str) -> String {
        format!("{}, {section}", self.path.display())
    }

    /// Adapter for `map_err`: adds the section of the file that has the wrong value.
    pub(crate) fn inside(&self, section: &str) -> impl FnOnce(Error) -> Error + use<> {
        Error::inside(self.place(section))
    }

    /// The names of the rows, in the file's order.
    pub fn rows(&self) -> impl Iterator<Item = &str> {
        self.rows.keys().map(String::as_str)
    }

    /// The row that the option `--row` names, or the first.
    ///
    /// # Errors
    /// If there is no such row.
    pub(crate) fn named_row(&self, name: Option<&str>) -> Result<String> {
        let known: Vec<_> = self.rows().collect();
        let row = name.unwrap_or(known[0]);
        let expected = format_args!("one of {}", known.join(", "));
        Error::unless(known.contains(&row), "--row", expected, format_args!("`{row}`"))?;
        Ok(row.to_owned())
    }

    /// The row whose chosen checkpoint a row begins with, `from = "ROW"`.
    pub(crate) fn from(&self, row: &str) -> Option<&str> {
        self.from.get(row).map(String::as_str)
    }

    /// The tables and figures that can be made, sorted: the target's own table, and all sections of the file.
    pub fn shown(&self) -> Vec<Exhibit> {
        let own = Exhibit::Table(self.target.table);
        let all: BTreeSet<_> = self.views.keys().cloned().chain([own]).collect();
        all.into_iter().collect()
    }

    /// The rows of a table or a figure; `None` if the file has no such section, unless it is the target's own table.
    pub fn view(&self, shown: &Exhibit) -> Option<View> {
        let own = *shown == Exhibit::Table(self.target.table);
        let all = || View::of_all(self.rows().map(str::to_owned).collect());
        self.views.get(shown).cloned().or_else(|| own.then(all))
    }

    /// The points of a figure: each of its rows with the number on the x axis, ascending; empty for a table.
    ///
    /// # Errors
    /// If the key of the axis is not a number in a row.
    pub(crate) fn points(&self, shown: &Exhibit, view: &View) -> Result<Vec<(String, f64)>> {
        let (Exhibit::Figure(n), Some(key)) = (shown, &view.x) else { return Ok(vec![]) };
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
        let row = Value::Table(merged(self.method.clone(), self.rows.get(row)?));
        let value = key.split('.').try_fold(&row, |value, part| value.get(part))?;
        value.as_float().or_else(|| value.as_integer().map(|n| n as f64))
    }

    /// The method's configuration for a row: the file's sections, overridden by the row's.
    ///
    /// # Errors
    /// If the row does not exist, or if a key of its configuration is unknown or missing.
    pub fn row<C: DeserializeOwned>(&self, row: &str) -> Result<C> {
        let Some(changes) = self.rows.get(row) else {
            let known = self.rows().collect::<Vec<_>>().join(", ");
            let expected = format!("one of {known}");
            return Err(Error::invalid(self.place("rows"), expected, format!("`{row}`")));
        };
        section(&self.path, &format!("row.{row}"), merged(self.method.clone(), changes))
    }
}

#[cfg(test)]
mod tests;

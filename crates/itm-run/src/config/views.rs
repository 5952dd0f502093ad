//! `[table.N]` and `[figure.N]`: which rows of a target belong to which table or figure of its paper.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use hubness::Direction;
use hubness::hubs::Nearest;
use itm_core::eval::Protocol;
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::read::{section, table_of, within};
use super::rows::RowMap;

/// A table or figure of the paper, by its number there, or a table of this project, by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exhibit {
    /// `--table N`
    Table(u32),
    /// `--table NAME`: a table that no paper has.
    Named(String),
    /// `--figure N`
    Figure(u32),
}

impl Exhibit {
    /// The table that a command line or a section names: a number means a table of the paper.
    pub fn table(name: &str) -> Self {
        let number = name.parse::<u32>().ok().filter(|&n| n > 0);
        number.map_or_else(|| Self::Named(name.to_owned()), Self::Table)
    }

    /// Its number or its name.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Table(n) | Self::Figure(n) => n.to_string(),
            Self::Named(name) => name.clone(),
        }
    }

    /// The place of a key in the section of the file, for an error.
    pub(crate) fn key(&self, key: &str) -> String {
        format!("{}, {key}", self.to_string().replace(' ', "."))
    }
}

impl fmt::Display for Exhibit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if matches!(self, Self::Figure(_)) { "figure" } else { "table" };
        write!(f, "{kind} {}", self.name())
    }
}

/// "`row` is above every row in `against`": what the first line of `report.md` answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The row that should be better than the others.
    pub row: String,
    /// The rows that it should be better than. A report adds the closed-form baseline if there are none.
    pub against: Vec<String>,
}

/// A table of a paper.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaperTable {
    /// The paper's file of tables, `papers/<tables>.csv`.
    pub tables: String,
    /// The number of the table.
    pub table: u32,
}

/// A section `[table.N]` or `[figure.N]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// Rows of the file, in the order they are shown.
    pub rows: Vec<String>,
    /// Number of models whose score matrices are averaged; above 1, each row is shown as single models and as an ensemble.
    #[serde(default = "one")]
    pub ensemble: u64,
    /// Rows of a table whose score matrices are averaged, seed by seed; the average is one more row.
    #[serde(default)]
    pub together: Vec<String>,
    /// How the test split is evaluated; by default as the target says.
    pub protocol: Option<Protocol>,
    /// The paper's name of a row, where it differs.
    #[serde(default)]
    pub printed: BTreeMap<String, String>,
    /// Corrections for hubs, as of `--rescore`: every row is also measured under each of them.
    #[serde(default)]
    pub rescore: Vec<String>,
    /// The table that prints the corrections, if it is not this table of the target's paper.
    pub(crate) corrections: Option<PaperTable>,
    /// Another name of this table on the command line, beside `TARGET --table N`.
    pub alias: Option<String>,
    /// The claim that the report's first line checks; by default, that the first row is better than every other.
    pub claim: Option<Claim>,
    /// For a figure: the key whose values are on its x axis, such as `train.batch`.
    pub x: Option<String>,
    /// For a figure, instead of `x`: the direction whose hubs are drawn, as log N_k of an item against the log of the share of items.
    pub hubs: Option<Direction>,
    /// For a figure with `hubs`: the k of N_k.
    pub k: Option<usize>,
    /// For a figure, instead of `x`: the scores of captions and of the sentences that the rows make.
    #[serde(default)]
    pub sentences: bool,
}

fn one() -> u64 {
    1
}

impl View {
    /// All rows, for a file that has no section for its table.
    pub(crate) fn of_all(rows: Vec<String>) -> Self {
        Self { rows, ensemble: 1, ..Self::default() }
    }

    /// For a figure of hubs: the direction and k of its N_k.
    pub fn distribution(&self) -> Option<(Direction, usize)> {
        self.hubs.zip(self.k)
    }

    /// The name of the row that averages the rows of `together`.
    pub(crate) fn joined(&self) -> String {
        self.together.join(" + ")
    }

    /// The paper's name of a row.
    pub fn printed<'a>(&'a self, row: &'a str) -> &'a str {
        self.printed.get(row).map_or(row, String::as_str)
    }

    /// The claim; by default, the first row against all others.
    pub fn claim(&self) -> Claim {
        let spelled = || {
            let (row, against) = self.rows.split_first()?;
            Some(Claim { row: row.clone(), against: against.to_vec() })
        };
        self.claim.clone().or_else(spelled).unwrap_or_default()
    }
}

/// Takes the views out of a file.
pub(super) fn take(
    root: &mut Table,
    path: &Path,
    rows: &RowMap,
) -> Result<BTreeMap<Exhibit, View>> {
    let mut views = BTreeMap::new();
    for kind in ["table", "figure"] {
        let Some(sections) = root.remove(kind) else { continue };
        let place = |name: &str| format!("{}, {kind}{name}", path.display());
        let Value::Table(sections) = sections else {
            return Err(Error::invalid(place(""), format!("sections [{kind}.N]"), "a value"));
        };
        for (name, value) in sections {
            let at = place(&format!(".{name}"));
            let shown = shown(kind, &name, &at)?;
            let table = table_of(value, at.clone())?;
            let view: View = section(path, &format!("{kind}.{name}"), table)?;
            check(&view, &at, &shown, rows)?;
            views.insert(shown, view);
        }
    }
    Ok(views)
}

/// The table or figure of a section, from its kind and name.
fn shown(kind: &str, name: &str, at: &str) -> Result<Exhibit> {
    let wrong = |expected: &str| Err(Error::invalid(at, expected, format!("`{name}`")));
    let known = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(known);
    match (kind, Exhibit::table(name)) {
        ("table", Exhibit::Named(_)) if !plain => {
            wrong("a number of the paper, or a name of letters, digits and hyphens")
        }
        ("table", table) => Ok(table),
        (_, Exhibit::Table(number)) => Ok(Exhibit::Figure(number)),
        _ => wrong("a number of the paper"),
    }
}

fn check(view: &View, at: &str, shown: &Exhibit, rows: &RowMap) -> Result<()> {
    within(format!("{at}, ensemble"), view.ensemble, 1..=100)?;
    let joined = (!view.together.is_empty()).then(|| view.joined());
    let known = |key: &str, names: Vec<&String>| {
        let is_known = |name: &String| {
            rows.contains_key(name) || key != "rows" && joined.as_ref() == Some(name)
        };
        let Some(other) = names.into_iter().find(|name| !is_known(name)) else { return Ok(()) };
        let all: Vec<_> = rows.keys().map(String::as_str).collect();
        let expected = format!("rows of this file: {}", all.join(", "));
        Err(Error::invalid(format!("{at}, {key}"), expected, format!("`{other}`")))
    };
    known("rows", view.rows.iter().collect())?;
    known("printed", view.printed.keys().collect())?;
    if let Some(claim) = &view.claim {
        known("claim", std::iter::once(&claim.row).chain(&claim.against).collect())?;
        let others = !claim.against.contains(&claim.row);
        let got = format_args!("`{}` against itself", claim.row);
        Error::unless(others, format_args!("{at}, claim"), "a row against others", got)?;
    }
    each_once(&view.rows, &format!("{at}, rows"))?;
    Error::unless(!view.rows.is_empty(), format_args!("{at}, rows"), "at least one row", "none")?;
    together(view, at, shown)?;
    drawn(view, at, shown)
}

fn each_once(rows: &[String], place: &str) -> Result<()> {
    let again = rows.iter().enumerate().find(|&(i, row)| rows[..i].contains(row));
    again.map_or(Ok(()), |(_, row)| {
        Err(Error::invalid(place, "each row once", format_args!("`{row}` twice")))
    })
}

/// Checks `together`: at least two different rows, in a table without ensembles.
fn together(view: &View, at: &str, shown: &Exhibit) -> Result<()> {
    let wrong =
        |expected: &str, got: &str| Err(Error::invalid(format!("{at}, together"), expected, got));
    let all = &view.together;
    if let Some(other) = all.iter().find(|row| !view.rows.contains(row)) {
        let expected = format!("rows of this table: {}", view.rows.join(", "));
        return wrong(&expected, &format!("`{other}`"));
    }
    each_once(all, &format!("{at}, together"))?;
    match (all.len(), shown) {
        (0, _) => Ok(()),
        (1, _) => wrong("at least two rows", "one"),
        (_, Exhibit::Figure(_)) => wrong("none in a figure", "rows"),
        _ if view.ensemble > 1 => wrong("none beside ensemble", "rows"),
        _ => Ok(()),
    }
}

/// Checks the axis keys: a figure has either `x`, or `hubs` and `k`, or `sentences`; a table has none of them.
fn drawn(view: &View, at: &str, shown: &Exhibit) -> Result<()> {
    let (hubs, k) = (view.hubs.is_some(), view.k.is_some());
    let axes = [("x", view.x.is_some()), ("hubs", hubs), ("sentences", view.sentences)];
    let none = |key: &str, given: bool, expected: &str| {
        Error::unless(!given, format_args!("{at}, {key}"), expected, "a key")
    };
    if !matches!(shown, Exhibit::Figure(_)) {
        let mut keys = axes.into_iter().chain([("k", k)]);
        return keys.try_for_each(|(key, given)| none(key, given, "none: a table has no axis"));
    }
    none("rescore", !view.rescore.is_empty(), "none in a figure")?;
    none("alias", view.alias.is_some(), "none in a figure")?;
    let mut given = axes.iter().filter(|(_, given)| *given);
    let axis = given.next().map(|(key, _)| key);
    if let (Some(axis), Some((key, _))) = (axis, given.next()) {
        none(key, true, &format!("none beside {axis}"))?;
    }
    if let (true, Some(k)) = (hubs, view.k) {
        within(format!("{at}, k"), k as u64, 1..=Nearest::KEPT as u64)?;
    }
    none("k", k && !hubs, "none without hubs")?;
    Error::unless(k || !hubs, format_args!("{at}, k"), "the k of N_k", "none")?;
    let expected = "the key of the x axis, or hubs and k instead, or sentences";
    Error::unless(axis.is_some(), format_args!("{at}, x"), expected, "none")
}

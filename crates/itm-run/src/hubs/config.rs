//! The file of a target that trains nothing: whose models it measures, which inferences, with which settings.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use hubness::cli::methods::Method;
use itm_core::data::sha256_hex;
use itm_core::{Error, Result};
use serde::Deserialize;
use toml::{Table, Value};

use crate::config::{MOST_SEEDS, section, take_table, within};
use crate::paper::inference;

/// A target's file, read and checked.
#[derive(Debug, Clone)]
pub struct HubsConfig {
    /// The target's name: the file's, without its ending.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The text, as it goes into the run directory.
    pub text: String,
    /// SHA-256 of the text.
    pub sha256: String,
    /// Whose models are measured.
    pub target: HubsTarget,
    /// How.
    pub settings: HubSettings,
}

/// `[target]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubsTarget {
    /// `hubness`.
    pub method: HubsMethod,
    /// Title and venue of the paper.
    pub paper: String,
    /// The table of the paper whose rows the inferences are.
    pub table: u32,
    /// The target whose trained models are measured, on its data.
    pub source: String,
    /// Rows of that target.
    pub rows: Vec<String>,
    /// The paper's line that trained the model of a row, `SUM = "2.1"`; of others it is line 1.3.
    #[serde(default)]
    pub printed: BTreeMap<String, String>,
    /// Number of seeds, from 0, unless the command line says otherwise.
    pub seeds: u64,
}

impl HubsTarget {
    /// The paper's line that trained the model of a row.
    pub fn printed(&self, row: &str) -> &str {
        self.printed.get(row).map_or("1.3", String::as_str)
    }
}

/// The one method of such targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HubsMethod {
    /// Corrections for hubs at inference.
    Hubness,
}

/// `[hubness]`: what `hubness report` is asked for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubSettings {
    /// Inferences, as `hubness report --method` names them.
    pub methods: Vec<String>,
    /// Neighbours of CSLS.
    pub csls_k: Setting,
    /// Inverse temperature of IS.
    pub is_beta: Setting,
    /// Relaxation of RGM.
    pub rgm_lambda: Setting,
    /// What an item's fair share is in a matching.
    pub rgm_capacity: Capacity,
    /// When a matching stops.
    pub rgm_stop: Stop,
    /// Whether each recall has a matching of its own.
    pub rgm_runs: Runs,
    /// Draws of intervals and tests.
    pub resamples: usize,
    /// Their seed.
    pub seed: u64,
}

/// A number, or `"auto"`: chosen on the validation split.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Setting {
    /// As given.
    Number(f64),
    /// Chosen on the validation split.
    Auto,
}

impl TryFrom<Value> for Setting {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::Integer(n) => Ok(Self::Number(n as f64)),
            Value::Float(n) if n.is_finite() => Ok(Self::Number(n)),
            Value::String(word) if word == "auto" => Ok(Self::Auto),
            other => Err(format!("expected a number or \"auto\", got {other}")),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// What an item's fair share is in a matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capacity {
    /// max(1, queries / items).
    Balanced,
    /// One.
    Literal,
}

/// When a matching stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// When nothing more fits.
    Exhaustive,
    /// After min(queries, items) · k edges.
    Literal,
}

/// Matchings of the three recalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runs {
    /// One each, with k = 1, 5, 10.
    PerK,
    /// One with k = 10 for all.
    Single,
}

impl HubsConfig {
    pub(crate) fn parse(name: &str, path: PathBuf, text: String, mut root: Table) -> Result<Self> {
        let target = section(&path, "target", take_table(&mut root, &path, "target")?)?;
        let settings = section(&path, "hubness", take_table(&mut root, &path, "hubness")?)?;
        if let Some(key) = root.keys().next() {
            let expected = "[target] and [hubness] alone";
            return Err(Error::invalid(path.display(), expected, format!("`{key}`")));
        }
        let sha256 = sha256_hex(text.as_bytes());
        let config = Self { name: name.into(), path, text, sha256, target, settings };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        let place = |key: &str| format!("{}, {key}", self.path.display());
        within(place("target.seeds"), self.target.seeds, 1..=MOST_SEEDS)?;
        distinct(place("target.rows"), &self.target.rows)?;
        for (row, line) in &self.target.printed {
            if !self.target.rows.contains(row) {
                let expected = "names of target.rows";
                return Err(Error::invalid(place("target.printed"), expected, format!("`{row}`")));
            }
            if inference(line, "nns").is_none() {
                let expected = "lines whose models the paper's Table 3 takes: 1.3, 2.1, 2.12";
                return Err(Error::invalid(place("target.printed"), expected, format!("`{line}`")));
            }
        }
        let HubSettings { methods, resamples, .. } = &self.settings;
        within(place("hubness.resamples"), *resamples as u64, 1..=10_000_000)?;
        distinct(place("hubness.methods"), methods)?;
        for method in methods {
            let known = method.parse::<Method>();
            known.map_err(|_| {
                let expected = "names of `hubness report --method`";
                Error::invalid(place("hubness.methods"), expected, format!("`{method}`"))
            })?;
        }
        Ok(())
    }
}

fn distinct(place: String, names: &[String]) -> Result<()> {
    if names.is_empty() {
        return Err(Error::invalid(place, "at least one name", "none"));
    }
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        Some((_, twice)) => {
            Err(Error::invalid(place, "each name once", format!("`{twice}` twice")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::config::AnyConfig;

    pub(crate) const TEXT: &str = r#"
[target]
method = "hubness"
paper = "P"
table = 3
source = "toy-scenes"
rows = ["Full", "w/o MMM"]
seeds = 3
[hubness]
methods = ["nns", "rgm", "csls+rgm"]
csls_k = 10
is_beta = 30.0
rgm_lambda = "auto"
rgm_capacity = "balanced"
rgm_stop = "exhaustive"
rgm_runs = "per_k"
resamples = 1000
seed = 0
"#;

    pub(crate) fn parse(text: &str) -> Result<HubsConfig> {
        match AnyConfig::parse("toy-hubs", "configs/toy-hubs.toml".into(), text.into())? {
            AnyConfig::Hubs(config) => Ok(*config),
            AnyConfig::Trained(config) => panic!("a target that trains: {config:?}"),
        }
    }

    #[test]
    fn a_target_that_trains_nothing_is_told_by_its_method() {
        let config = parse(TEXT).unwrap();
        assert_eq!((config.name.as_str(), config.target.rows.len()), ("toy-hubs", 2));
        assert_eq!(config.target.printed("Full"), "1.3");
        let printed = TEXT.replace("seeds = 3", "seeds = 3\nprinted = { Full = \"2.12\" }");
        let target = parse(&printed).unwrap().target;
        assert_eq!((target.printed("Full"), target.printed("w/o MMM")), ("2.12", "1.3"));
        let HubSettings { csls_k, is_beta, rgm_lambda, .. } = config.settings;
        assert_eq!(
            [csls_k, is_beta, rgm_lambda],
            [Setting::Number(10.0), Setting::Number(30.0), Setting::Auto]
        );
        assert_eq!([csls_k, is_beta, rgm_lambda].map(|s| s.to_string()), ["10", "30", "auto"]);
    }

    #[test]
    fn unknown_missing_and_impossible_keys_are_one_line_that_names_them() {
        let set = |from: &str, to: &str| {
            assert!(TEXT.contains(from), "{from}");
            TEXT.replace(from, to)
        };
        for (text, parts) in [
            (set("seeds = 3", "seeds = 0"), ["target.seeds", "1 to 1000", "got 0"]),
            (set("seeds = 3\n", ""), ["target", "missing field", "`seeds`"]),
            (set("source =", "sauce ="), ["target", "unknown field", "sauce"]),
            (set("csls_k = 10", "csls = 10"), ["hubness", "unknown field", "csls"]),
            (set("is_beta = 30.0", "is_beta = \"hot\""), ["hubness", "is_beta", "\"hot\""]),
            (set("is_beta = 30.0", "is_beta = inf"), ["hubness", "is_beta", "inf"]),
            (set("\"per_k\"", "\"both\""), ["hubness", "rgm_runs", "both"]),
            (set("\"rgm\",", "\"rgn\","), ["hubness.methods", "report --method", "`rgn`"]),
            (set("\"rgm\",", "\"nns\","), ["hubness.methods", "once", "`nns` twice"]),
            (set("[\"Full\", \"w/o MMM\"]", "[]"), ["target.rows", "at least one", "none"]),
            (set("resamples = 1000", "resamples = 0"), ["resamples", "1 to", "got 0"]),
            (
                set("seeds = 3", "seeds = 3\nprinted = { Fool = \"2.1\" }"),
                ["target.printed", "target.rows", "`Fool`"],
            ),
            (
                set("seeds = 3", "seeds = 3\nprinted = { Full = \"2.2\" }"),
                ["target.printed", "1.3, 2.1, 2.12", "`2.2`"],
            ),
            (format!("{TEXT}[row.Full]\n"), ["toy-hubs.toml", "[hubness] alone", "`row`"]),
            (set("[hubness]", "[hubs]"), ["toy-hubs.toml", "[hubness]", "none"]),
        ] {
            let line = parse(&text).unwrap_err().to_string();
            assert_eq!(line.lines().count(), 1, "{line}");
            for part in ["toy-hubs.toml"].iter().chain(&parts) {
                assert!(line.contains(part), "{line:?} names no {part:?}");
            }
        }
    }
}

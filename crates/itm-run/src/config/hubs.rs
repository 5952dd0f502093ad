//! The file of a target that trains nothing: whose models it measures, with which inferences and settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hubness::study::{Settings, Study};
use itm_core::data::sha256_hex;
use itm_core::{Error, Result};
use serde::Deserialize;
use toml::Table;

use super::read::{check_method, section, take_table, within};
use super::{MOST_SEEDS, Origin};

/// The one method of such targets, and the section of its settings.
const METHOD: &str = "hubness";

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
    /// How they are measured.
    pub study: Study,
}

/// `[target]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubsTarget {
    /// `hubness`.
    pub method: String,
    /// Title and venue of the paper.
    pub paper: String,
    /// The file of the paper's tables, `papers/<tables>.toml`, if it does not have the method's name.
    pub tables: Option<String>,
    /// The table of the paper whose rows are the inferences.
    pub table: u32,
    /// The target whose trained models are measured, on its data.
    pub source: String,
    /// Rows of that target.
    pub rows: Vec<String>,
    /// The paper's model that a row is compared with, `SUM = "2.1"`; by default the first model of the paper's table.
    #[serde(default)]
    pub printed: BTreeMap<String, String>,
    /// Number of seeds, from 0, unless the command line says otherwise.
    pub seeds: u64,
}

impl HubsConfig {
    /// Where the target comes from.
    pub(crate) fn origin(&self) -> Origin<'_> {
        let HubsTarget { method, tables, .. } = &self.target;
        Origin { path: &self.path, tables: tables.as_deref(), method }
    }

    pub(crate) fn parse(name: &str, path: PathBuf, text: String, mut root: Table) -> Result<Self> {
        let target: HubsTarget = section(&path, "target", take_table(&mut root, &path, "target")?)?;
        check_method(&path, &target.method, &[METHOD])?;
        let study = study(&path, take_table(&mut root, &path, METHOD)?)?;
        if let Some(key) = root.keys().next() {
            let expected = "only [target] and [hubness]";
            return Err(Error::invalid(path.display(), expected, format!("`{key}`")));
        }
        let sha256 = sha256_hex(text.as_bytes());
        let config = Self { name: name.into(), path, text, sha256, target, study };
        config.check()?;
        Ok(config)
    }

    /// A place in the file, for an error.
    pub fn place(&self, key: &str) -> String {
        format!("{}, {key}", self.path.display())
    }

    fn check(&self) -> Result<()> {
        let place = |key: &str| self.place(key);
        within(place("target.seeds"), self.target.seeds, 1..=MOST_SEEDS)?;
        distinct(place("target.rows"), &self.target.rows)?;
        for row in self.target.printed.keys() {
            if !self.target.rows.contains(row) {
                let expected = "names of target.rows";
                return Err(Error::invalid(place("target.printed"), expected, format!("`{row}`")));
            }
        }
        Ok(())
    }
}

/// `[hubness]`: inferences with their names from `hubness report --method`, the number of resamples and the seed of intervals and
/// tests, and settings of the corrections.
fn study(path: &Path, mut table: Table) -> Result<Study> {
    #[derive(Deserialize)]
    struct Asked {
        methods: Vec<String>,
        resamples: usize,
        seed: u64,
    }
    let own = ["methods", "resamples", "seed"];
    let asked = own.iter().filter_map(|&key| Some((key.to_owned(), table.remove(key)?))).collect();
    let Asked { methods, resamples, seed } = section(path, METHOD, asked)?;
    let place = |key: &str| format!("{}, hubness.{key}", path.display());
    within(place("resamples"), resamples as u64, 1..=10_000_000)?;
    distinct(place("methods"), &methods)?;
    let method = |name: &String| {
        name.parse().map_err(|_| {
            let expected = "names of `hubness report --method`";
            Error::invalid(place("methods"), expected, format!("`{name}`"))
        })
    };
    let methods = methods.iter().map(method).collect::<Result<_>>()?;
    let settings: Settings = section(path, METHOD, table)?;
    settings.check().map_err(|error| match error {
        Error::Invalid { place: key, expected, got } => Error::invalid(place(&key), expected, got),
        other => other,
    })?;
    Ok(Study { methods, settings, seed, resamples, curves: true })
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
pub(crate) mod tests {
    use hubness::study::Choice;

    use super::super::AnyConfig;
    use super::*;

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
    fn a_target_that_trains_nothing_is_told_by_its_source() {
        let config = parse(TEXT).unwrap();
        assert_eq!((config.name.as_str(), config.target.rows.len()), ("toy-hubs", 2));
        assert_eq!((&config.target.tables, config.target.printed.len()), (&None, 0));
        let printed = "seeds = 3\ntables = \"hubs\"\nprinted = { Full = \"2.12\" }";
        let target = parse(&TEXT.replace("seeds = 3", printed)).unwrap().target;
        assert_eq!((&target.tables.unwrap()[..], &target.printed["Full"][..]), ("hubs", "2.12"));
        let settings = config.study.settings;
        let of = |choices: &[Choice]| choices.iter().map(Choice::to_string).collect::<String>();
        let all = [&settings.csls_k, &settings.is_beta, &settings.rgm_lambda];
        assert_eq!(all.map(|choices| of(choices)), ["10", "30", "auto"]);
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
                set("method = \"hubness\"", "method = \"fne\""),
                ["target.method", "one of hubness", "`fne`"],
            ),
            (format!("{TEXT}[row.Full]\n"), ["toy-hubs.toml", "and [hubness]", "`row`"]),
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

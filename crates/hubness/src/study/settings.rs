//! The numbers of the corrections: defaults, notation and valid ranges.

use std::fmt::{self, Display};
use std::str::FromStr;

use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::directed::positive;
use crate::nnn::LARGEST_ALPHA;
use crate::{CapacityScale, Sinkhorn, Stop};

/// Settings of the corrections. The defaults are the papers' values. On a command line they are options, in a file keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "cli", derive(clap::Args), command(next_help_heading = "Corrections"))]
pub struct Settings {
    /// CSLS: number of neighbours of an item, or auto; several values, separated by commas, make several rows
    #[serde(deserialize_with = "one_or_more")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    #[cfg_attr(feature = "cli", arg(long, allow_negative_numbers = true, value_name = "K"))]
    #[cfg_attr(feature = "cli", arg(value_delimiter = ',', default_values_t = defaults().csls_k))]
    pub csls_k: Vec<Choice>,
    /// IS: inverse temperature, or auto; several values, separated by commas, make several rows
    #[serde(deserialize_with = "one_or_more")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    #[cfg_attr(feature = "cli", arg(long, allow_negative_numbers = true, value_name = "BETA"))]
    #[cfg_attr(feature = "cli", arg(value_delimiter = ',', default_values_t = defaults().is_beta))]
    pub is_beta: Vec<Choice>,
    /// RGM: an item may serve at most this many times its fair share of queries (inf: no bound), or auto; several values,
    /// separated by commas, make several rows
    #[serde(deserialize_with = "one_or_more")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    #[cfg_attr(feature = "cli", arg(long, allow_negative_numbers = true, value_name = "LAMBDA"))]
    #[cfg_attr(feature = "cli", arg(value_delimiter = ',', default_values_t = defaults().rgm_lambda))]
    pub rgm_lambda: Vec<Choice>,
    /// NNN: how much of an item's mean is subtracted
    #[cfg_attr(feature = "cli", arg(long, allow_negative_numbers = true, value_name = "ALPHA"))]
    #[cfg_attr(feature = "cli", arg(default_value_t = defaults().nnn_alpha))]
    pub nnn_alpha: f64,
    /// NNN: number of queries in the mean of an item
    #[cfg_attr(feature = "cli", arg(long, allow_negative_numbers = true, value_name = "K"))]
    #[cfg_attr(feature = "cli", arg(default_value_t = defaults().nnn_k))]
    pub nnn_k: usize,
    /// QB-Norm: inverse temperature
    #[cfg_attr(feature = "cli", arg(long, allow_negative_numbers = true, value_name = "BETA"))]
    #[cfg_attr(feature = "cli", arg(default_value_t = defaults().qbnorm_beta))]
    pub qbnorm_beta: f64,
    /// QB-Norm: number of items that a bank query makes active
    #[cfg_attr(feature = "cli", arg(long, allow_negative_numbers = true, value_name = "K"))]
    #[cfg_attr(feature = "cli", arg(default_value_t = defaults().qbnorm_k))]
    pub qbnorm_k: usize,
    /// Dual-IS and Dual-DIS: inverse temperatures of the query bank and of the item bank
    #[cfg_attr(feature = "cli", arg(long, allow_negative_numbers = true, num_args = 2))]
    #[cfg_attr(feature = "cli", arg(value_names = ["QUERY", "ITEM"], default_values_t = defaults().dual_beta))]
    pub dual_beta: Vec<f64>,
    /// Sinkhorn: regularisation, in the units of the scores
    #[cfg_attr(feature = "cli", arg(long, allow_negative_numbers = true, value_name = "EPS"))]
    #[cfg_attr(feature = "cli", arg(default_value_t = defaults().sinkhorn_eps))]
    pub sinkhorn_eps: f64,
    /// Sinkhorn: largest number of iterations
    #[cfg_attr(feature = "cli", arg(long, allow_negative_numbers = true, value_name = "N"))]
    #[cfg_attr(feature = "cli", arg(default_value_t = defaults().sinkhorn_iterations))]
    pub sinkhorn_iterations: usize,
    /// Local scaling and NICDM: number of neighbours
    #[cfg_attr(feature = "cli", arg(long, allow_negative_numbers = true, value_name = "K"))]
    #[cfg_attr(feature = "cli", arg(default_value_t = defaults().local_k))]
    pub local_k: usize,
    /// The fair share of queries of an item in a matching: queries / items, but at least one (balanced), or always one (literal,
    /// as listed in the paper)
    #[cfg_attr(feature = "cli", arg(long, value_enum, default_value_t = defaults().rgm_capacity))]
    pub rgm_capacity: CapacityScale,
    /// When a matching stops: when nothing more fits (exhaustive), or after min(queries, items) · k edges (literal)
    #[cfg_attr(feature = "cli", arg(long, value_enum, default_value_t = defaults().rgm_stop))]
    pub rgm_stop: Stop,
    /// One matching with k = 10 for all recalls, instead of one matching each for k = 1, 5, 10
    #[cfg_attr(feature = "cli", arg(long = "rgm-single-run", action = clap::ArgAction::SetTrue))]
    #[cfg_attr(feature = "cli", arg(value_parser = Runs::parser()))]
    pub rgm_runs: Runs,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            csls_k: vec![Choice::Number(10.0)],
            is_beta: vec![Choice::Number(30.0)],
            rgm_lambda: vec![Choice::Auto],
            nnn_alpha: 0.75,
            nnn_k: 128,
            qbnorm_beta: 20.0,
            qbnorm_k: 1,
            dual_beta: vec![20.0, 10.0],
            sinkhorn_eps: 0.03,
            sinkhorn_iterations: 20,
            local_k: 10,
            rgm_capacity: CapacityScale::default(),
            rgm_stop: Stop::default(),
            rgm_runs: Runs::default(),
        }
    }
}

#[cfg(feature = "cli")]
fn defaults() -> Settings {
    Settings::default()
}

impl Settings {
    /// Checks that every correction can use its numbers.
    ///
    /// # Errors
    /// If a number is out of range. The error names the field of the first such number.
    pub fn check(&self) -> Result<()> {
        for (name, choices) in
            [("csls_k", &self.csls_k), ("is_beta", &self.is_beta), ("rgm_lambda", &self.rgm_lambda)]
        {
            Error::unless(!choices.is_empty(), name, "a number or auto", 0)?;
        }
        let whole = |k: f64| (1.0..=1e9).contains(&k) && k.fract() == 0.0;
        let expected = "a whole number of neighbours, 1 to 1000000000";
        numbers(&self.csls_k).try_for_each(|k| Error::unless(whole(k), "csls_k", expected, k))?;
        numbers(&self.is_beta).try_for_each(|beta| positive("is_beta", beta))?;
        let expected = "a number above 0, or inf";
        let lambda = |x| Error::unless(x > 0.0, "rgm_lambda", expected, x);
        numbers(&self.rgm_lambda).try_for_each(lambda)?;
        let fits = (0.0..=LARGEST_ALPHA).contains(&self.nnn_alpha);
        let expected = format_args!("a number from 0 to {LARGEST_ALPHA}");
        Error::unless(fits, "nnn_alpha", expected, self.nnn_alpha)?;
        neighbours("nnn_k", self.nnn_k)?;
        positive("qbnorm_beta", self.qbnorm_beta)?;
        neighbours("qbnorm_k", self.qbnorm_k)?;
        let n = self.dual_beta.len();
        Error::unless(n == 2, "dual_beta", "two numbers", n)?;
        let expected = "a number from 0, below 1e200";
        let from = |&x| Error::unless((0.0..1e200).contains(&x), "dual_beta", expected, x);
        self.dual_beta.iter().try_for_each(from)?;
        let sum = self.dual_beta.iter().sum::<f64>();
        let fits = sum.is_finite() && sum > 0.0;
        Error::unless(fits, "dual_beta", "numbers with a sum above 0", sum)?;
        positive("sinkhorn_eps", self.sinkhorn_eps)?;
        let fits = 1.0 / self.sinkhorn_eps < 1e200;
        let got = format_args!("{:e}", self.sinkhorn_eps);
        Error::unless(fits, "sinkhorn_eps", "a number above 1e-200", got)?;
        let n = self.sinkhorn_iterations;
        let fits = (1..=Sinkhorn::MOST_ITERATIONS).contains(&n);
        Error::unless(fits, "sinkhorn_iterations", "1 to 1000000", n)?;
        neighbours("local_k", self.local_k)
    }
}

fn numbers(choices: &[Choice]) -> impl Iterator<Item = f64> {
    choices.iter().filter_map(|choice| match choice {
        Choice::Number(number) => Some(*number),
        Choice::Auto => None,
    })
}

fn neighbours(name: &str, n: usize) -> Result<()> {
    Error::unless((1..=1_000_000_000).contains(&n), name, "1 to 1000000000 neighbours", n)
}

/// The matchings behind the three recalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Runs {
    /// One matching each for k = 1, 5, 10.
    #[default]
    PerK,
    /// One matching with k = 10 for all three.
    Single,
}

#[cfg(feature = "cli")]
impl Runs {
    /// Parses the flag for a single run.
    fn parser() -> impl clap::builder::TypedValueParser<Value = Self> {
        use clap::builder::{BoolValueParser, TypedValueParser};
        BoolValueParser::new().map(|single| if single { Self::Single } else { Self::PerK })
    }
}

/// A number, or `auto`: chosen by cross-fitting or on validation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// Chosen on other images than the images it is used for.
    Auto,
    /// As given.
    #[serde(untagged)]
    Number(#[serde(serialize_with = "number_or_inf")] f64),
}

/// JSON has no infinity: it becomes `"inf"`.
fn number_or_inf<S: serde::Serializer>(number: &f64, file: S) -> Result<S::Ok, S::Error> {
    if number.is_finite() { file.serialize_f64(*number) } else { file.collect_str(number) }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        match text.parse::<f64>() {
            Ok(number) if !number.is_nan() => Ok(Self::Number(number)),
            _ => Err(format!("expected a number or `auto`, got `{text}`")),
        }
    }
}

impl Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// How a file writes choices: a number or `"auto"`, or a list of these.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number or \"auto\", or a list of these")]
enum ChoiceText {
    Number(f64),
    Word(String),
    List(Vec<ChoiceText>),
}

impl ChoiceText {
    fn choices(self) -> Result<Vec<Choice>, String> {
        match self {
            Self::Number(number) if !number.is_nan() => Ok(vec![Choice::Number(number)]),
            Self::Number(number) => Err(format!("expected a number or \"auto\", got {number}")),
            Self::Word(word) => Ok(vec![word.parse()?]),
            Self::List(all) => {
                let all: Result<Vec<_>, _> = all.into_iter().map(Self::choices).collect();
                Ok(all?.concat())
            }
        }
    }
}

fn one_or_more<'de, D: serde::Deserializer<'de>>(file: D) -> Result<Vec<Choice>, D::Error> {
    ChoiceText::deserialize(file)?.choices().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_number_or_auto() {
        assert_eq!("auto".parse(), Ok(Choice::Auto));
        assert_eq!("2.5".parse(), Ok(Choice::Number(2.5)));
        assert_eq!("inf".parse(), Ok(Choice::Number(f64::INFINITY)));
        assert_eq!("NaN".parse::<Choice>(), Err("expected a number or `auto`, got `NaN`".into()));
    }

    fn read(json: &str) -> Result<Settings, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_names_what_is_not_as_in_the_papers() {
        let settings = read(
            r#"{"csls_k": 5, "is_beta": ["auto", 7.5], "rgm_stop": "literal", "rgm_runs": "single"}"#,
        );
        let want = Settings {
            csls_k: vec![Choice::Number(5.0)],
            is_beta: vec![Choice::Auto, Choice::Number(7.5)],
            rgm_stop: Stop::Literal,
            rgm_runs: Runs::Single,
            ..Settings::default()
        };
        assert_eq!(settings, Ok(want.clone()));
        assert_eq!(read(&serde_json::to_string(&want).unwrap()), Ok(want)); // what is written reads back
        assert_eq!(read("{}"), Ok(Settings::default()));
        let unbound =
            Settings { rgm_lambda: vec![Choice::Number(f64::INFINITY)], ..Settings::default() };
        assert_eq!(read(r#"{"rgm_lambda": "inf"}"#), Ok(unbound.clone()));
        assert_eq!(read(&serde_json::to_string(&unbound).unwrap()), Ok(unbound));
        for (json, part) in [
            (r#"{"csls": 5}"#, "unknown field `csls`"),
            (r#"{"csls_k": "hot"}"#, "expected a number or `auto`, got `hot`"),
            (r#"{"csls_k": [1, "hot"]}"#, "got `hot`"),
            (r#"{"csls_k": true}"#, "expected a number or \"auto\", or a list of these"),
            (r#"{"rgm_runs": "both"}"#, "unknown variant `both`"),
        ] {
            let line = read(json).unwrap_err();
            assert!(line.contains(part), "{json}: {line}");
        }
    }

    /// The tests of the command line check the other error lines.
    #[test]
    fn what_only_a_program_can_get_wrong_is_refused_too() {
        let line = |settings: Settings| settings.check().unwrap_err().to_string();
        let none = Settings { csls_k: vec![], ..Settings::default() };
        assert_eq!(line(none), "csls_k: expected a number or auto, got 0");
        let three = Settings { dual_beta: vec![1.0; 3], ..Settings::default() };
        assert_eq!(line(three), "dual_beta: expected two numbers, got 3");
        assert!(Settings::default().check().is_ok());
    }
}

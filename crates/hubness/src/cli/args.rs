//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::input::InputArgs;
use super::methods::{Choice, Method};
use crate::Direction;

/// Hubs of cross-modal retrieval: measures them, names them, corrects scores for them.
#[derive(Debug, Parser)]
#[command(name = "hubness", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  hubness report --images image.npy --texts text.npy --pairs text_to_image.npy --html report.html
  hubness report --scores sims.npy --method auto --json | jq .rows
  hubness rescore --images image.npy --texts text.npy --method csls --direction t2i --out t2i.run
  hubness export --images image.npy --texts text.npy --method is --is-beta 60 --direction t2i --out index/

Exit codes: 0 done, 2 something about the input or the options is wrong (one line says what).";

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Recalls before and after each correction, with intervals and tests; the hubs by name
    Report(Box<Report>),
    /// Corrected scores or ranked lists, written to a file
    Rescore(Rescore),
    /// Item vectors with one more dimension: corrected search on FAISS, usearch, Qdrant, Milvus, pgvector
    Export(Export),
}

/// `hubness report`
#[derive(Debug, Args)]
pub struct Report {
    /// What is read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Rows of the table, by comma: nns, csls, is, nnn, sinkhorn, qbnorm, dual-is, dual-dis, mp, mp-empirical, ls, nicdm, each
    /// alone or with +gm or +rgm; gm; rgm; auto (the best of nns, csls, is by cross-fitting). Without it all that fit
    /// the input
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Corrections")]
    pub method: Vec<String>,
    /// Settings of the corrections.
    #[command(flatten)]
    pub settings: Settings,
    /// A second set, to choose `auto` settings on instead of cross-fitting: image embeddings
    #[arg(
        long,
        value_name = "FILE",
        requires = "val_texts",
        group = "validation",
        help_heading = "Choosing"
    )]
    pub val_images: Option<super::input::Location>,
    /// Text embeddings of that set
    #[arg(long, value_name = "FILE", requires = "val_images", help_heading = "Choosing")]
    pub val_texts: Option<super::input::Location>,
    /// Its score matrix instead, where --scores is the test's
    #[arg(
        long,
        value_name = "FILE",
        requires = "scores",
        group = "validation",
        help_heading = "Choosing"
    )]
    pub val_scores: Option<super::input::Location>,
    /// Pairs of that set
    #[arg(long, value_name = "FILE", requires = "validation", help_heading = "Choosing")]
    pub val_pairs: Option<super::input::Location>,
    /// What is true beyond the pairs, to tell deserved hubs from others: a JSON list that holds for each image the list of the texts
    /// that are true of it, by number
    #[arg(long, value_name = "FILE.json", help_heading = "Output")]
    pub truth: Option<PathBuf>,
    /// Seed of folds, intervals and tests
    #[arg(long, default_value_t = 0, help_heading = "Choosing")]
    pub seed: u64,
    /// Draws of the bootstrap and of the randomisation test; 0 for neither
    #[arg(long, default_value_t = 10_000, value_name = "N", help_heading = "Output")]
    pub resamples: usize,
    /// Writes the page with all plots
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Prints the whole report as JSON instead of tables
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// `hubness rescore`
#[derive(Debug, Args)]
pub struct Rescore {
    /// What is read.
    #[command(flatten)]
    pub input: InputArgs,
    /// One correction, alone or with +gm or +rgm
    #[arg(long, default_value = "csls", help_heading = "Corrections")]
    pub method: String,
    /// Settings of the corrections.
    #[command(flatten)]
    pub settings: Settings,
    /// Which side asks
    #[arg(long, value_enum, help_heading = "Output")]
    pub direction: Way,
    /// Items of each list of a run
    #[arg(long, default_value_t = 100, value_name = "K", help_heading = "Output")]
    pub top: usize,
    /// FILE.npy (all corrected scores, images × texts, f32), FILE.safetensors (the same), or any other name for a TREC run; `-` is a
    /// run on standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: PathBuf,
}

/// `hubness export`
#[derive(Debug, Args)]
pub struct Export {
    /// What is read.
    #[command(flatten)]
    pub input: InputArgs,
    /// csls, is, nnn or sinkhorn
    #[arg(long, default_value = "csls", help_heading = "Corrections")]
    pub method: String,
    /// Settings of the corrections.
    #[command(flatten)]
    pub settings: Settings,
    /// Which side asks; the other one is exported
    #[arg(long, value_enum, help_heading = "Output")]
    pub direction: Way,
    /// A folder for items.npy, queries.npy, expected.npy (the ten best of each query, to check the engine) and export.json
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub out: PathBuf,
}

/// Settings of the corrections. Numbers that nobody gives are the papers' and are said to be defaults.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Corrections")]
pub struct Settings {
    /// CSLS: neighbours of an item, or auto; several by comma make several rows
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "K",
        value_delimiter = ',',
        default_value = "10"
    )]
    pub csls_k: Vec<Choice>,
    /// IS: inverse temperature, or auto; several by comma make several rows
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "BETA",
        value_delimiter = ',',
        default_value = "30"
    )]
    pub is_beta: Vec<Choice>,
    /// RGM: times its fair share of queries that an item may serve (inf: no bound), or auto; several by comma make several rows
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "LAMBDA",
        value_delimiter = ',',
        default_value = "auto"
    )]
    pub rgm_lambda: Vec<Choice>,
    /// NNN: how much of an item's mean is subtracted
    #[arg(long, allow_negative_numbers = true, value_name = "ALPHA", default_value_t = 0.75)]
    pub nnn_alpha: f64,
    /// NNN: queries that an item's mean is over
    #[arg(long, allow_negative_numbers = true, value_name = "K", default_value_t = 128)]
    pub nnn_k: usize,
    /// QB-Norm: inverse temperature
    #[arg(long, allow_negative_numbers = true, value_name = "BETA", default_value_t = 20.0)]
    pub qbnorm_beta: f64,
    /// QB-Norm: items that a bank query makes active
    #[arg(long, allow_negative_numbers = true, value_name = "K", default_value_t = 1)]
    pub qbnorm_k: usize,
    /// Dual-IS and Dual-DIS: inverse temperatures of the query bank and of the item bank
    #[arg(long, allow_negative_numbers = true, value_names = ["QUERY", "ITEM"], num_args = 2, default_values_t = [20.0, 10.0])]
    pub dual_beta: Vec<f64>,
    /// Sinkhorn: regularisation, in the units of the scores
    #[arg(long, allow_negative_numbers = true, value_name = "EPS", default_value_t = 0.03)]
    pub sinkhorn_eps: f64,
    /// Sinkhorn: iterations at most
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 20)]
    pub sinkhorn_iterations: usize,
    /// Local scaling and NICDM: neighbours
    #[arg(long, allow_negative_numbers = true, value_name = "K", default_value_t = 10)]
    pub local_k: usize,
    /// What an item's fair share of queries is in a matching: queries / items at least (balanced), or one (literal, as listed in the paper)
    #[arg(long, value_enum, default_value_t = Scale::Balanced)]
    pub rgm_capacity: Scale,
    /// When a matching stops: when nothing more fits (exhaustive), or after min(queries, items) · k edges (literal)
    #[arg(long, value_enum, default_value_t = StopRule::Exhaustive)]
    pub rgm_stop: StopRule,
    /// One matching with k = 10 for all recalls, instead of one each with k = 1, 5, 10
    #[arg(long)]
    pub rgm_single_run: bool,
}

impl Default for Settings {
    fn default() -> Self {
        #[derive(Parser)]
        struct Alone {
            #[command(flatten)]
            settings: Settings,
        }
        Alone::parse_from(["hubness"]).settings
    }
}

/// A direction on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// Images ask for texts
    I2t,
    /// Texts ask for images
    T2i,
}

impl From<Way> for Direction {
    fn from(way: Way) -> Self {
        match way {
            Way::I2t => Self::I2t,
            Way::T2i => Self::T2i,
        }
    }
}

/// [`CapacityScale`](crate::CapacityScale) on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// max(1, queries / items)
    Balanced,
    /// One
    Literal,
}

/// [`Stop`](crate::Stop) on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StopRule {
    /// Until nothing more fits
    Exhaustive,
    /// After min(queries, items) · k edges
    Literal,
}

impl Report {
    /// The methods asked for; empty if none was named.
    ///
    /// # Errors
    /// If a name is not offered.
    pub fn methods(&self) -> itm_core::Result<Vec<Method>> {
        self.method.iter().map(|name| name.trim().parse()).collect()
    }
}

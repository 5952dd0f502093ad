//! The command line.

mod parts;
mod scan;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use itm_core::significance::MOST_REPLICATES;

use super::input::{InputArgs, Location};
use crate::Direction;
use crate::study::{Settings, Study};

pub(crate) use parts::{FinishArgs, Keep, MergeArgs, PartFitArgs, PartialArgs};
pub(crate) use scan::ScanArgs;

/// Hubs of cross-modal retrieval: measures them, names them, corrects scores for them.
#[derive(Debug, Parser)]
#[command(name = "hubness", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Task,
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
pub(crate) enum Task {
    /// Recalls before and after each correction, with intervals and tests; the hubs by name
    Report(Box<ReportArgs>),
    /// Corrected scores or ranked lists, written to a file
    Rescore(RescoreArgs),
    /// Item vectors with one more dimension, for corrected search on FAISS, usearch, Qdrant, Milvus, pgvector
    Export(ExportArgs),
    /// Items that answer suspiciously many queries: planted hubs; or whether new items may enter
    Scan(ScanArgs),
    /// A part of a pass, for data that several processes or machines share: a rectangle of the scores
    Partial(PartialArgs),
    /// Joins parts into one, in any order; refuses a part twice
    Merge(MergeArgs),
    /// The result of all parts, as one process would give it: lists as a TREC run, or recalls, median and mean ranks as JSON
    Finish(FinishArgs),
}

impl Task {
    /// The file or folder that the command writes, and what it reads.
    pub(crate) fn files(&self) -> (Option<&Path>, Vec<&Path>) {
        let (out, input, more) = match self {
            Self::Report(args) => {
                let ValidationArgs { val_images, val_texts, val_scores, val_pairs } =
                    &args.validation;
                let mut more = vec![args.truth.as_deref()];
                let of = [val_images, val_texts, val_scores, val_pairs];
                more.extend(of.map(|at| at.as_ref()?.path.as_deref()));
                (args.html.as_deref(), Some(&args.input), more)
            }
            Self::Rescore(args) => (Some(&*args.out), Some(&args.fit.input), vec![]),
            Self::Export(args) => {
                (Some(&*args.out), Some(&args.fit.input), vec![args.biases.as_deref()])
            }
            Self::Scan(_) => (None, None, vec![]),
            Self::Partial(args) => {
                (Some(&*args.out), Some(&args.input), vec![args.pair_scores.as_deref()])
            }
            Self::Merge(args) => {
                (Some(&*args.out), None, args.parts.iter().map(|part| Some(&**part)).collect())
            }
            Self::Finish(args) => {
                let FinishArgs { pair_scores, best, item_bank, item_best, .. } = args;
                let mut more = vec![Some(&*args.part)];
                more.extend([pair_scores, best, item_bank, item_best].map(|at| at.as_deref()));
                (Some(&*args.out), Some(&args.input), more)
            }
        };
        let input = input.into_iter().flat_map(InputArgs::paths);
        (out, input.chain(more.into_iter().flatten()).collect())
    }
}

/// `hubness report`
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The input.
    #[command(flatten)]
    pub input: InputArgs,
    /// Rows of the table, separated by commas: nns, csls, is, nnn, sinkhorn, qbnorm, dual-is, dual-dis, mp, mp-empirical, ls,
    /// nicdm, each alone or with +gm or +rgm; gm; rgm; auto (the best of nns, csls, is by cross-fitting). Default: all rows
    /// that the input allows
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Corrections")]
    pub method: Vec<String>,
    /// Settings of the corrections.
    #[command(flatten)]
    pub settings: Settings,
    /// The validation set.
    #[command(flatten)]
    pub validation: ValidationArgs,
    /// True matches beyond the pairs, which tell deserved hubs from other hubs: a JSON list with one list per image, the numbers
    /// of all texts that are true of the image
    #[arg(long, value_name = "FILE.json", help_heading = "Output")]
    pub truth: Option<PathBuf>,
    /// Seed of folds, intervals and tests
    #[arg(long, default_value_t = Study::default().seed, help_heading = "Choosing")]
    pub seed: u64,
    /// Draws of the bootstrap and of the randomisation test; 0 for neither
    #[arg(long, default_value_t = Study::default().resamples, value_name = "N", help_heading = "Output")]
    pub resamples: usize,
    /// Writes the page with all plots
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Prints the whole report as JSON instead of tables
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// A validation set, on which `auto` settings are chosen instead of by cross-fitting.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Choosing")]
pub(crate) struct ValidationArgs {
    /// Image embeddings of a validation set: `auto` settings are chosen on this set instead of by cross-fitting
    #[arg(long, value_name = "FILE", requires = "val_texts", group = "validation")]
    pub val_images: Option<Location>,
    /// Text embeddings of the validation set
    #[arg(long, value_name = "FILE", requires = "val_images")]
    pub val_texts: Option<Location>,
    /// Score matrix of the validation set, for a test with --scores
    #[arg(long, value_name = "FILE", requires = "scores", group = "validation")]
    pub val_scores: Option<Location>,
    /// Pairs of the validation set
    #[arg(long, value_name = "FILE", requires = "validation")]
    pub val_pairs: Option<Location>,
}

/// One correction of one direction.
#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// The input.
    #[command(flatten)]
    pub input: InputArgs,
    /// One correction: csls, is, nnn or sinkhorn; for `rescore` any of a report, alone or with +gm or +rgm
    #[arg(long, default_value = "csls", help_heading = "Corrections")]
    pub method: String,
    /// Settings of the corrections.
    #[command(flatten)]
    pub settings: Settings,
    /// Which side holds the queries; `export` writes the other side
    #[arg(long, value_enum, help_heading = "Output")]
    pub direction: Direction,
}

/// `hubness rescore`
#[derive(Debug, Args)]
pub(crate) struct RescoreArgs {
    /// The correction.
    #[command(flatten)]
    pub fit: FitArgs,
    /// Number of items per list of a run
    #[arg(long, default_value_t = 100, value_name = "K", help_heading = "Output")]
    pub top: usize,
    /// FILE.npy (all corrected scores, images × texts, f32), FILE.safetensors (the same scores), or any other name for a TREC
    /// run, in which spaces of names are `_`; `-` writes a run to standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: PathBuf,
}

/// `hubness export`
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The correction.
    #[command(flatten)]
    pub fit: FitArgs,
    /// What `finish --method` wrote, in place of a correction to fit: the items are read a few at a time, so their file may be larger
    /// than memory
    #[arg(
        long,
        value_name = "FILE.safetensors",
        conflicts_with_all = ["method", "Settings", "bank_images", "bank_texts"],
        help_heading = "Corrections"
    )]
    pub biases: Option<PathBuf>,
    /// The number from which biases are measured. For shards of one index: the `centre` in the first one's export.json; by default
    /// the mean bias of these items
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, help_heading = "Output")]
    pub centre: Option<f64>,
    /// A new folder for items.npy, queries.npy, expected.npy (the ten best of each query, to check the engine) and export.json,
    /// which holds the hashes of the other three
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub out: PathBuf,
    /// Replaces an older export in the folder
    #[arg(long, help_heading = "Output")]
    pub force: bool,
}

impl ReportArgs {
    /// The study that these options describe.
    ///
    /// # Errors
    /// If a method is unknown, or there are too many resamples.
    pub(crate) fn study(&self) -> itm_core::Result<Study> {
        let (n, expected) = (self.resamples, format_args!("0 to {MOST_REPLICATES}"));
        itm_core::Error::unless(n <= MOST_REPLICATES, "--resamples", expected, n)?;
        let methods = self.method.iter().map(|name| name.trim().parse());
        Ok(Study {
            methods: methods.collect::<Result<_, _>>()?,
            settings: self.settings.clone(),
            seed: self.seed,
            resamples: self.resamples,
            curves: self.html.is_some() || self.json,
        })
    }
}

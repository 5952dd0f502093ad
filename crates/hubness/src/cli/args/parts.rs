//! The options of `partial`, `merge` and `finish`.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Arg, Args, ValueEnum};

use super::super::input::InputArgs;
use crate::Direction;
use crate::study::Settings;

/// `hubness partial`
#[derive(Debug, Args)]
#[command(mut_args(hide_refused))]
pub(crate) struct PartialArgs {
    /// The input: embeddings, and pairs for `pair-scores` and `ranks`.
    #[command(flatten)]
    pub input: InputArgs,
    /// What the part keeps of its scores
    #[arg(
        long,
        value_enum,
        required_unless_present = "method",
        conflicts_with_all = ["method", "Settings"],
        help_heading = "Part"
    )]
    pub keep: Option<Keep>,
    /// The correction.
    #[command(flatten)]
    pub fit: PartFitArgs,
    /// Rows of the images, FIRST..END, counted from 0 and without END; by default all
    #[arg(long, value_parser = span, value_name = "FIRST..END", help_heading = "Part")]
    pub rows: Option<Range<usize>>,
    /// Rows of the texts, likewise
    #[arg(long, value_parser = span, value_name = "FIRST..END", help_heading = "Part")]
    pub cols: Option<Range<usize>>,
    /// Number of items per list of top-texts and top-images
    #[arg(long, default_value_t = 10, value_name = "K", help_heading = "Part")]
    pub top: usize,
    /// For `ranks`: all parts of pair-scores, merged into one
    #[arg(long, value_name = "FILE.part", help_heading = "Part")]
    pub pair_scores: Option<PathBuf>,
    /// The part
    #[arg(long, value_name = "FILE.part", help_heading = "Output")]
    pub out: PathBuf,
}

/// Hides the options of the input that parts refuse.
fn hide_refused(option: Arg) -> Arg {
    let refused = ["scores", "run_i2t", "run_t2i", "bank_images", "bank_texts"];
    let is_refused = refused.contains(&option.get_id().as_str());
    option.hide(is_refused)
}

/// A correction of items, which parts over a bank of queries give.
#[derive(Debug, Args)]
pub(crate) struct PartFitArgs {
    /// Instead of --keep: what a correction needs of each item over the queries: csls, nnn, is, qbnorm, dual-is, dual-dis, ls, nicdm, mp. Parts of is,
    /// qbnorm, dual-is, dual-dis and mp begin and end at multiples of 4096
    #[arg(long, requires = "direction", help_heading = "Corrections")]
    pub method: Option<String>,
    /// Which side holds the queries
    #[arg(long, value_enum, requires = "method", help_heading = "Corrections")]
    pub direction: Option<Direction>,
    /// Settings of the corrections.
    #[command(flatten)]
    pub settings: Settings,
}

/// What a part keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keep {
    /// The best texts of every image
    TopTexts,
    /// The best images of every text
    TopImages,
    /// The scores of the true pairs, which `ranks` needs
    PairScores,
    /// Counts for the ranks of both directions
    Ranks,
}

/// A range of rows.
fn span(text: &str) -> Result<Range<usize>, String> {
    let ends = text.split_once("..").map(|(first, end)| (first.parse(), end.parse()));
    match ends {
        Some((Ok(first), Ok(end))) if first < end => Ok(first..end),
        _ => Err(format!("expected FIRST..END, FIRST below END, got `{text}`")),
    }
}

/// `hubness merge`
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Parts, in any order
    #[arg(required = true, value_name = "FILE.part")]
    pub parts: Vec<PathBuf>,
    /// The union of the parts
    #[arg(long, value_name = "FILE.part", help_heading = "Output")]
    pub out: PathBuf,
}

/// `hubness finish`
#[derive(Debug, Args)]
#[command(mut_args(hide_refused))]
pub(crate) struct FinishArgs {
    /// The union of all parts
    #[arg(value_name = "FILE.part")]
    pub part: PathBuf,
    /// For `ranks`: the input of the parts.
    #[command(flatten)]
    pub input: InputArgs,
    /// For `ranks`: the scores that the parts were made with; prints recalls, median and mean ranks as JSON
    #[arg(long, value_name = "FILE.part", conflicts_with = "method", help_heading = "Part")]
    pub pair_scores: Option<PathBuf>,
    /// For lists: how often each item is in them, as JSON, in place of the lists: measures of N_k for k = 1, 5, 10, and the items with the
    /// largest counts
    #[arg(long, conflicts_with_all = ["method", "pair_scores"], help_heading = "Part")]
    pub hubs: bool,
    /// The correction: writes what it takes from each item.
    #[command(flatten)]
    pub fit: PartFitArgs,
    /// For `qbnorm` and `dual-dis`: all parts of the best items of each query of the bank (--keep top-texts or top-images, --top as --qbnorm-k;
    /// 1 for `dual-dis`), merged into one
    #[arg(long, value_name = "FILE.part", requires = "method", help_heading = "Part")]
    pub best: Option<PathBuf>,
    /// For `dual-is` and `dual-dis`: all parts over the bank of items, which take the place of the queries: --method is, --is-beta as the second of
    /// --dual-beta, merged into one
    #[arg(long, value_name = "FILE.part", requires = "method", help_heading = "Part")]
    pub item_bank: Option<PathBuf>,
    /// For `dual-dis`: all parts of the best item of each item of that bank, as in --best, merged into one
    #[arg(long, value_name = "FILE.part", requires = "method", help_heading = "Part")]
    pub item_best: Option<PathBuf>,
    /// For lists: a TREC run, with row numbers as names; `-` is standard output. For a correction: FILE.safetensors, one value for each
    /// item: `bias` (csls, nnn, is, dual-is), `log_sum` and `active` (qbnorm; dual-dis also
    /// `item_log_sum` and `item_active`), `width` (ls, nicdm), `mean` and `deviation` (mp)
    #[arg(long, value_name = "FILE", default_value = "-", help_heading = "Output")]
    pub out: PathBuf,
}

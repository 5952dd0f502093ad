//! The command line of `itm negatives`, and which models can fill in words.

use std::any::Any;
use std::path::{Path, PathBuf};

use clap::Args;
use itm_core::learn::Method;
use tags_dc::cli::negatives::{self, Refills};
use tags_dc::train::TagsDc;

/// `itm negatives …`
#[derive(Debug, Args)]
pub struct Negatives {
    #[command(flatten)]
    pub(crate) negatives: negatives::Negatives,
    /// A finished run whose model makes the negatives, instead of edits: it masks words of each caption, fills in other words, and
    /// keeps the sentences that match the image best. The captions must be of images that the run knows.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kinds", "rules", "train"])]
    pub(crate) run: Option<PathBuf>,
    /// Row of the run; the file's first by default.
    #[arg(long, requires = "run")]
    pub(crate) row: Option<String>,
    /// Seed of the row.
    #[arg(long, default_value_t = 0, requires = "run", value_name = "SEED")]
    pub(crate) row_seed: u64,
    #[command(flatten)]
    pub(crate) refills: Refills,
    /// Folder of the run's data set.
    #[arg(long, requires = "run", value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// As in `reproduce`.
    #[arg(long, default_value = "cpu", requires = "run")]
    pub(crate) backend: String,
}

impl Negatives {
    /// The command line that repeats the command with a run.
    pub(crate) fn command(&self, run: &Path) -> String {
        let Self { row, row_seed, refills, data, backend, .. } = self;
        let Refills { maskings, refills, temperature, images } = refills;
        let mut line = format!(
            " --run {} --row-seed {row_seed} --maskings {maskings} --refills {refills} --temperature {temperature} --backend {backend}",
            run.display()
        );
        for (name, value) in [
            ("row", row.clone()),
            ("images", images.map(|n| n.to_string())),
            ("data", data.as_ref().map(|data| data.display().to_string())),
        ] {
            line += &value.map_or(String::new(), |value| format!(" --{name} '{value}'"));
        }
        self.negatives.command_with("cargo xtask", &line)
    }
}

/// The model, if it fills in words.
pub(crate) fn filler(method: &dyn Method) -> Option<&TagsDc> {
    let method: &dyn Any = method;
    method.downcast_ref()
}

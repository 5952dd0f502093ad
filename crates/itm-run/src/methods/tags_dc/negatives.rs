//! `itm negatives`: with a run, its model fills in the words; without one, rules change the captions.

use std::any::Any;
use std::io::stdout;
use std::path::{Path, PathBuf};

use clap::Args;
use itm_core::{Error, Result};
use tags_dc::cli::negatives::{self, ModelSplit, Refills, TrainedModel};
use tags_dc::train::TagsDc;

use crate::run::{Finished, Run};
use crate::run_dir::new_path;
use crate::split::Split;

/// `itm negatives …`
#[derive(Debug, Args)]
pub struct Negatives {
    #[command(flatten)]
    negatives: negatives::Negatives,
    /// A finished run whose model makes the negatives, instead of edits: it masks words of each caption, fills in other words, and
    /// keeps the sentences that match the image best. The captions must be of images that the run knows.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kinds", "rules", "train"])]
    run: Option<PathBuf>,
    /// Row of the run; the file's first by default.
    #[arg(long, requires = "run")]
    row: Option<String>,
    /// Seed of the row.
    #[arg(long, default_value_t = 0, requires = "run", value_name = "SEED")]
    row_seed: u64,
    #[command(flatten)]
    refills: Refills,
    /// Folder of the run's data set.
    #[arg(long, requires = "run", value_name = "DIR")]
    data: Option<PathBuf>,
    /// As in `reproduce`.
    #[arg(long, default_value = "cpu", requires = "run")]
    backend: String,
}

impl Negatives {
    /// Writes the negatives and returns their folder.
    ///
    /// # Errors
    /// If a file or the run cannot be read, or has no captions; if the row's model cannot fill in words, or does not read captions as
    /// words or word pieces; if the folder is not empty.
    pub(crate) fn run(&self, configs: &Path) -> Result<PathBuf> {
        let folder = self.negatives.out.clone().unwrap_or_else(|| new_path("negatives"));
        match &self.run {
            Some(run) => self.by_model(run, &folder, configs)?,
            None => {
                let command = self.negatives.command("cargo xtask");
                self.negatives.by_rules(&folder, &command, &mut stdout())?;
            }
        }
        Ok(folder)
    }

    fn by_model(&self, run: &Path, folder: &Path, configs: &Path) -> Result<()> {
        let Self { row, row_seed, data, backend, .. } = self;
        let command = self.negatives.command_with("cargo xtask", &self.options(run));
        let asked = Finished { run, row: row.as_deref(), data: data.as_deref(), backend };
        let run = Run::open(asked, configs, |_| Ok(()))?;
        let row = run.row(row.as_deref());
        let model = run.trained(&row, *row_seed)?;
        let method: &dyn Any = &*model.method;
        let Some(method) = method.downcast_ref::<TagsDc>() else {
            let expected = "a run whose model fills in words";
            return Err(Error::invalid("--run", expected, model.name()));
        };
        let reading = run.bench.reading(&row)?;
        let Some(words) = reading.spelled_by_number() else {
            let expected = "a row that reads captions as words or word pieces";
            return Err(Error::invalid("--row", expected, format!("`{row}`")));
        };
        let split = |split| {
            let images = &run.bench.source.part(split).0.images;
            ModelSplit { images, items: model.inputs.items(split) }
        };
        let trained = TrainedModel {
            name: model.name(),
            checkpoint_sha256: run.hash_of_chosen(&row, *row_seed)?,
            method,
            splits: [Split::Test, Split::Val, Split::Train].map(split).into(),
            words: &words,
            world: run.bench.config.target.scenes.map(|world| (world.seed, world.sizes())),
            read: &|text| reading.read(text),
            spell: &|text| reading.words(text),
        };
        let by = (&self.refills, &trained);
        self.negatives.by_model(folder, &command, by, &mut stdout())
    }

    /// The options of a command with a run.
    fn options(&self, run: &Path) -> String {
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
        line
    }
}

#[cfg(test)]
mod tests;

//! `itm negatives`: with a run, its model fills in the words; without one, rules change the captions.

use std::path::{Path, PathBuf};

use itm_core::{Error, Result};

use crate::cli;
use crate::methods::{self, Trained, TrainedPart};
use crate::run::{Finished, Run};
use crate::split::Split;

/// Writes the negatives and returns their folder.
///
/// # Errors
/// If a file or the run cannot be read, or has no captions; if the row's model cannot fill in words, or does not read captions as
/// words or word pieces; if the folder is not empty.
pub(crate) fn negatives(args: &cli::Negatives, configs: &Path) -> Result<PathBuf> {
    let Some(folder) = &args.run else { return methods::negatives(args, None) };
    let cli::RefillArgs { row, data, backend, row_seed, .. } = &args.model;
    let asked = Finished { run: folder, row: row.as_deref(), data: data.as_deref(), backend };
    let run = Run::open(asked, configs, |_| Ok(()))?;
    let row = run.row(row.as_deref());
    let model = run.trained(&row, *row_seed)?;
    let reading = run.bench.reading(&row)?;
    let Some(words) = reading.spelled_by_number() else {
        let expected = "a row that reads captions as words or word pieces";
        return Err(Error::invalid("--row", expected, format!("`{row}`")));
    };
    let part = |split| {
        let images = &run.bench.source.part(split).0.images;
        TrainedPart { images, items: model.inputs.items(split) }
    };
    let trained = Trained {
        name: model.name(),
        checkpoint_sha256: run.hash_of_chosen(&row, *row_seed)?,
        method: &*model.method,
        parts: [Split::Test, Split::Val, Split::Train].map(part),
        words: &words,
        world: run.bench.config.target.scenes.map(|world| (world.seed, world.sizes())),
        read: &|text| reading.read(text),
        spell: &|text| reading.words(text),
    };
    methods::negatives(args, Some(&trained))
}

#[cfg(test)]
mod tests;

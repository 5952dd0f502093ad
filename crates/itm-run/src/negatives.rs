//! `itm negatives`: with a run, its model fills in the words; without one, rules change the captions.

use std::io::stdout;
use std::path::{Path, PathBuf};

use itm_core::data::Split;
use itm_core::{Error, Result};

use crate::cli::own_configs;
use crate::methods::{Negatives, TrainedModel, filler};
use crate::run::Run;
use crate::run_dir::new_path;

/// Writes the negatives and returns their folder.
///
/// # Errors
/// If a file or the run cannot be read, or has no captions; if the row's model cannot fill in words, or does not read captions as
/// words or word pieces; if the folder is not empty.
pub(crate) fn negatives(args: &Negatives, configs: &Path) -> Result<PathBuf> {
    let Negatives { negatives, run: folder, row, row_seed, data, backend, .. } = args;
    let out = negatives.out.clone().unwrap_or_else(|| new_path("negatives"));
    let Some(folder) = folder else {
        negatives.by_rules(&out, "cargo xtask negatives", &mut stdout())?;
        return Ok(out);
    };
    let (run, row) = Run::open(folder, (data.as_deref(), backend), configs, |config| {
        config.named_row(row.as_deref())
    })?;
    let model = run.trained(&row, *row_seed)?;
    let Some(method) = filler(&*model.method) else {
        let expected = "a run whose model fills in words";
        return Err(Error::invalid("--run", expected, model.name()));
    };
    let reading = run.reading(&row);
    let Some(words) = reading.spelled_by_number() else {
        let expected = "a row that reads captions as words or word pieces";
        return Err(Error::invalid("--row", expected, format!("`{row}`")));
    };
    let split = |split| (&run.source.part(split).0.images[..], model.inputs.items(split));
    let trained = TrainedModel {
        name: model.name(),
        checkpoint_sha256: run.hash_of_chosen(&row, *row_seed)?,
        method,
        splits: [Split::Test, Split::Val, Split::Train].map(split).into(),
        words: &words,
        world: run.config.target.scenes.map(|world| (world.seed, world.sizes())),
        read: &|text| reading.read(text),
        spell: &|text| reading.words(text),
    };
    let configs = own_configs(configs).map_or(String::new(), |own| format!(" --configs {own}"));
    let program = format!("cargo xtask negatives{configs}");
    args.by_model(&out, &program, &trained, &mut stdout())?;
    Ok(out)
}

#[cfg(test)]
mod tests;

//! `word-patches.html`: where in a picture the words of a caption are, by the rows of a run beside each other.

use std::fs;
use std::path::{Path, PathBuf};

use itm_core::scored::Scored;
use itm_core::{Error, Result};

use crate::disk::write_atomically;
use crate::queries::Queries;
use crate::report::{self, PairMaps};
use crate::run::{Model, Run};
use crate::split::Split;
use crate::word_maps::{self, ROWS, beside, numbers, shown};
use crate::{cli, progress};

/// Writes the page into a folder; `None`, and a line that says so, if the row has no patches. Beside the row that was asked
/// stand the others of the run with the same seed; one that was not trained to its end is left out, with a line.
///
/// # Errors
/// If the checkpoint of the row cannot be read, no caption has one of the words that were asked for, or the page cannot be
/// written.
pub(super) fn write(
    run: &Run,
    (model, args): (&Model, &cli::Explain),
    (split, queries): (Split, &Queries),
    scored: &dyn Scored,
    folder: &Path,
) -> Result<Option<PathBuf>> {
    let (source, row) = (&run.bench.source, &model.row[..]);
    let captions = match args.captions {
        Some(_) => queries.captions.clone(),
        None => word_maps::spread(source, split, args.queries),
    };
    let pairs = word_maps::pairs(source, split, &captions, Some(scored))?;
    let mut all: Vec<PairMaps> = vec![];
    let others = run.bench.config.rows().filter(|&other| other != row);
    for (k, name) in std::iter::once(row).chain(others).enumerate() {
        if k > 0 && !run.dir.folder(name, args.seed).is_dir() {
            continue;
        }
        let asked = numbers(&pairs);
        let maps = match k {
            0 => model.word_maps(split, &asked),
            _ => run.trained(name, args.seed).and_then(|other| other.word_maps(split, &asked)),
        };
        let maps = match maps {
            Err(error) if k > 0 => {
                progress::say(format!("{name} is left out of the maps: {error}"));
                continue;
            }
            maps => maps?,
        };
        let Some(maps) = maps else {
            if k > 0 {
                continue;
            }
            progress::say(format!(
                "No word-patches.html: the encoders of `{row}` have no patches."
            ));
            return Ok(None);
        };
        let asked = (split, pairs.as_slice());
        beside(&mut all, shown((name, args.seed), source, asked, maps, args.words.as_deref()));
        if all.first().is_some_and(|pair| pair.rows.len() == ROWS) {
            break;
        }
    }
    all.retain(|pair| !pair.words.is_empty());
    if let (true, Some(words)) = (all.is_empty(), &args.words) {
        let expected = "words of the captions that are shown";
        return Err(Error::invalid("--words", expected, format!("`{}`", words.join(","))));
    }
    let title = format!("Words and patches, seed {}", args.seed);
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let path = folder.join("word-patches.html");
    write_atomically(&path, report::maps_page(&title, &all).as_bytes())?;
    Ok(Some(path))
}

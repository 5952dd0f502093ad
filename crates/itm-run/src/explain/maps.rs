//! `word-patches.html` or `word-regions.html`: where the rows of a run find the words of a caption in a picture, and
//! what the words do to a score. The rows are beside each other.

use std::fs;
use std::path::{Path, PathBuf};

use itm_core::encoders::Places;
use itm_core::{Error, Result};

use crate::disk::write_atomically;
use crate::explanations::word_maps::{Pair, ROWS, beside, numbers, shown};
use crate::model::Model;
use crate::report::{self, PairMaps};
use crate::run::Run;
use crate::split::Split;
use crate::{cli, progress};

/// Writes the page into a folder; `None` if the row has neither patches nor regions. The page also shows
/// the other rows of the run with the same seed. A row whose training is not finished is left out; a line says so.
///
/// # Errors
/// If the checkpoint of the row cannot be read, if no caption has one of the named words, or if the page cannot
/// be written.
pub(super) fn write(
    run: &Run,
    (model, args): (&Model, &cli::Explain),
    (split, pairs): (Split, &[Pair]),
    folder: &Path,
) -> Result<Option<PathBuf>> {
    let (source, row) = (&run.source, &model.row[..]);
    let mut all: Vec<PairMaps> = vec![];
    let others = run.config.rows().filter(|&other| other != row);
    for (k, name) in std::iter::once(row).chain(others).enumerate() {
        if k > 0 && !run.dir().folder(name, args.seed).is_dir() {
            continue;
        }
        let asked = numbers(pairs);
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
            return Ok(None);
        };
        let words = args.words.as_deref();
        beside(&mut all, shown((name, args.seed), source, (split, pairs), maps, words));
        if all.first().is_some_and(|pair| pair.rows.len() == ROWS) {
            break;
        }
    }
    all.retain(|pair| !pair.words.is_empty());
    if let (true, Some(words)) = (all.is_empty(), &args.words) {
        let expected = "words of the captions that are shown";
        return Err(Error::invalid("--words", expected, format!("`{}`", words.join(","))));
    }
    let places = match all.first().map(|pair| &pair.places) {
        Some(Places::Boxes(_)) => "regions",
        _ => "patches",
    };
    let title = format!("Words and {places}, seed {}", args.seed);
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let path = folder.join(format!("word-{places}.html"));
    write_atomically(&path, report::maps_page(&title, &all).as_bytes())?;
    Ok(Some(path))
}

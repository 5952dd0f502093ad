//! `words-judged.html`: how well the words of captions match images by a model's word heads, and the model's negatives.

use std::fs;
use std::path::{Path, PathBuf};

use itm_core::{Error, Result};

use crate::bench::Model;
use crate::disk::write_atomically;
use crate::explanations::word_maps::Pair;
use crate::methods::{self, Caption};
use crate::report::{self, JudgedCaption, JudgedPair, PairKind};
use crate::run::Run;
use crate::split::Split;

/// Writes the page into a folder; `None` if the row's method judges no words and makes no negatives.
///
/// # Errors
/// If an item cannot be read or the page cannot be written.
pub(super) fn write(
    run: &Run,
    model: &Model,
    (split, pairs): (Split, &[Pair]),
    folder: &Path,
) -> Result<Option<PathBuf>> {
    let (source, reading) = (&run.bench.source, model.reading()?);
    let (part, words) = (source.part(split).0, reading.spelled_by_number());
    let mut all = vec![];
    for pair in pairs {
        let of = Caption {
            items: model.inputs.items(split),
            text: pair.text,
            caption: &part.captions[pair.text],
            words: words.as_deref(),
            spell: &|text| reading.words(text),
        };
        let Some(caption) = methods::judged(&*model.method, of, pair.image)? else {
            return Ok(None);
        };
        let negatives = match pair.kind {
            PairKind::Annotated => methods::sentences(&*model.method, of)?.unwrap_or_default(),
            PairKind::FalseNegative | PairKind::MostSimilar | PairKind::Asked => vec![],
        };
        let negatives = negatives.into_iter().map(|made| JudgedCaption {
            denied: source.denies(split, pair.image, &made.text),
            ..made.judged
        });
        all.push(JudgedPair {
            picture: source.picture(split, pair.image),
            kind: pair.kind,
            caption: JudgedCaption {
                denied: source.denies(split, pair.image, &part.captions[pair.text]),
                ..caption
            },
            negatives: negatives.collect(),
        });
    }
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let path = folder.join("words-judged.html");
    let title = format!("Words and images, {}", model.name());
    write_atomically(&path, report::judged_page(&title, &all).as_bytes())?;
    Ok(Some(path))
}

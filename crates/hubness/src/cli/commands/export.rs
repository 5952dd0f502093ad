//! `hubness export`: vectors whose plain inner-product search is the corrected search.

use std::io::Write;
use std::path::Path;

use itm_core::data::{FileBytes, FileHash, sha256_hex};
use itm_core::output::{Existing, NewFolder, write_bytes};
use itm_core::scored::Scored;
use itm_core::{Error, Result};
use serde_json::{Value, json};

use super::npy::npy;
use super::rescore::{fitted, one, say};
use crate::cli::args::ExportArgs;
use crate::cli::input::{self, InputScores};
use crate::study::Then;
use crate::{export, pass};

/// Length of the lists that an engine is checked against.
const EXPECTED: usize = 10;

/// The files of vectors, then the description with their hashes.
const FILES: [&str; 4] = ["items.npy", "queries.npy", "expected.npy", "export.json"];

pub(super) fn run(args: ExportArgs, out: &mut impl Write) -> Result<()> {
    let ExportArgs { fit, centre, out: target, force } = args;
    let direction = fit.direction;
    let (base, then) = one(&fit)?;
    if then != Then::Ranking {
        let expected = "csls, is, nnn or sinkhorn: a matching has no vectors";
        return Err(Error::invalid("--method", expected, &fit.method));
    }
    if let Some(centre) = centre.filter(|centre| !centre.is_finite()) {
        return Err(Error::invalid("--centre", "a finite number", centre));
    }
    let existing = match force {
        true => Existing::Only(&FILES),
        false => Existing::Nothing("a new or empty folder, or --force"),
    };
    let folder = NewFolder::begin(&target, existing)?;
    let loaded = input::load(&fit.input)?;
    let InputScores::Embeddings(rows) = &loaded.scores else {
        let expected = "--images and --texts: an export needs embeddings";
        return Err(Error::invalid("export", expected, "scores"));
    };
    let runs = loaded.test_scores().runs()?;
    let (set, correction, params) = fitted(&fit, (base, then), &loaded, &runs)?;
    let (queries, items) =
        (direction.queries(&rows.images, &rows.texts), direction.items(&rows.images, &rows.texts));
    let number = direction.items(rows.images(), rows.texts());
    let centre = centre.map_or_else(|| export::centre(&correction), Ok)?;
    let augmented = export::items_around(direction, items, rows.dim, &correction, centre)?;
    say(&loaded);
    let asked: Vec<f32> = queries.chunks(rows.dim).flat_map(export::query).collect();
    let expected = pass::top(set.scores, &correction, EXPECTED)?;
    let lists = (0..expected.queries()).flat_map(|q| expected.items(q).iter().map(|&i| i as i32));
    let lists: Vec<i32> = lists.collect();

    let width = rows.dim + 1;
    let [vectors, asking, lists_of, about_of] = FILES.map(|name| folder.path().join(name));
    npy(&vectors, width, augmented.into_iter())?;
    npy(&asking, width, asked.into_iter())?;
    npy(&lists_of, expected.k(), lists.into_iter())?;
    let written = [&vectors, &asking, &lists_of].map(|path| hash(path));
    let written = written.into_iter().collect::<Result<Vec<_>>>()?;
    let about = json!({
        "method": fit.method,
        "direction": direction,
        "params": params,
        "setting": correction.setting(),
        "items": number,
        "centre": centre,
        "dim": width,
        "metric": "inner product (not cosine)",
        "query": "the embedding as it was fitted (unit length unless --raw), then 1.0",
        "files": hashes(&loaded.messages.files),
        "written": hashes(&written),
    });
    write_bytes(&about_of, format!("{about:#}\n").as_bytes())?;
    folder.commit()?;
    let (kind, asking) = direction.items(("images", "text"), ("texts", "image"));
    let text = format!(
        "{}: {} {kind} of width {width} in items.npy ({}).\n\
         Index them for the inner product. Append 1.0 to a {asking}'s embedding{} and search:\n\
         the largest inner products are the corrected ranking. queries.npy holds such queries,\n\
         expected.npy holds the {} best items of each query, to check the engine.\n",
        target.display(),
        number,
        correction.setting(),
        if fit.input.raw { "" } else { " of unit length" },
        expected.k(),
    );
    out.write_all(text.as_bytes()).map_err(Error::io("standard output"))
}

fn hash(path: &Path) -> Result<FileHash> {
    let (bytes, name) = (FileBytes::open(path)?, path.file_name().unwrap_or_default());
    let (name, length) = (name.to_string_lossy().into_owned(), bytes.len() as u64);
    Ok(FileHash { name, bytes: length, sha256: sha256_hex(&bytes) })
}

fn hashes(files: &[FileHash]) -> Vec<Value> {
    files.iter().map(|file| json!({ "name": file.name, "sha256": file.sha256 })).collect()
}

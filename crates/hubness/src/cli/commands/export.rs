//! `hubness export`: vectors whose plain inner-product search is the corrected search.

use std::io::Write;
use std::path::PathBuf;

use itm_core::data::FileHash;
use itm_core::output::{Existing, NewFolder, write_bytes};
use itm_core::scored::Scored;
use itm_core::{Error, Result};
use serde_json::{Value, json};

use super::export_about::{About, EXPECTED, hash};
use super::export_biases;
use super::npy::npy;
use super::rescore::{fitted, one, say};
use crate::cli::args::ExportArgs;
use crate::cli::input::{self, InputScores};
use crate::study::Then;
use crate::{export, pass};

/// The files of vectors, then the description with their hashes.
const FILES: [&str; 4] = ["items.npy", "queries.npy", "expected.npy", "export.json"];

pub(super) fn run(args: &ExportArgs, out: &mut impl Write) -> Result<()> {
    if let Some(centre) = args.centre.filter(|centre| !centre.is_finite()) {
        return Err(Error::invalid("--centre", "a finite number", centre));
    }
    let existing = match args.force {
        true => Existing::Only(&FILES),
        false => Existing::Nothing("a new or empty folder, or --force"),
    };
    let begin = || NewFolder::begin(&args.out, existing);
    let (folder, about) = match &args.biases {
        Some(biases) => {
            let folder = begin()?;
            let about = export_biases::write(args, biases, &paths(&folder))?;
            (folder, about)
        }
        None => fit(args, begin)?,
    };
    let [written @ .., about_of] = paths(&folder);
    let written = written.iter().map(|path| hash(path)).collect::<Result<Vec<_>>>()?;
    let text = json!({
        "method": about.method,
        "direction": args.fit.direction,
        "params": about.params,
        "setting": about.setting,
        "items": about.items,
        "centre": about.centre,
        "dim": about.width,
        "metric": "inner product (not cosine)",
        "query": "the embedding as it was fitted (unit length unless --raw), then 1.0",
        "files": hashes(&about.files),
        "written": hashes(&written),
    });
    write_bytes(&about_of, format!("{text:#}\n").as_bytes())?;
    folder.commit()?;
    say_how(args, &about, out)
}

/// Fits the correction, and writes the export of it.
fn fit(args: &ExportArgs, begin: impl FnOnce() -> Result<NewFolder>) -> Result<(NewFolder, About)> {
    let (fit, direction) = (&args.fit, args.fit.direction);
    let (base, then) = one(fit)?;
    if then != Then::Ranking {
        let expected = "csls, is, nnn or sinkhorn: a matching has no vectors";
        return Err(Error::invalid("--method", expected, &fit.method));
    }
    let folder = begin()?;
    let loaded = input::load(&fit.input)?;
    let InputScores::Embeddings(rows) = &loaded.scores else {
        let expected = "--images and --texts: an export needs embeddings";
        return Err(Error::invalid("export", expected, "scores"));
    };
    let runs = loaded.test_scores().runs()?;
    let (set, correction, params) = fitted(fit, (base, then), &loaded, &runs)?;
    let (queries, items) =
        (direction.queries(&rows.images, &rows.texts), direction.items(&rows.images, &rows.texts));
    let number = direction.items(rows.images(), rows.texts());
    let centre = args.centre.map_or_else(|| export::centre(&correction), Ok)?;
    let augmented = export::items_around(direction, items, rows.dim, &correction, centre)?;
    say(&loaded);
    let asked: Vec<f32> = queries.chunks(rows.dim).flat_map(export::query).collect();
    let expected = pass::top(set.scores, &correction, EXPECTED)?;
    let lists = (0..expected.queries()).flat_map(|q| expected.items(q).iter().map(|&i| i as i32));
    let lists: Vec<i32> = lists.collect();

    let width = rows.dim + 1;
    let [vectors, asking, lists_of, _] = paths(&folder);
    npy(&vectors, width, augmented.into_iter())?;
    npy(&asking, width, asked.into_iter())?;
    npy(&lists_of, expected.k(), lists.into_iter())?;
    let about = About {
        method: fit.method.clone(),
        params: json!(params),
        setting: Some(correction.setting()),
        items: number,
        centre,
        width,
        k: expected.k(),
        files: loaded.messages.files.clone(),
    };
    Ok((folder, about))
}

fn paths(folder: &NewFolder) -> [PathBuf; 4] {
    FILES.map(|name| folder.path().join(name))
}

fn say_how(args: &ExportArgs, about: &About, out: &mut impl Write) -> Result<()> {
    let fit = &args.fit;
    let (kind, asking) = fit.direction.items(("images", "text"), ("texts", "image"));
    let of = about.setting.map_or("biases of parts".into(), |setting| setting.to_string());
    let text = format!(
        "{}: {} {kind} of width {} in items.npy ({of}).\n\
         Index them for the inner product. Append 1.0 to a {asking}'s embedding{} and search:\n\
         the largest inner products are the corrected ranking. queries.npy holds such queries,\n\
         expected.npy holds the {} best items of each query, to check the engine.\n",
        args.out.display(),
        about.items,
        about.width,
        if fit.input.raw { "" } else { " of unit length" },
        about.k,
    );
    out.write_all(text.as_bytes()).map_err(Error::io("standard output"))
}

fn hashes(files: &[FileHash]) -> Vec<Value> {
    files.iter().map(|file| json!({ "name": file.name, "sha256": file.sha256 })).collect()
}

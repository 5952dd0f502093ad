//! `hubness export`: vectors whose plain inner-product search is the corrected search.

use std::io::Write;
use std::path::{Path, PathBuf};

use itm_core::arrays::NamedArrays;
use itm_core::data::{Features, FileBytes, npy_header};
use itm_core::files::sha256_of;
use itm_core::output::{Existing, NewFolder, write, write_bytes};
use itm_core::scored::Scored;
use itm_core::tiles::{Part, Reduction, Tiles};
use itm_core::{Error, Result};
use serde::Serialize;
use serde_json::json;

use super::npy;
use super::part_fit::Finished;
use super::rescore::{fitted, one, say};
use crate::cli::args::ExportArgs;
use crate::cli::input::{self, Array, Arrays, InputScores, view};
use crate::report::{File, Params};
use crate::study::Then;
use crate::{Setting, export, pass};

/// The files of vectors, then the description with their hashes.
const FILES: [&str; 4] = ["items.npy", "queries.npy", "expected.npy", "export.json"];

/// Length of the lists that an engine is checked against.
const EXPECTED: usize = 10;

/// Items that are in memory at once: 128 MiB for rows of 512 numbers.
const ITEMS: usize = 1 << 16;

/// What `export.json` says of an export besides hashes of its files.
#[derive(Serialize)]
struct About {
    method: String,
    params: Params,
    setting: Option<Setting>,
    items: usize,
    centre: f64,
    #[serde(rename = "dim")]
    width: usize,
    /// The length of the lists.
    #[serde(skip)]
    k: usize,
    files: Vec<File>,
}

pub(super) fn run(args: &ExportArgs, out: &mut impl Write) -> Result<()> {
    let centre = args.centre.unwrap_or_default();
    Error::unless(centre.is_finite(), "--centre", "a finite number", centre)?;
    let existing = match args.force {
        true => Existing::Only(&FILES),
        false => Existing::Nothing("a new or empty folder, or --force"),
    };
    if args.biases.is_none() {
        let expected = "csls, is, nnn or sinkhorn: a matching has no vectors";
        let (_, then) = one(&args.fit)?;
        Error::unless(then == Then::Ranking, "--method", expected, &args.fit.method)?;
    }
    let folder = NewFolder::begin(&args.out, existing)?;
    let about = match &args.biases {
        Some(biases) => of_parts(args, biases, &folder)?,
        None => fit(args, &folder)?,
    };
    let [written @ .., about_of] = paths(&folder);
    let written: Vec<_> = written.iter().map(|path| hash(path)).collect::<Result<_>>()?;
    let mut text = json!(about);
    text["direction"] = json!(args.fit.direction);
    text["metric"] = "inner product (not cosine)".into();
    text["query"] = "the embedding as it was fitted (unit length unless --raw), then 1.0".into();
    text["written"] = json!(written);
    write_bytes(&about_of, format!("{text:#}\n").as_bytes())?;
    folder.commit()?;
    say_how(args, &about, out)
}

/// Fits the correction, and writes the export of it.
fn fit(args: &ExportArgs, folder: &NewFolder) -> Result<About> {
    let (fit, direction) = (&args.fit, args.fit.direction);
    let loaded = input::load_rows(&fit.input)?;
    let InputScores::Embeddings(rows) = &loaded.scores else {
        let expected = "--images and --texts: an export needs embeddings";
        return Err(Error::invalid("export", expected, "scores"));
    };
    let (set, correction, params) = fitted(fit, one(fit)?, &loaded)?;
    let (queries, items) = direction.sides(&rows.images, &rows.texts);
    let number = direction.items(rows.images(), rows.texts());
    let centre = args.centre.map_or_else(|| export::centre(&correction), Ok)?;
    let augmented = export::items_around(direction, items, rows.dim, &correction, centre)?;
    say(&loaded);
    let asked: Vec<f32> = queries.chunks(rows.dim).flat_map(export::query).collect();
    let expected = pass::top(set.scores(), &correction, EXPECTED)?;
    let lists = (0..expected.queries()).flat_map(|q| expected.items(q).iter().map(|&i| i as i32));
    let lists: Vec<i32> = lists.collect();

    let width = rows.dim + 1;
    let [vectors, asking, lists_of, _] = paths(folder);
    npy(&vectors, "<f4", width, &augmented)?;
    npy(&asking, "<f4", width, &asked)?;
    npy(&lists_of, "<i4", expected.k(), &lists)?;
    Ok(About {
        method: fit.method.clone(),
        params,
        setting: Some(correction.setting()),
        items: number,
        centre,
        width,
        k: expected.k(),
        files: loaded.messages.files.clone(),
    })
}

/// Writes the export of what parts gave. The items are read a few at a time.
fn of_parts(args: &ExportArgs, path: &Path, folder: &NewFolder) -> Result<About> {
    let [vectors, asking, lists_of, _] = &paths(folder);
    let (direction, length) = (args.fit.direction, args.fit.input.length());
    let Arrays { rows: [images, texts], hashes: [of_images, of_texts], .. } =
        input::arrays(&args.fit.input, false)?;
    let whole = (images.rows(), texts.rows());
    let (queries, items) = direction.sides(&images, &texts);
    let of_items = direction.items(of_images, of_texts);
    let biases = biases(args, path, (items, &of_items))?;
    let mean = || biases.iter().sum::<f64>() / biases.len() as f64;
    let (centre, width) = (args.centre.unwrap_or_else(mean), items.dim() + 1);
    let asked = input::some_rows(queries, 0..queries.rows(), length)?;
    let asked = asked.values.chunks(asked.dim).flat_map(export::query).collect();
    let asked = Features { dim: width, values: asked };
    npy(asking, "<f4", width, &asked.values)?;

    let mut best: Option<Part> = None;
    write(vectors, |out| {
        out.write_all(&npy_header("<f4", &[items.rows(), width])).map_err(Error::io(vectors))?;
        for first in (0..items.rows()).step_by(ITEMS) {
            let some = first..items.rows().min(first + ITEMS);
            let rows = input::some_rows(items, some.clone(), length)?;
            let values = export::augmented(&rows.values, rows.dim, &biases[some], centre, first)?;
            drop(rows);
            out.write_all(bytemuck::cast_slice(&values)).map_err(Error::io(vectors))?;
            let found = Features { dim: width, values };
            let (of_items, of_queries) = (view("items", &found)?, view("queries", &asked)?);
            let (images, texts) = direction.sides(of_queries, of_items);
            let (origin, lists) = direction.queries(
                ((0, first), Reduction::TopTexts(EXPECTED)),
                ((first, 0), Reduction::TopImages(EXPECTED)),
            );
            let part = Tiles::new(images, texts)?.part(lists, origin, whole)?;
            best = Some(match best.take() {
                Some(all) => all.join(part)?,
                None => part,
            });
        }
        Ok(())
    })?;
    let best = best.expect("at least one row").top()?;
    let lists = (0..best.queries()).flat_map(|q| best.items(q).iter().map(|&item| item as i32));
    npy(lists_of, "<i4", best.k(), &lists.collect::<Vec<_>>())?;
    Ok(About {
        method: "biases".into(),
        params: Params::new(),
        setting: None,
        items: items.rows(),
        centre,
        width,
        k: best.k(),
        files: vec![hash(path)?],
    })
}

/// The bias of each item, whose rows have this hash.
fn biases(args: &ExportArgs, path: &Path, (rows, hash): (&Array, &str)) -> Result<Vec<f64>> {
    let (items, direction, raw) = (rows.rows(), args.fit.direction, args.fit.input.raw);
    let refused = |expected: &str, got: String| Error::invalid(path.display(), expected, got);
    let file = NamedArrays::new(FileBytes::open(path)?)
        .map_err(|error| refused("a file of `hubness finish --method`", error.to_string()))?;
    if file.shape("bias").is_none() {
        let mut names = file.names();
        names.sort_unstable();
        return Err(refused("a tensor `bias` (csls, nnn, is, dual-is)", names.join(", ")));
    }
    let Some(of) = Finished::of(&file) else {
        let expected = "biases that name their direction (make them again by `hubness finish`)";
        return Err(refused(expected, "biases without one".into()));
    };
    let expected = format_args!("biases of direction {direction}");
    Error::unless(of.direction == direction, path.display(), expected, of.direction)?;
    if let Some(of) = of.raw.filter(|of| *of != raw.to_string()) {
        return Err(refused(&format!("biases of parts with --raw {raw}"), of));
    }
    let fits = of.items.is_none_or(|of| of == hash);
    let expected = format_args!("biases of the rows of {}", rows.place());
    Error::unless(fits, path.display(), expected, "biases of other rows")?;
    let values = file.values("bias", |shape| shape == [items]);
    values.map_err(|got| refused(&format!("one f64 for each of {items} items"), got))
}

fn hash(path: &Path) -> Result<File> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(File { name, sha256: sha256_of(path)? })
}

fn paths(folder: &NewFolder) -> [PathBuf; 4] {
    FILES.map(|name| folder.path().join(name))
}

fn say_how(args: &ExportArgs, about: &About, out: &mut impl Write) -> Result<()> {
    let fit = &args.fit;
    let (kind, asking) = fit.direction.items(("images", "a text"), ("texts", "an image"));
    let of = about.setting.map_or("biases of parts".into(), |setting| setting.to_string());
    let text = format!(
        "{}: {} {kind} of width {} in items.npy ({of}).\n\
         Index them for the inner product. Append 1.0 to {asking}'s embedding{} and search:\n\
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

//! A model of pictures and a model of sentences, joined by closed-form CCA of captioned photographs.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use indexmap::IndexSet;
use itm_core::arrays::{NamedArrays, array, to_bytes};
use itm_core::cca::{Cca, CcaOptions, Projection};
use itm_core::data::{Dataset, Embeddings, Features, SplitData, sha256_hex, upright_image};
use itm_core::files::{check_below, read, sha256_of};
use itm_core::output::write_bytes;
use itm_core::{Error, Pairs, Result};
use itm_search::Model;

use super::published::{Tower, Towers};
use super::{Origin, named};
use crate::embed::captions::CaptionList;
use crate::progress;

/// Captions that a model reads at a time.
const TOGETHER: usize = 16;
/// Every so many captioned pictures one is for validation: ridges, power and width of CCA are chosen on it.
const VALIDATION: usize = 5;
/// The fewest captioned pictures.
const FEWEST: usize = 20;
/// The largest file of maps that is read.
const MOST_BYTES: u64 = 1 << 30;

/// Opens two models and stored maps.
pub(super) fn open(models: [&str; 2], maps: &Path, backend: &str) -> Result<Towers> {
    with_maps(towers(models, backend)?, maps, HashMap::new())
}

fn with_maps(two: [Tower; 2], path: &Path, seen: HashMap<String, Vec<f32>>) -> Result<Towers> {
    let bytes = read(path, MOST_BYTES)?;
    let maps = stored(&bytes).map_err(|e| Error::invalid(path.display(), "maps of CCA", e))?;
    let widths = [two[0].embedder.image_width(), two[1].embedder.text_width()];
    let inputs = [&maps[0], &maps[1]].map(Projection::inputs);
    let fits = widths == inputs && maps[0].offset().len() == maps[1].offset().len();
    let expected = format_args!("maps from rows of {widths:?} values into one space");
    Error::unless(fits, path.display(), expected, format_args!("{inputs:?}"))?;
    let (transform, width) = (two[0].embedder.transform("--model")?, maps[0].offset().len());
    let name = format!("{} + {} by CCA", two[0].name(), two[1].name());
    let identity = key([&two[0].identity, &two[1].identity, &sha256_hex(&bytes)]);
    let model = Model { name, identity, width };
    Ok(Towers { towers: Mutex::new(two.into()), transform, maps: Some(maps), seen, model })
}

/// SHA-256 of three hashes.
fn key(parts: [&String; 3]) -> String {
    sha256_hex(parts.map(String::as_str).join("\n").as_bytes())
}

/// Fits the maps on the captioned photographs and writes them beside the index, or opens those of an earlier call with the same
/// models and captions: the file is called by them.
pub(super) fn fit(
    models: [&str; 2],
    captions: &Path,
    images: &Path,
    out: &Path,
    backend: &str,
) -> Result<(Towers, Origin)> {
    let towers = towers(models, backend)?;
    let file =
        file_of_maps(&key([&towers[0].identity, &towers[1].identity, &sha256_of(captions)?]));
    let path = out.join(&file);
    let [model, text_model] = models.map(named);
    let origin = Origin::Joined { model, text_model, maps: file };
    if path.exists() {
        return Ok((with_maps(towers, &path, HashMap::new())?, origin));
    }
    let (data, seen) = captioned(&towers, captions, images)?;
    // The rows of the sentence model stand alone: no term is in that many captions.
    let options = CcaOptions { min_captions: usize::MAX, ..CcaOptions::default() };
    let cca = progress::during("solving CCA", || Cca::fit(&data, &options))?;
    fs::create_dir_all(out).map_err(Error::io(out))?;
    write_bytes(&path, &bytes(cca.projections()))?;
    Ok((with_maps(towers, &path, seen)?, origin))
}

fn towers([model, text]: [&str; 2], backend: &str) -> Result<[Tower; 2]> {
    let towers = [Tower::open(model, backend)?, Tower::open(text, backend)?];
    towers[0].embedder.transform("--model")?;
    towers[1].check_texts("--text-model")?;
    Ok(towers)
}

/// The captioned photographs of a folder in two parts, and the rows of their pictures by pixels.
fn captioned(
    towers: &[Tower; 2],
    captions: &Path,
    images: &Path,
) -> Result<(Dataset, HashMap<String, Vec<f32>>)> {
    let list = CaptionList::read(captions)?;
    let Some(names) = &list.names else {
        let expected = "a name, a tab and a caption on each line";
        return Err(Error::invalid(captions.display(), expected, "captions alone"));
    };
    for (name, line) in names.iter().zip(&list.lines) {
        check_below(&format!("{} line {line}", captions.display()), name)?;
    }
    let distinct: IndexSet<&String> = names.iter().collect();
    let expected = format_args!("captions of at least {FEWEST} photographs");
    Error::unless(distinct.len() >= FEWEST, captions.display(), expected, distinct.len())?;
    let transform = towers[0].embedder.transform("--model")?;
    let bar = progress::bar("captioned", "pictures", distinct.len());
    let (mut image_rows, mut seen) = (Vec::<f32>::new(), HashMap::new());
    for (done, name) in distinct.iter().enumerate() {
        super::stopped(done)?;
        // Alone, as in `Towers::pictures`: beside other pictures the last bits of a row would be others.
        let picture = [upright_image(inside(images, name)?)?];
        let row = towers[0].images(&picture, transform);
        image_rows.extend(&row);
        seen.insert(sha256_hex(picture[0].as_raw()), row);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut text_rows = Vec::<f32>::new();
    for (k, part) in list.texts.chunks(TOGETHER).enumerate() {
        super::stopped(k * TOGETHER)?;
        let part: Vec<&str> = part.iter().map(String::as_str).collect();
        text_rows.extend(towers[1].embedder.sentences(&part)?);
    }
    let place = |name: &String| distinct.get_index_of(&name);
    let whole = SplitData {
        embeddings: Embeddings {
            images: Features { dim: towers[0].embedder.image_width(), values: image_rows },
            texts: Features { dim: towers[1].embedder.text_width(), values: text_rows },
        },
        images: distinct.iter().copied().cloned().collect(),
        captions: list.texts.clone(),
        pairs: Pairs::new(distinct.len(), names.iter().filter_map(place).collect())?,
        ..SplitData::default()
    };
    let part = |validation: bool| {
        let mut part = whole.clone();
        let is_in = |i: &usize| i.is_multiple_of(VALIDATION) == validation;
        part.keep(&(0..distinct.len()).filter(is_in).collect::<Vec<_>>())?;
        Ok::<_, Error>(part)
    };
    let (train, val) = (part(false)?, part(true)?);
    let (name, sha256) = (captions.display().to_string(), String::new());
    Ok((Dataset { name, test: val.clone(), train, val, sha256 }, seen))
}

/// A photograph of the folder. A link out of the folder is not followed.
fn inside(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    let [real, whole] = [&*path, folder].map(|at| at.canonicalize().map_err(Error::io(at)));
    let got = "a link out of it";
    Error::unless(real?.starts_with(whole?), path.display(), "a photograph of the folder", got)?;
    Ok(path)
}

/// The names of the maps' weights and offsets in a file.
const NAMES: [[&str; 2]; 2] = [["image.weights", "image.offset"], ["text.weights", "text.offset"]];

fn bytes(maps: [&Projection; 2]) -> Vec<u8> {
    let parts = NAMES.iter().zip(maps).flat_map(|([weights, offset], map)| {
        let shape = [map.inputs(), map.offset().len()];
        [(*weights, array(&shape, map.weights())), (*offset, array(&shape[1..], map.offset()))]
    });
    to_bytes(parts, &[])
}

fn stored(bytes: &[u8]) -> Result<[Projection; 2], String> {
    let file = NamedArrays::new(bytes).map_err(|e| e.to_string())?;
    let values = |name: &str| file.values(name, |_| true).map_err(|got| format!("{name} as {got}"));
    let map = |[weights, offset]: [&str; 2]| {
        Projection::from_parts(values(weights)?, values(offset)?).map_err(|e| e.to_string())
    };
    Ok([map(NAMES[0])?, map(NAMES[1])?])
}

/// The name of a file of maps, by the first 16 hexadecimal digits of a hash.
fn file_of_maps(key: &str) -> String {
    format!("maps-{}.safetensors", &key[..16])
}

/// Whether a file has a name of [`file_of_maps`]: any other file is of somebody else.
fn is_of_maps(name: &str) -> bool {
    let key = name.strip_prefix("maps-").and_then(|name| name.strip_suffix(".safetensors"));
    let is_digit = |b| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    key.is_some_and(|key| key.len() == 16 && key.bytes().all(is_digit))
}

/// Removes maps that the index does not name: an earlier index needed them.
pub(super) fn forget_maps(out: &Path, origin: &Origin) {
    let kept = if let Origin::Joined { maps, .. } = origin { maps } else { "" };
    for path in fs::read_dir(out).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if is_of_maps(&name) && name != kept {
            _ = fs::remove_file(&path);
        }
    }
}

//! `itm embed`: the rows of pictures and captions by a published model, as two files of embeddings.

mod captions;
mod model;
mod pictures;
mod rows;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use itm_core::data::{
    FileBytes, decode_image, probe_image, sha256_hex, turned_pictures, upright_image,
};
use itm_core::files::{LARGEST_TEXT, read};
use itm_core::output::Lock;
use itm_core::vision::{Ahead, Prefetch, Transform};
use itm_core::weights::Hub;
use itm_core::{Error, Result};
use itm_kernels::Precision;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::checkpoint::write_atomically;
use crate::cli::{EmbedArgs, Shard};
use crate::npy::array;
use crate::{progress, stop};
use captions::Captions;
use model::Model;
use pictures::{Pictures, pictures};
use rows::{Done, Rows, Table};

/// Captions that are sorted by length together.
const SORTED: usize = 2048;

pub(crate) fn embed(args: &EmbedArgs) -> Result<()> {
    crate::config::within("--batch".into(), args.batch as u64, 1..=4096)?;
    if args.images.is_none() && args.captions.is_none() {
        return Err(Error::invalid("--images, --captions", "one of them or both", "none"));
    }
    let images = args.images.as_deref().map(|path| pictures(path, args.shard)).transpose()?;
    let captions = args.captions.as_deref().map(Captions::read).transpose()?;
    let folder = Hub::from_env().folder(&args.model)?;
    let model =
        Model::open(&folder, args.adapter.as_deref(), args.precision.unwrap_or(Precision::F32))?;
    let missing = |option, reads| {
        let expected = format!("a model that reads {reads}");
        Err(Error::invalid(option, expected, folder.display()))
    };
    if images.is_some() && model.transform.is_none() {
        return missing("--images", "pictures");
    }
    if captions.is_some() && model.text_width() == 0 {
        return missing("--captions", "captions");
    }

    let out = Out { folder: &args.out, shard: args.shard };
    fs::create_dir_all(&args.out).map_err(Error::io(&args.out))?;
    let refused = |process| {
        Error::invalid(args.out.display(), "a folder that no other process writes", process)
    };
    let _owner = Lock::take(&out.path("embed", "lock")?, refused)?;
    let identity = json!({
        "itm": env!("CARGO_PKG_VERSION"),
        "model": { "name": args.model, "sha256": model::hashes(&folder)?, "about": model.about },
        "adapter": args.adapter.as_deref().map(model::hashes).transpose()?,
        "pictures": images.as_ref().map(|images| images.hash.clone()),
        "captions": args.captions.as_deref().map(hash).transpose()?,
        "batch": args.batch,
        "shard": args.shard.map(|shard| shard.to_string()),
        "skip_bad": args.skip_bad,
        "upright": args.upright,
        "patches": args.patches,
    });
    if !begun(&out, &identity)? {
        progress::say(format!("{} is whole already", args.out.display()));
        return Ok(());
    }
    stop::listen()?;
    let (mut manifest, mut files) = (identity, vec![]);
    let mut left_out = vec![];
    if let (Some(images), Some(transform)) = (&images, model.transform) {
        let path = out.path("image", "npy")?;
        let grid = out.path("grid", "npy")?;
        let tables = [&path, &grid].map(PathBuf::as_path);
        let done = embed_pictures(args, &model, images, transform, tables)?;
        if args.patches {
            files.push(grid);
        }
        let bad = |i: &usize| images.names[*i].clone();
        left_out = done.bad.iter().map(bad).collect();
        manifest["image"] =
            json!({ "rows": done.rows, "width": model.image_width(), "left_out": left_out });
        let ids: String = kept(images, &done).map(|name| format!("{name}\n")).collect();
        let names = out.path("image_ids", "txt")?;
        write_atomically(&names, ids.as_bytes())?;
        files.extend([path, names]);
        let names: Vec<&str> = kept(images, &done).collect();
        let is_turned =
            |name: &&&str| probe_image(images.folder.join(name)).is_ok_and(|info| info.turned);
        let turned = names.par_iter().filter(is_turned).count();
        if turned > 0 && !args.upright {
            progress::say(format!("{}; --upright applies it", turned_pictures(turned)));
        }
    }
    if let Some(captions) = &captions {
        let of_images = match &images {
            Some(images) => {
                let file = args.captions.as_deref().unwrap_or(Path::new(""));
                let kept = images.names.iter().filter(|name| !left_out.contains(name));
                let kept: Vec<&str> = kept.map(String::as_str).collect();
                // In a shard, the captions of the other shards are those of pictures that are not here.
                let mut away: Vec<&str> = images.elsewhere.iter().map(String::as_str).collect();
                away.extend(left_out.iter().map(String::as_str));
                captions.images(file, &kept, &away)?
            }
            None => None,
        };
        let chosen: Vec<usize> = match (&of_images, args.shard) {
            (Some(images), _) => (0..images.len()).filter(|&k| images[k].is_some()).collect(),
            (None, Some(shard)) => shard.part(captions.texts.len()).collect(),
            (None, None) => (0..captions.texts.len()).collect(),
        };
        let path = out.path("text", "npy")?;
        let done = embed_captions(args, &model, captions, &chosen, &path)?;
        manifest["text"] =
            json!({ "rows": done.rows, "width": model.text_width(), "cut": done.cut });
        files.push(path);
        if let Some(of_images) = of_images {
            let path = out.path("text_to_image", "npy")?;
            let numbers = chosen.iter().filter_map(|&k| of_images[k]).map(|i| i as i64);
            let bytes = numbers.flat_map(i64::to_le_bytes).collect::<Vec<u8>>();
            write_atomically(&path, &array("<i8", &[chosen.len()], bytes.into_iter()))?;
            files.push(path);
        }
    }
    finish(&out, manifest, &files, args)
}

/// The files of a command: `NAME.END`, or `NAME/00002.END` of shard 2.
struct Out<'a> {
    folder: &'a Path,
    shard: Option<Shard>,
}

impl Out<'_> {
    fn path(&self, name: &str, end: &str) -> Result<PathBuf> {
        let Some(shard) = self.shard else { return Ok(self.folder.join(format!("{name}.{end}"))) };
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        Ok(folder.join(format!("{:05}.{end}", shard.number)))
    }
}

fn hash(path: &Path) -> Result<String> {
    Ok(sha256_hex(&FileBytes::open(path)?))
}

/// Whether there is anything left to do. The identity of the work stands in `embed.json.part` until the manifest is written.
fn begun(out: &Out<'_>, identity: &Value) -> Result<bool> {
    let (manifest, begun) = (out.path("embed", "json")?, out.path("embed", "json.part")?);
    let (path, whole) = if manifest.exists() { (&manifest, true) } else { (&begun, false) };
    if path.exists() {
        let text = read(path, LARGEST_TEXT)?;
        let earlier: Value = serde_json::from_slice(&text)
            .map_err(|e| Error::invalid(path.display(), "a manifest of this command", e))?;
        let object = identity.as_object().expect("an object");
        if let Some((key, value)) =
            object.iter().find(|(key, value)| earlier[key.as_str()] != **value)
        {
            let place = format!("{}: {key}", path.display());
            let expected = format!("{value}, as this command has it, or another --out");
            return Err(Error::invalid(place, expected, &earlier[key.as_str()]));
        }
        return Ok(!whole);
    }
    for name in ["image", "text"] {
        let path = out.path(name, "npy")?;
        if path.exists() {
            let expected = "a folder without files of that name, or with a manifest";
            return Err(Error::invalid(path.display(), expected, "a file"));
        }
    }
    let text = serde_json::to_string_pretty(identity).expect("a value");
    write_atomically(&begun, text.as_bytes())?;
    Ok(true)
}

/// The names of the pictures that have rows.
fn kept<'a>(images: &'a Pictures, done: &'a Done) -> impl Iterator<Item = &'a str> {
    let names = images.names.iter().enumerate();
    names.filter(|(i, _)| done.bad.binary_search(i).is_err()).map(|(_, name)| name.as_str())
}

/// A batch of pictures ready for the model, and the pictures that could not be read.
struct Prepared {
    values: Vec<f32>,
    bad: Vec<(usize, Error)>,
    items: usize,
}

fn embed_pictures(
    args: &EmbedArgs,
    model: &Model,
    images: &Pictures,
    transform: Transform,
    [path, grid]: [&Path; 2],
) -> Result<Done> {
    if let Some(done) = Rows::finished(path) {
        return Ok(done);
    }
    let side = transform.size as usize;
    let mut tables = vec![Table { path: path.into(), shape: vec![model.image_width()] }];
    if args.patches {
        tables.push(Table { path: grid.into(), shape: model.patches(side).into() });
    }
    let mut rows = Rows::open(tables)?;
    let first = rows.done.items;
    let bar = progress::bar("pictures", "pictures");
    bar.set_length(images.names.len() as u64);
    bar.set_position(first as u64);
    bar.reset_eta();
    let names: Arc<Vec<PathBuf>> =
        Arc::new(images.names.iter().map(|name| images.folder.join(name)).collect());
    let (count, batch, upright) = (names.len(), args.batch, args.upright);
    let jobs = (first..count).step_by(batch).map(move |start| start..(start + batch).min(count));
    let ahead =
        Ahead { workers: rayon::current_num_threads(), results: rayon::current_num_threads() + 1 };
    let ready = Prefetch::new(jobs.collect::<Vec<_>>(), ahead, move |part| {
        let mut prepared = Prepared { values: vec![], bad: vec![], items: part.len() };
        for i in part {
            let image = if upright { upright_image(&names[i]) } else { decode_image(&names[i]) };
            match image {
                Ok(image) => {
                    let from = prepared.values.len();
                    prepared.values.resize(from + transform.len(), 0.0);
                    transform.apply(&image, &mut prepared.values[from..]);
                }
                Err(error) => prepared.bad.push((i, error)),
            }
        }
        Ok(prepared)
    });
    for prepared in ready {
        let Prepared { values, bad, items } = prepared?;
        let mut done = rows.done.clone();
        for (i, error) in bad {
            if !args.skip_bad {
                bar.finish_and_clear();
                return Err(error);
            }
            progress::say(format!("left out: {error}"));
            done.bad.push(i);
        }
        done.items += items;
        let [got, patches] = match values.is_empty() {
            true => Default::default(),
            false => model.images(values, side, args.patches),
        };
        done.rows += got.len() / model.image_width();
        finite(path, &got)?;
        rows.add(&[&got, &patches], done)?;
        bar.inc(items as u64);
        stopped(rows.done.items, "picture", count)?;
    }
    bar.finish_and_clear();
    if rows.done.rows == 0 {
        return Err(Error::invalid(images.folder.display(), "pictures that can be read", "none"));
    }
    rows.finish()
}

fn embed_captions(
    args: &EmbedArgs,
    model: &Model,
    captions: &Captions,
    chosen: &[usize],
    path: &Path,
) -> Result<Done> {
    if let Some(done) = Rows::finished(path) {
        return Ok(done);
    }
    let width = model.text_width();
    let mut rows = Rows::open(vec![Table { path: path.into(), shape: vec![width] }])?;
    let bar = progress::bar("captions", "captions");
    bar.set_length(chosen.len() as u64);
    bar.set_position(rows.done.items as u64);
    bar.reset_eta();
    for part in chosen[rows.done.items..].chunks(SORTED) {
        let pieces = part.iter().map(|&k| model.pieces(&captions.texts[k]));
        let (pieces, cut): (Vec<Vec<u32>>, Vec<bool>) =
            pieces.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        // Captions of one length need no padding.
        let mut order: Vec<usize> = (0..part.len()).collect();
        order.sort_by_key(|&k| pieces[k].len());
        let mut got = vec![0.0; part.len() * width];
        for batch in order.chunks(args.batch) {
            let ids: Vec<&Vec<u32>> = batch.iter().map(|&k| &pieces[k]).collect();
            for (&k, row) in batch.iter().zip(model.texts(&ids).chunks_exact(width)) {
                got[k * width..(k + 1) * width].copy_from_slice(row);
            }
            bar.inc(batch.len() as u64);
        }
        finite(path, &got)?;
        let mut done = rows.done.clone();
        done.items += part.len();
        done.rows += part.len();
        done.cut += cut.into_iter().filter(|&cut| cut).count();
        rows.add(&[&got], done)?;
        stopped(rows.done.items, "caption", chosen.len())?;
    }
    bar.finish_and_clear();
    rows.finish()
}

/// A model with damaged weights gives rows that look whole.
fn finite(path: &Path, rows: &[f32]) -> Result<()> {
    match rows.iter().find(|value| !value.is_finite()) {
        Some(value) => Err(Error::invalid(path.display(), "finite values of the model", value)),
        None => Ok(()),
    }
}

fn stopped(items: usize, what: &str, count: usize) -> Result<()> {
    if !stop::is_asked() || items == count {
        return Ok(());
    }
    let got = format!("a signal after {what} {items}; the same command goes on from there");
    Err(Error::invalid("itm embed", format!("{count} {what}s"), got))
}

/// Writes the manifest with the hash of each file, and removes what a killed command would have needed.
fn finish(out: &Out<'_>, mut manifest: Value, files: &[PathBuf], args: &EmbedArgs) -> Result<()> {
    for path in files {
        let name = path.strip_prefix(out.folder).unwrap_or(path).to_string_lossy().into_owned();
        manifest["files"][name] = json!(hash(path)?);
    }
    let text = serde_json::to_string_pretty(&manifest).expect("a value") + "\n";
    write_atomically(&out.path("embed", "json")?, text.as_bytes())?;
    for name in ["image", "text"] {
        Rows::forget(&out.path(name, "npy")?)?;
    }
    let begun = out.path("embed", "json.part")?;
    fs::remove_file(&begun).map_err(Error::io(&begun))?;
    let rows = |name: &str| manifest[name]["rows"].as_u64();
    let mut parts = vec![];
    for (name, what) in [("image", "pictures"), ("text", "captions")] {
        parts.extend(rows(name).map(|count| format!("{count} {what}")));
    }
    let left_out = manifest["image"]["left_out"].as_array().map_or(0, Vec::len);
    if left_out > 0 {
        parts.push(format!("{left_out} pictures left out"));
    }
    if let Some(cut) = manifest["text"]["cut"].as_u64().filter(|&cut| cut > 0) {
        parts.push(format!("{cut} captions cut"));
    }
    progress::say(format!("{} in {}", parts.join(", "), args.out.display()));
    Ok(())
}

#[cfg(test)]
mod tests;

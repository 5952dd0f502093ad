//! `itm embed`: the rows of pictures and captions by a published model, as two files of embeddings.

pub(crate) mod captions;
mod output;
mod pictures;
mod rows;

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use itm_core::data::{npy_header, turned_pictures};
use itm_core::encoders::Embedder;
use itm_core::files::sha256_of;
use itm_core::learn::precision_of;
use itm_core::output::write_bytes;
use itm_core::vision::Transform;
use itm_core::weights::Hub;
use itm_core::{Error, Result};
use itm_kernels::Precision;
use serde_json::{Value, json};

use crate::cli::EmbedArgs;
use crate::devices::device;
use crate::{progress, stop};
use captions::CaptionList;
use output::Out;
pub(crate) use output::hashes;
use pictures::{PictureList, RowOf};
use rows::RowFile;

pub(crate) fn embed(args: &EmbedArgs) -> Result<()> {
    crate::config::within("--batch".into(), args.batch as u64, 1..=4096)?;
    let any = args.images.is_some() || args.captions.is_some();
    Error::unless(any, "--images, --captions", "one of them or both", "none")?;
    let of_pictures =
        [("--patches", args.patches), ("--upright", args.upright), ("--skip-bad", args.skip_bad)];
    for (option, given) in of_pictures {
        let fits = !given || args.images.is_some();
        Error::unless(fits, option, "--images beside it", "captions alone")?;
    }
    let pictures = args.images.as_deref().map(|path| PictureList::open(path, args.shard));
    let pictures = pictures.transpose()?;
    pictures.as_ref().map_or(Ok(()), |list| list.check_names(args))?;
    let captions = args.captions.as_deref().map(CaptionList::read).transpose()?;
    if let (Some(pictures), Some(captions), Some(path)) = (&pictures, &captions, &args.captions) {
        captions.images(path, &pictures.rows(&[]))?; // a caption without a picture is an error before the work
    }
    let device = device(&args.backend)?;
    precision_of("--precision", args.precision, &device)?;
    let folder = Hub::from_env().folder(&args.model)?;
    let embedder = opened(&folder, args.adapter.as_deref(), args.precision, &device)?;
    let prepared = |list| Ok::<_, Error>((list, embedder.transform("--images")?));
    let pictures = pictures.as_ref().map(prepared).transpose()?;
    if captions.is_some() {
        embedder.check_captions("--captions")?;
    }

    let out = Out { folder: &args.out, shard: args.shard };
    let _owner = out.lock()?;
    let manifest = identity(args, &embedder, pictures.map(|(list, _)| &*list.hash))?;
    if !out.begun(&manifest)? {
        progress::say(format!("{} is whole already", args.out.display()));
        return Ok(());
    }
    stop::listen()?;
    let mut work = Work { args, out, embedder: &embedder, manifest, files: vec![] };
    let rows = pictures.map(|(list, transform)| work.pictures(list, transform)).transpose()?;
    if let Some(captions) = &captions {
        work.captions(captions, rows.as_ref())?;
    }
    work.finish()
}

/// Opens a folder, and says what of its tensors is not read.
pub(crate) fn opened(
    folder: &Path,
    adapter: Option<&Path>,
    precision: Precision,
    device: &Device,
) -> Result<Embedder> {
    let embedder = Embedder::open(folder, adapter, precision, device)?;
    if let Some(name) = embedder.report.unexpected.first() {
        progress::say(format!("{}: not read: {name} …", embedder.report.place));
    }
    Ok(embedder)
}

/// All that decides the rows. The same command has the same identity. `pictures` is the hash of their list.
fn identity(args: &EmbedArgs, embedder: &Embedder, pictures: Option<&str>) -> Result<Value> {
    let sha256 = hashes(&embedder.folder)?;
    Ok(json!({
        "itm": env!("CARGO_PKG_VERSION"),
        "model": { "name": args.model, "sha256": sha256, "about": embedder.about },
        "adapter": args.adapter.as_deref().map(hashes).transpose()?,
        "pictures": pictures,
        "captions": args.captions.as_deref().map(sha256_of).transpose()?,
        "backend": args.backend,
        "batch": args.batch,
        "shard": args.shard.map(|shard| format!("{}/{}", shard.number, shard.of)),
        "skip_bad": args.skip_bad,
        "upright": args.upright,
        "patches": args.patches,
    }))
}

/// What a command has and makes.
struct Work<'a> {
    args: &'a EmbedArgs,
    out: Out<'a>,
    embedder: &'a Embedder,
    /// The identity, and what was found on the way.
    manifest: Value,
    /// The files that are whole.
    files: Vec<PathBuf>,
}

impl Work<'_> {
    /// Writes the rows of the pictures, and their names. Returns [`PictureList::rows`].
    fn pictures<'p>(&mut self, list: &'p PictureList, transform: Transform) -> Result<RowOf<'p>> {
        let width = self.embedder.image_width();
        let image = self.out.create("image", "npy")?;
        let mut files = vec![RowFile { path: image.clone(), shape: vec![width] }];
        if self.args.patches {
            let grid = self.out.create("grid", "npy")?;
            let shape = self.embedder.patches(transform.size as usize).into();
            self.files.push(grid.clone());
            files.push(RowFile { path: grid, shape });
        }
        let done = list.write(self.args, self.embedder, transform, files)?;
        let (kept, mut left_out) = list.parted(&done.bad);
        left_out.extend(list.unnamed.iter().map(String::as_str));
        self.manifest["image"] = json!({ "rows": done.rows, "width": width, "left_out": left_out });
        let ids = self.out.create("image_ids", "txt")?;
        let lines: String = kept.iter().map(|name| format!("{name}\n")).collect();
        write_bytes(&ids, lines.as_bytes())?;
        self.files.extend([image, ids]);
        let turned = if self.args.upright { 0 } else { list.turned(&kept) };
        if turned > 0 {
            progress::say(format!("{}; --upright applies it", turned_pictures(turned)));
        }
        Ok(list.rows(&kept))
    }

    /// Writes the rows of the captions. If the captions name pictures and `rows` are the rows of the pictures, writes them too,
    /// and leaves out captions whose picture has no row.
    fn captions(&mut self, list: &CaptionList, rows: Option<&RowOf>) -> Result<()> {
        let file = self.args.captions.as_deref().unwrap_or(Path::new(""));
        let images = rows.map(|rows| list.images(file, rows)).transpose()?.flatten();
        let all = list.texts.len();
        let chosen: Vec<usize> = match &images {
            Some(images) => (0..all).filter(|&k| images[k].is_some()).collect(),
            None => self.args.shard.map_or(0..all, |shard| shard.part(all)).collect(),
        };
        let width = self.embedder.text_width();
        let text = self.out.create("text", "npy")?;
        let rows = RowFile { path: text.clone(), shape: vec![width] };
        let done = list.write(self.args, self.embedder, &chosen, rows)?;
        self.manifest["text"] = json!({ "rows": done.rows, "width": width, "cut": done.cut });
        let lines: String = chosen.iter().map(|&k| format!("{}\n", list.texts[k])).collect();
        let path = self.out.create("captions", "txt")?;
        write_bytes(&path, lines.as_bytes())?;
        self.files.extend([text, path]);
        if let Some(images) = images {
            let path = self.out.create("text_to_image", "npy")?;
            let numbers = images.into_iter().flatten().map(|row| row as i64);
            let header = npy_header("<i8", &[chosen.len()]).into_iter();
            let bytes: Vec<u8> = header.chain(numbers.flat_map(i64::to_le_bytes)).collect();
            write_bytes(&path, &bytes)?;
            self.files.push(path);
        }
        Ok(())
    }

    /// Writes the manifest, and says what was done.
    fn finish(mut self) -> Result<()> {
        self.out.finish(&mut self.manifest, &self.files)?;
        let count = |name: &str, what: &str| self.manifest[name][what].as_u64().unwrap_or(0);
        let left_out = self.manifest["image"]["left_out"].as_array().map_or(0, Vec::len) as u64;
        let parts = [
            (count("image", "rows"), "pictures"),
            (count("text", "rows"), "captions"),
            (left_out, "pictures left out"),
            (count("text", "cut"), "captions cut"),
        ];
        let parts = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
        let mut parts: Vec<String> = parts.collect();
        if parts.is_empty() {
            parts.push("no captions".into()); // a shard may have none
        }
        progress::say(format!("{} in {}", parts.join(", "), self.args.out.display()));
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;

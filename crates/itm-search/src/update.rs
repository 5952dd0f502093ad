//! Making an index, and making it follow its folder.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use image::{DynamicImage, RgbImage};
use itm_core::data::{LARGEST_IMAGE_FILE, upright_bytes};
use itm_core::files::{read, read_json, read_json_lines, sha256_hex, sha256_of};
use itm_core::output::{Existing, NewFolder, write_bytes};
use itm_core::{Error, Result};
use rayon::prelude::*;

use crate::encoder::{Model, pictures, texts};
use crate::folder::{FolderFile, FolderListing, locate, walk};
use crate::index::jpeg;
use crate::journal::Journal;
use crate::store::{
    FILES, IndexManifest, Stored, Tables, hash_of_thumbnail, index_folder, thumbnail,
};
use crate::{Encoder, Picture, exif, levels};

/// Pictures that are decoded and encoded together: sixteen photographs of 24 megapixels take 1.2 GB.
const TOGETHER: usize = 16;
/// Queries of the bank that are encoded together.
const QUERIES: usize = 64;
/// The longest side of a thumbnail, in pixels.
const THUMBNAIL: u32 = 320;

/// What an index is made of.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The folder of the photographs.
    pub images: &'a Path,
    /// The folder of the index.
    pub out: &'a Path,
    /// What the caller must know to open the model again: [`Index::about`](crate::Index::about).
    pub about: &'a serde_json::Value,
    /// Ordinary queries, each on one line: [`ordinary_queries`](crate::ordinary_queries), or the user's own.
    pub bank: &'a [String],
    /// Is told how many pictures of how many have rows.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Whether to stop after the pictures at hand.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// What an update did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Pictures of the index.
    pub pictures: usize,
    /// Pictures that went through the model.
    pub encoded: usize,
    /// Pictures that have gone since the last update: no file has their path, and none that came has their bytes.
    pub gone: usize,
    /// Files and folders that could not be read, and why; `*.heic` stands for all files of a kind that is not read.
    pub left_out: Vec<(String, String)>,
}

/// Makes an index of a folder, or brings one up to date: only pictures with new bytes go through the model. A file is opened only
/// if its size or its time has changed, so a picture that was moved is read and not encoded again. The pictures of a folder that cannot
/// be read stay in the index. Until the end the index is as it was. After a stop the next call goes on.
///
/// # Errors
/// If [`check_out`] refuses `out`, the folder of the photographs has no picture that can be read or a path that is not UTF-8, the bank has fewer
/// than 8 queries or one of several lines, another process writes the index, a file cannot be written, the model fails, or `stop` says so.
pub fn update(sources: &Sources<'_>, encoder: &dyn Encoder) -> Result<Update> {
    let Sources { images, out, bank, about, .. } = sources;
    let folder = images.canonicalize().map_err(Error::io(images))?;
    let expected = "a folder whose path is UTF-8";
    Error::unless(folder.to_str().is_some(), images.display(), expected, "another")?;
    check_out(images, out)?;
    let expected = format_args!("at least {} queries", levels::FEWEST);
    Error::unless(bank.len() >= levels::FEWEST, "bank", expected, bank.len())?;
    let whole = bank.iter().all(|query| !query.contains(['\n', '\r']));
    Error::unless(whole, "bank", "each query on one line", "one on several")?;
    let FolderListing { files: found, left_out: unlisted, unread } = walk(&folder)?;
    let any = !found.is_empty() || !unlisted.is_empty();
    Error::unless(any, images.display(), "photographs (.jpg, .jpeg, .png, .webp)", "none")?;
    fs::create_dir_all(out).map_err(Error::io(out))?;
    let new = NewFolder::begin(&index_folder(out), Existing::Only(&FILES))?;
    let Model { name: model, identity, width } = encoder.model();
    let fits = |old: &Stored| (&old.manifest.identity, old.manifest.width) == (&identity, width);
    let old = Stored::read(out).ok().filter(fits);
    let mut work = Work::begin(sources, encoder, &folder, old.as_ref())?;
    work.all(&found)?;
    let Work { mut known, mut left_out, encoded, journal, .. } = work;
    left_out.extend(unlisted);
    left_out.sort();
    let mut kept: Vec<Picture> =
        found.iter().filter_map(|file| known.at.remove(&file.path)).collect();
    let below = |path: &str, at: &String| {
        path.strip_prefix(&**at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_unread = |picture: &Picture| unread.iter().any(|at| below(&picture.path, at));
    kept.extend(known.at.into_values().filter(is_unread));
    kept.sort_by(|a, b| a.path.cmp(&b.path));
    if kept.is_empty() {
        let expected = "a photograph that can be read";
        return Err(Error::invalid(images.display(), expected, &left_out[0].1));
    }
    let rows: Vec<f32> =
        kept.iter().flat_map(|picture| known.by_content[&picture.sha256].1.clone()).collect();
    let same_bank =
        old.as_ref().filter(|old| old.bank == **bank).map(|old| old.tables.bank.clone());
    let bank_rows = same_bank.map_or_else(|| encode_bank(bank, encoder), Ok)?;
    let levels = levels::fit(&rows, &bank_rows, width)?;
    let hashes: HashSet<String> = kept.iter().map(|picture| picture.sha256.clone()).collect();
    let gone = old.map_or(0, |old| gone(&old.pictures, &kept));
    let done = Update { pictures: kept.len(), encoded, gone, left_out: left_out.clone() };
    let manifest = IndexManifest {
        format: 0,
        folder,
        model,
        identity,
        about: (*about).clone(),
        width,
        left_out,
        correction: levels.correction,
        levels: levels.levels,
        sha256: vec![],
    };
    let tables = Tables { rows, bank: bank_rows, biases: levels.biases, answers: levels.answers };
    Stored { manifest, pictures: kept, bank: bank.to_vec(), tables }.write(new)?;
    journal.forget();
    forget_thumbnails(out, &hashes);
    Ok(done)
}

/// Refuses to make an index in the folder of its photographs, where files of the index and photographs could not be told apart, or
/// in the place of another folder's index.
///
/// # Errors
/// If `out` is `images`, under any name; if `out` has the index of a folder that is still there, or of one that has no picture in
/// common with `images`.
pub fn check_out(images: &Path, out: &Path) -> Result<()> {
    let [images, whole] = [images, out].map(|path| path.canonicalize().ok());
    let fits = images.is_none() || images != whole;
    Error::unless(fits, out.display(), "another folder than the photographs'", "the same")?;
    images.map_or(Ok(()), |folder| check_folder(&folder, out))
}

/// Refuses the index of another folder, unless that folder has moved here: its path has gone, and a photograph of it is here.
fn check_folder(folder: &Path, out: &Path) -> Result<()> {
    let [about, pictures] = [FILES[3], FILES[0]].map(|name| index_folder(out).join(name));
    let Ok(IndexManifest { folder: before, .. }) = read_json(&about, "an index of `itm index`")
    else {
        return Ok(());
    };
    let fits = match before.canonicalize() {
        Ok(before) => before == folder,
        Err(_) => {
            let known: Vec<Picture> = read_json_lines(&pictures, "a picture").unwrap_or_default();
            let known: HashSet<(u64, String)> =
                known.into_iter().map(|picture| (picture.bytes, picture.sha256)).collect();
            let lengths: HashSet<u64> = known.iter().map(|(bytes, _)| *bytes).collect();
            let is_known = |FolderFile { path, bytes, .. }: FolderFile| {
                lengths.contains(&bytes)
                    && sha256_of(folder.join(path)).is_ok_and(|hash| known.contains(&(bytes, hash)))
            };
            walk(folder)?.files.into_iter().any(is_known)
        }
    };
    let expected = format_args!("an index of {}, or another --out", folder.display());
    Error::unless(fits, out.display(), expected, format_args!("one of {}", before.display()))
}

/// What is known of pictures: by path, and the rows by content.
#[derive(Default)]
struct Known {
    at: HashMap<String, Picture>,
    /// With their rows, by the SHA-256 of a file: a picture that has moved keeps its row.
    by_content: HashMap<String, (Picture, Vec<f32>)>,
}

impl Known {
    fn add(&mut self, picture: Picture, row: Vec<f32>) {
        self.by_content.insert(picture.sha256.clone(), (picture.clone(), row));
        self.at.insert(picture.path.clone(), picture);
    }
}

struct Work<'a> {
    sources: &'a Sources<'a>,
    encoder: &'a dyn Encoder,
    folder: &'a Path,
    known: Known,
    journal: Journal,
    left_out: Vec<(String, String)>,
    encoded: usize,
}

/// A picture as a file has it, and if its bytes are new, what the model must see and the thumbnail.
type FileRead = (Picture, Option<(RgbImage, Vec<u8>)>);

impl<'a> Work<'a> {
    fn begin(
        sources: &'a Sources<'a>,
        encoder: &'a dyn Encoder,
        folder: &'a Path,
        old: Option<&Stored>,
    ) -> Result<Self> {
        let mut known = Known::default();
        if let Some(old) = old {
            let rows = old.tables.rows.chunks_exact(encoder.model().width);
            old.pictures.iter().zip(rows).for_each(|(p, row)| known.add(p.clone(), row.to_vec()));
            if old.manifest.folder != folder {
                known.at.clear(); // in another folder only the bytes of a file say what it is
            }
        }
        let (journal, left) = Journal::open(sources.out, folder, encoder)?;
        left.into_iter().for_each(|(picture, row)| known.add(picture, row));
        Ok(Self { sources, encoder, folder, known, journal, left_out: vec![], encoded: 0 })
    }

    fn all(&mut self, found: &[FolderFile]) -> Result<()> {
        let is_known = |file: &&FolderFile| {
            self.known.at.get(&file.path).is_some_and(|known| {
                let same = (file.bytes, file.modified) == (known.bytes, known.modified);
                same && thumbnail(self.sources.out, &known.sha256).is_file()
            })
        };
        let changed: Vec<&FolderFile> = found.iter().filter(|file| !is_known(file)).collect();
        let unchanged = found.len() - changed.len();
        for (k, part) in changed.chunks(TOGETHER).enumerate() {
            let at = unchanged + k * TOGETHER;
            (self.sources.progress)(at, found.len());
            if (self.sources.stop)() {
                let got =
                    format!("a signal after picture {at}; the same command goes on from there");
                return Err(Error::invalid("itm index", format!("{} pictures", found.len()), got));
            }
            self.part(part)?;
        }
        (self.sources.progress)(found.len(), found.len());
        Ok(())
    }

    fn part(&mut self, files: &[&FolderFile]) -> Result<()> {
        let all: Vec<_> = files.par_iter().map(|file| self.read(file)).collect();
        let (mut about, mut images) = (vec![], vec![]);
        for (file, read) in files.iter().zip(all) {
            self.known.at.remove(&file.path); // what stood there has changed
            match read {
                Ok((picture, None)) => _ = self.known.at.insert(picture.path.clone(), picture),
                Ok((picture, Some((image, small)))) => {
                    let at = thumbnail(self.sources.out, &picture.sha256);
                    fs::create_dir_all(at.parent().expect("a folder")).map_err(Error::io(&at))?;
                    write_bytes(&at, &small)?;
                    about.push(picture);
                    images.push(DynamicImage::ImageRgb8(image));
                }
                Err(error) => self.left_out.push((file.path.clone(), error.to_string())),
            }
        }
        if images.is_empty() {
            return Ok(());
        }
        let rows = pictures(self.encoder, &images)?;
        self.encoded += images.len();
        for (picture, row) in about.into_iter().zip(rows.chunks_exact(self.encoder.model().width)) {
            self.journal.add(&picture, row)?;
            self.known.add(picture, row.to_vec());
        }
        self.journal.sync()
    }

    /// Reads a file: its hash, and if the bytes are new, the picture.
    fn read(&self, file: &FolderFile) -> Result<FileRead> {
        let content = read(locate(self.folder, &file.path)?, LARGEST_IMAGE_FILE)?;
        let sha256 = sha256_hex(&content);
        let FolderFile { path, bytes, modified } = file.clone();
        if let Some((known, _)) = self.known.by_content.get(&sha256)
            && thumbnail(self.sources.out, &sha256).is_file()
        {
            return Ok((Picture { path, bytes, modified, ..known.clone() }, None));
        }
        let image = upright_bytes(&path, &content)?;
        let small = jpeg(&image, THUMBNAIL)?;
        let size = [image.width(), image.height()];
        let (taken, camera, place) = exif::read(&content);
        let picture = Picture { path, bytes, modified, sha256, size, taken, camera, place };
        Ok((picture, Some((image, small))))
    }
}

/// How many pictures have gone. A path that has other bytes now is a change, and the same bytes at a path that is new are a move.
fn gone(before: &[Picture], kept: &[Picture]) -> usize {
    let paths = |all: &[Picture]| -> HashSet<String> {
        all.iter().map(|picture| picture.path.clone()).collect()
    };
    let (old, now) = (paths(before), paths(kept));
    let mut arrived: HashMap<&str, usize> = HashMap::new();
    for picture in kept.iter().filter(|picture| !old.contains(&picture.path)) {
        *arrived.entry(&picture.sha256).or_default() += 1;
    }
    let mut has_moved = |picture: &Picture| {
        let left = arrived.get_mut(&*picture.sha256).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    };
    let lost = before.iter().filter(|picture| !now.contains(&picture.path));
    lost.filter(|picture| !has_moved(picture)).count()
}

fn encode_bank(bank: &[String], encoder: &dyn Encoder) -> Result<Vec<f32>> {
    let mut rows = Vec::with_capacity(bank.len() * encoder.model().width);
    for part in bank.chunks(QUERIES) {
        let part: Vec<&str> = part.iter().map(String::as_str).collect();
        rows.extend(texts(encoder, &part)?);
    }
    Ok(rows)
}

/// Removes thumbnails of no picture, and no other file. One that stays does no harm.
fn forget_thumbnails(out: &Path, hashes: &HashSet<String>) {
    let folders = fs::read_dir(out.join("thumbnails")).into_iter().flatten().flatten();
    for file in folders.filter_map(|folder| fs::read_dir(folder.path()).ok()).flatten().flatten() {
        let path = file.path();
        if hash_of_thumbnail(&path).is_some_and(|hash| !hashes.contains(hash)) {
            _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests;

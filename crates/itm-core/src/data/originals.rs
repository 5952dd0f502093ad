//! Captions and splits in the files that the publishers of the sets gave, or that people got elsewhere.
//!
//! ```text
//! Flickr8k.token.txt              name.jpg#0<TAB>caption; also Flickr30K's results_*.token
//! captions.txt, captions.csv      image,caption with a header: Flickr8k elsewhere
//! results.csv                     image_name| comment_number| comment: Flickr30K elsewhere
//! captions_train2014.json, …      COCO's annotations, also below annotations/
//! *train*.txt, *dev*.txt or *val*.txt, *test*.txt     the splits: a file name on each line, with or without its ending
//! ```
//!
//! COCO's files are splits themselves, if there are no lists.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::fne_annotations::split_of;
use super::{CaptionRule, Dropped, Karpathy, KarpathyImage, Split, json, numbered};
use crate::files::{self, LARGEST_TEXT, Manifest, excerpt, file_name};
use crate::{Error, Result};

/// Folders in which people have the pictures.
const FOLDERS: [&str; 8] = [
    "images",
    "Images",
    "Flicker8k_Dataset",
    "Flickr8k_Dataset",
    "flickr30k_images/flickr30k_images",
    "flickr30k_images",
    "flickr30k-images",
    "Flickr30k",
];

/// The captions of all images by file name, in the order of the files.
#[derive(Default)]
struct Captions {
    names: Vec<String>,
    of: HashMap<String, Told>,
}

/// What a file tells of an image.
#[derive(Default)]
struct Told {
    captions: Vec<String>,
    /// The split, if the file itself is one.
    split: Option<Split>,
    folder: Option<String>,
}

impl Captions {
    fn add(&mut self, place: &str, name: &str, caption: &str) -> Result<&mut Told> {
        if name.is_empty() {
            return Err(Error::invalid(place, "the name of an image", "none"));
        }
        files::check_below(place, name)?;
        if caption.trim().is_empty() {
            return Err(Error::invalid(place, "a caption", "an empty one"));
        }
        if !self.of.contains_key(name) {
            self.names.push(name.to_owned());
        }
        let told = self.of.entry(name.to_owned()).or_default();
        told.captions.push(caption.to_owned());
        Ok(told)
    }
}

/// How a file writes captions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Token,
    Comma,
    Bars,
    Coco,
}

/// The files of a folder that hold captions.
fn caption_files(dir: &Path) -> Result<Vec<(PathBuf, Form)>> {
    let mut found = vec![];
    let annotations = dir.join("annotations");
    let inside = if annotations.is_dir() { files::entries(&annotations)? } else { vec![] };
    for path in files::entries(dir)?.into_iter().chain(inside) {
        let name = file_name(&path.to_string_lossy()).to_lowercase();
        let form = match name.as_str() {
            _ if name.contains("lemma") => continue, // Flickr8k also comes with lemmas
            _ if name.ends_with(".token") || name.ends_with("token.txt") => Form::Token,
            "captions.txt" | "captions.csv" => Form::Comma,
            "results.csv" => Form::Bars,
            _ if name.starts_with("captions_") && name.ends_with(".json") => Form::Coco,
            _ => continue,
        };
        found.push((path, form));
    }
    Ok(found)
}

/// Whether a folder has captions in one of these files.
pub(crate) fn are_in(dir: &Path) -> bool {
    caption_files(dir).is_ok_and(|files| !files.is_empty())
}

/// Captions and splits of a folder; `None` if it has none of these files.
///
/// # Errors
/// If a file is malformed, a split has no list, a list names an image without captions or twice, or an image has fewer captions than
/// `rule` needs.
pub(crate) fn read(
    dir: &Path,
    rule: CaptionRule,
    manifest: &mut Manifest,
) -> Result<Option<Karpathy>> {
    let mut captions = Captions::default();
    let files = caption_files(dir)?;
    let Some((first, form)) = files.first() else { return Ok(None) };
    if let Some((other, _)) = files.iter().find(|(_, other)| other != form) {
        let got = format!("{} and {}", first.display(), other.display());
        return Err(Error::invalid(dir.display(), "captions in one form", got));
    }
    for (path, form) in &files {
        let bytes = files::read(path, LARGEST_TEXT)?;
        manifest.add(dir, path, &bytes);
        match form {
            Form::Token => token(&mut captions, path, &bytes),
            Form::Comma => comma(&mut captions, path, &bytes),
            Form::Bars => bars(&mut captions, path, &bytes),
            Form::Coco => coco(&mut captions, path, &bytes),
        }?;
    }
    let splits = splits(dir, first, &captions, manifest)?;
    let folder = FOLDERS.into_iter().find(|folder| dir.join(folder).is_dir());
    let (mut images, mut dropped) = (vec![], Dropped::default());
    for (split, name) in splits {
        let told = &captions.of[&name];
        let place = format!("{}, image {}", first.display(), excerpt(&name));
        let keep = rule.keep(&place, told.captions.len(), &mut dropped)?;
        images.push(KarpathyImage {
            captions: told.captions[..keep].to_vec(),
            filepath: told.folder.clone().or(folder.map(str::to_owned)),
            filename: name,
            split,
            imgid: None,
            cocoid: None,
        });
    }
    Ok(Some(Karpathy { dataset: String::new(), images, dropped }))
}

/// The images of each split: by lists, or by the files of captions themselves.
fn splits(
    dir: &Path,
    captions_file: &Path,
    captions: &Captions,
    manifest: &mut Manifest,
) -> Result<Vec<(Split, String)>> {
    let lists = lists(dir)?;
    let mut all: Vec<(Split, String)> = vec![];
    if lists.iter().all(Option::is_none) {
        let own = captions.names.iter().filter_map(|n| Some((captions.of[n].split?, n.clone())));
        all.extend(own);
    }
    let by_stem: HashMap<&str, &String> =
        captions.names.iter().map(|name| (stem(name), name)).collect();
    let mut seen = HashMap::new();
    for (split, path) in Split::ALL.into_iter().zip(&lists) {
        let Some(path) = path else { continue };
        let bytes = files::read(path, LARGEST_TEXT)?;
        manifest.add(dir, path, &bytes);
        let place = path.display().to_string();
        let names =
            files::lines(&place, "the file name of an image", &files::utf8(&place, &bytes)?)?;
        for (at, line) in names.iter().enumerate() {
            let place = format!("{place} line {}", at + 1);
            let line = line.trim();
            let known = captions.of.get_key_value(line).map(|(name, _)| name);
            let Some(name) = known.or_else(|| by_stem.get(stem(line)).copied()) else {
                let expected = format!("an image of {}", captions_file.display());
                return Err(Error::invalid(place, expected, excerpt(line)));
            };
            if let Some(first) = seen.insert(name, place.clone()) {
                let got = format!("{} again, first in {first}", excerpt(name));
                return Err(Error::invalid(place, "each image once", got));
            }
            all.push((split, name.clone()));
        }
    }
    match Split::ALL.into_iter().find(|split| !all.iter().any(|(of, _)| of == split)) {
        None => Ok(all),
        Some(split) => {
            let expected = format!(
                "a list of the {split} split beside {}: {split}.txt or Flickr_8k.{}Images.txt, a file name on each line",
                file_name(&captions_file.to_string_lossy()),
                if split == Split::Val { "dev".to_owned() } else { split.to_string() },
            );
            Err(Error::invalid(dir.display(), expected, "none"))
        }
    }
}

/// The list of each split.
fn lists(dir: &Path) -> Result<[Option<PathBuf>; 3]> {
    let mut lists = [const { None }; 3];
    for path in files::entries(dir)? {
        let name = file_name(&path.to_string_lossy()).to_lowercase();
        let other = ["_caps.txt", "_ids.txt", "_of.txt", "token.txt"];
        if !name.ends_with(".txt") || other.iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let Some(split) = split_of(&name) else { continue };
        if let Some(first) = lists[split as usize].replace(path.clone()) {
            let got = format!("{} and {}", first.display(), path.display());
            return Err(Error::invalid(
                dir.display(),
                format!("one list of the {split} split"),
                got,
            ));
        }
    }
    Ok(lists)
}

fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// `name.jpg#0<TAB>caption`.
fn token(captions: &mut Captions, path: &Path, bytes: &[u8]) -> Result<()> {
    let place = path.display().to_string();
    let text = files::utf8(&place, bytes)?;
    for (at, line) in files::lines(&place, "a caption", &text)?.iter().enumerate() {
        let place = format!("{place} line {}", at + 1);
        let parts =
            line.split_once('\t').and_then(|(id, caption)| Some((numbered(id)?.0, caption)));
        let Some((name, caption)) = parts else {
            return Err(Error::invalid(place, "name#number<TAB>caption", excerpt(line)));
        };
        captions.add(&place, name, caption)?;
    }
    Ok(())
}

/// `image,caption`.
fn comma(captions: &mut Captions, path: &Path, bytes: &[u8]) -> Result<()> {
    let head = ["image", "caption"];
    rows(path, bytes, b',', &head, |place, fields| {
        let [name, caption] = fields else {
            let expected = "image,caption (a caption with a comma in quotes)";
            return Err(Error::invalid(place, expected, format!("{} fields", fields.len())));
        };
        captions.add(place, name, caption).map(drop)
    })
}

/// `image_name| comment_number| comment`. One line of the file that goes around has no bar behind its number.
fn bars(captions: &mut Captions, path: &Path, bytes: &[u8]) -> Result<()> {
    let head = ["image_name", "comment_number", "comment"];
    rows(path, bytes, b'|', &head, |place, fields| {
        let number = |text: &str| text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match fields {
            [name, _, caption] => captions.add(place, name, caption).map(drop),
            [name, both] if number(both) < both.len() => {
                let caption = both[both.len() - number(both)..].trim();
                captions.add(place, name, caption).map(drop)
            }
            _ => {
                let expected = "image_name| comment_number| comment";
                Err(Error::invalid(place, expected, format!("{} fields", fields.len())))
            }
        }
    })
}

/// The rows of a table with this head; each row with its line.
fn rows(
    path: &Path,
    bytes: &[u8],
    delimiter: u8,
    head: &[&str],
    mut show: impl FnMut(&str, &[&str]) -> Result<()>,
) -> Result<()> {
    let place = path.display().to_string();
    let text = files::utf8(&place, bytes)?;
    let mut table = csv::ReaderBuilder::new();
    let quoting = delimiter == b','; // a caption between bars may begin with a quote
    let table = table.delimiter(delimiter).quoting(quoting).trim(csv::Trim::All).flexible(true);
    let mut table = table.from_reader(text.as_bytes());
    let broken = |e: csv::Error| Error::invalid(&place, "a table", e);
    let found = table.headers().map_err(broken)?;
    if found.iter().ne(head.iter().copied()) {
        let expected = head.join(&char::from(delimiter).to_string());
        let got = excerpt(text.lines().next().unwrap_or_default());
        return Err(Error::invalid(format!("{place} line 1"), expected, got));
    }
    for row in table.records() {
        let row = row.map_err(broken)?;
        let line = row.position().map_or(0, csv::Position::line);
        let fields: Vec<&str> = row.iter().collect();
        show(&format!("{place} line {line}"), &fields)?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct CocoFile {
    images: Vec<CocoImage>,
    annotations: Vec<CocoCaption>,
}

#[derive(Deserialize)]
struct CocoImage {
    id: i64,
    file_name: String,
}

#[derive(Deserialize)]
struct CocoCaption {
    image_id: i64,
    caption: String,
}

/// COCO's annotations. Pictures are in a folder named like the file: `captions_val2014.json`, `val2014`.
fn coco(captions: &mut Captions, path: &Path, bytes: &[u8]) -> Result<()> {
    let place = json::place(path);
    let what = "COCO's captions (images[].file_name, annotations[].caption)";
    let CocoFile { images, annotations } = json::parse(&place, what, bytes)?;
    let names: HashMap<i64, String> =
        images.into_iter().map(|image| (image.id, image.file_name)).collect();
    let name = file_name(&place);
    let folder = name.trim_start_matches("captions_").trim_end_matches(".json");
    for (at, CocoCaption { image_id, caption }) in annotations.into_iter().enumerate() {
        let place = format!("{place} annotations[{at}]");
        let Some(name) = names.get(&image_id) else {
            return Err(Error::invalid(place, "an image_id of its images", image_id));
        };
        let told = captions.add(&place, name, &caption)?;
        told.split = split_of(folder);
        told.folder = Some(folder.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;

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

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};
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

/// The longest head of a table, in bytes; a longer first line is none.
const LONGEST_HEAD: u64 = 256;

/// The captions of all images by file name, in the order of the files.
#[derive(Default)]
struct CaptionsByFile {
    names: Vec<String>,
    of: HashMap<String, Told>,
}

/// What a file tells of an image.
#[derive(Default)]
struct Told {
    captions: Vec<Caption>,
    /// The split, if the file itself is one.
    split: Option<Split>,
    folder: Option<String>,
}

/// A caption of a file.
struct Caption {
    /// Among the captions of the image, if the file numbers them.
    number: Option<usize>,
    /// Of the file.
    line: usize,
    text: String,
}

impl CaptionsByFile {
    fn add(&mut self, place: &str, name: &str, caption: Caption) -> Result<&mut Told> {
        Error::unless(!name.is_empty(), place, "the name of an image", "none")?;
        files::check_below(place, name)?;
        Error::unless(!caption.text.trim().is_empty(), place, "a caption", "an empty one")?;
        if !self.of.contains_key(name) {
            self.names.push(name.to_owned());
        }
        let told = self.of.entry(name.to_owned()).or_default();
        told.captions.push(caption);
        Ok(told)
    }

    /// Sorts the captions of each image by their numbers; without numbers they stay as they are.
    fn sort(&mut self) {
        self.of.values_mut().for_each(|told| told.captions.sort_by_key(|caption| caption.number));
    }
}

/// How a file writes captions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CaptionFormat {
    Token,
    /// With its head.
    Table(&'static str),
    Coco,
}

/// The heads of tables.
const COMMAS: &str = "image,caption";
const BARS: &str = "image_name| comment_number| comment";

/// The files of a folder that hold captions.
fn caption_files(dir: &Path) -> Result<Vec<(PathBuf, CaptionFormat)>> {
    let mut found = vec![];
    let annotations = dir.join("annotations");
    let inside = if annotations.is_dir() { files::entries(&annotations)? } else { vec![] };
    for path in files::entries(dir)?.into_iter().chain(inside) {
        let name = file_name(&path.to_string_lossy()).to_lowercase();
        let form = match name.as_str() {
            _ if name.contains("lemma") => continue, // Flickr8k also comes with lemmas
            _ if name.ends_with(".token") || name.ends_with("token.txt") => CaptionFormat::Token,
            "captions.txt" | "captions.csv" => CaptionFormat::Table(COMMAS),
            "results.csv" => CaptionFormat::Table(BARS),
            _ if name.starts_with("captions_") && name.ends_with(".json") => CaptionFormat::Coco,
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
    let mut captions = CaptionsByFile::default();
    let files = caption_files(dir)?;
    let Some((first, form)) = files.first() else { return Ok(None) };
    if let Some((other, _)) = files.iter().find(|(_, other)| other != form) {
        let got = format!("{} and {}", first.display(), other.display());
        return Err(Error::invalid(dir.display(), "captions in one form", got));
    }
    for (path, form) in &files {
        let bytes = manifest.read(dir, path)?;
        match form {
            CaptionFormat::Token => token(&mut captions, path, &bytes),
            CaptionFormat::Table(head) => table(path, &bytes, head, |place, name, caption| {
                captions.add(place, name, caption).map(drop)
            }),
            CaptionFormat::Coco => coco(&mut captions, path, &bytes),
        }?;
    }
    captions.sort();
    let splits = splits(dir, first, &captions, manifest)?;
    let folder = FOLDERS.into_iter().find(|folder| dir.join(folder).is_dir());
    let (mut images, mut dropped) = (vec![], Dropped::default());
    for (split, name) in splits {
        let told = &captions.of[&name];
        let place = format!("{}, image {}", first.display(), excerpt(&name));
        let keep = rule.keep(&place, told.captions.len(), &mut dropped)?;
        images.push(KarpathyImage {
            captions: told.captions[..keep].iter().map(|caption| caption.text.clone()).collect(),
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
    captions: &CaptionsByFile,
    manifest: &mut Manifest,
) -> Result<Vec<(Split, String)>> {
    let lists = lists(dir)?;
    let mut all: Vec<(Split, String)> = vec![];
    if lists.iter().all(Option::is_none) {
        let own = captions.names.iter().filter_map(|n| Some((captions.of[n].split?, n.clone())));
        all.extend(own);
    }
    let mut by_stem: HashMap<&str, Option<&String>> = HashMap::new(); // `None` if several have it
    for name in &captions.names {
        by_stem.entry(stem(name)).and_modify(|one| *one = None).or_insert(Some(name));
    }
    let with_stem = |text: &str| by_stem.get(text).copied().flatten();
    let mut seen = HashMap::new();
    for (split, path) in Split::ALL.into_iter().zip(&lists) {
        let Some(path) = path else { continue };
        let names = manifest.read_lines(dir, path, "the file name of an image")?;
        for (at, line) in names.iter().enumerate() {
            let place = format!("{} line {}", path.display(), at + 1);
            let line = line.trim();
            let known = captions.of.get_key_value(line).map(|(name, _)| name);
            // Without its ending a name may still have a dot.
            let named = known.or_else(|| with_stem(line)).or_else(|| with_stem(stem(line)));
            let Some(name) = named else {
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
    let lacks = |split: &Split| !all.iter().any(|(of, _)| of == split);
    let Some(split) = Split::ALL.into_iter().find(lacks) else { return Ok(all) };
    let expected = format!(
        "a list of the {split} split beside {}: {split}.txt or Flickr_8k.{}Images.txt, a file name on each line",
        file_name(&captions_file.to_string_lossy()),
        if split == Split::Val { "dev".to_owned() } else { split.to_string() },
    );
    Err(Error::invalid(dir.display(), expected, "none"))
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
            let expected = format!("one list of the {split} split");
            return Err(Error::invalid(dir.display(), expected, got));
        }
    }
    Ok(lists)
}

fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// `name.jpg#0<TAB>caption`.
fn token(captions: &mut CaptionsByFile, path: &Path, bytes: &[u8]) -> Result<()> {
    let place = path.display().to_string();
    let mut seen = HashSet::new();
    for (at, line) in files::lines(&place, "a caption", bytes)?.iter().enumerate() {
        let place = format!("{place} line {}", at + 1);
        let parts = line.split_once('\t').and_then(|(id, caption)| Some((numbered(id)?, caption)));
        let Some(((name, number), caption)) = parts else {
            return Err(Error::invalid(place, "name#number<TAB>caption", excerpt(line)));
        };
        once(&mut seen, &place, (name, number))?;
        let caption = Caption { number: Some(number), line: at + 1, text: caption.to_owned() };
        captions.add(&place, name, caption)?;
    }
    Ok(())
}

/// Refuses a second caption of the same number.
fn once(
    seen: &mut HashSet<(String, usize)>,
    place: &str,
    (name, number): (&str, usize),
) -> Result<()> {
    let new = seen.insert((name.to_owned(), number));
    let got = format_args!("number {number} of {} again", excerpt(name));
    Error::unless(new, place, "each caption once", got)
}

/// The image's name and the caption of each row of a table as it goes around, with its line: `image,caption` of Flickr8k, and
/// `image_name| comment_number| comment` of Flickr30K. `None` if the file does not begin with one of these heads. Images are in the order of
/// the file, and the captions of an image in the order of their numbers.
///
/// # Errors
/// If the file cannot be read, or a row has no name, no caption or other fields than the head.
pub fn caption_table(path: &Path) -> Result<Option<Vec<(usize, String, String)>>> {
    let mut head = String::new();
    let first = BufReader::new(files::open(path)?).take(LONGEST_HEAD).read_line(&mut head);
    let bare = |text: &str| text.replace([' ', '\u{feff}', '\r', '\n'], "");
    let is_known = |known: &&str| first.is_ok() && bare(&head) == bare(known);
    let Some(known) = [COMMAS, BARS].into_iter().find(is_known) else { return Ok(None) };
    let (mut names, mut captions) = (vec![], CaptionsByFile::default());
    table(path, &files::read(path, LARGEST_TEXT)?, known, |place, name, caption| {
        names.push(name.to_owned());
        captions.add(place, name, caption).map(drop)
    })?;
    captions.sort();
    let of = captions.of.into_iter().map(|(name, told)| (name, told.captions.into_iter()));
    let mut of: HashMap<_, _> = of.collect();
    let next = |name: String| {
        let Caption { line, text, .. } = of.get_mut(&name)?.next()?;
        Some((line, name, text))
    };
    Ok(Some(names.into_iter().filter_map(next).collect()))
}

/// Shows each row of a table: its place, name and caption. One line of Flickr30K's that goes around has no bar behind its number.
/// Lines of a caption in quotes become one line, because captions are written one a line.
fn table(
    path: &Path,
    bytes: &[u8],
    head: &str,
    mut show: impl FnMut(&str, &str, Caption) -> Result<()>,
) -> Result<()> {
    let place = path.display().to_string();
    let text = files::utf8(&place, bytes)?;
    let mut reader = csv::ReaderBuilder::new();
    let bars = head == BARS;
    let delimiter = if bars { '|' } else { ',' };
    let reader = reader.delimiter(delimiter as u8).quoting(!bars); // a caption between bars may begin with a quote
    let mut reader = reader.trim(csv::Trim::All).flexible(true).from_reader(text.as_bytes());
    let broken = |e: csv::Error| Error::invalid(&place, "a table", e);
    let found = reader.headers().map_err(broken)?;
    let same = found.iter().eq(head.split(delimiter).map(str::trim));
    let got = excerpt(text.lines().next().unwrap_or_default());
    Error::unless(same, format_args!("{place} line 1"), head, got)?;
    let mut seen = HashSet::new();
    for row in reader.records() {
        let row = row.map_err(broken)?;
        let line = row.position().map_or(0, csv::Position::line) as usize;
        let place = format!("{place} line {line}");
        let fields: Vec<&str> = row.iter().collect();
        let words = |text: &str| text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let mut number = None;
        if let (true, [name, numbered, ..]) = (bars, &fields[..]) {
            number = numbered[..numbered.len() - words(numbered)].parse().ok();
            number.map_or(Ok(()), |number| once(&mut seen, &place, (name, number)))?;
        }
        let mut show = |name: &str, text: &str| {
            let lines: Vec<_> = text.lines().map(str::trim).collect();
            show(&place, name, Caption { number, line, text: lines.join(" ") })
        };
        match (bars, &fields[..]) {
            (false, [name, caption]) | (true, [name, _, caption]) => show(name, caption)?,
            (true, [name, both]) if words(both) < both.len() => {
                show(name, both[both.len() - words(both)..].trim())?;
            }
            _ => {
                let hint = if bars { "" } else { " (a caption with a comma in quotes)" };
                let expected = format!("{head}{hint}");
                return Err(Error::invalid(place, expected, format!("{} fields", fields.len())));
            }
        }
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
fn coco(captions: &mut CaptionsByFile, path: &Path, bytes: &[u8]) -> Result<()> {
    let place = path.display().to_string();
    let what = "COCO's captions (images[].file_name, annotations[].caption)";
    let CocoFile { images, annotations } = json::parse(&place, what, bytes)?;
    let mut names: HashMap<i64, String> = HashMap::new();
    for (at, CocoImage { id, file_name }) in images.into_iter().enumerate() {
        let first = names.insert(id, file_name).is_none();
        Error::unless(first, format_args!("{place} images[{at}]"), "each id once", id)?;
    }
    let name = file_name(&place);
    let folder = name.trim_start_matches("captions_").trim_end_matches(".json");
    for (at, CocoCaption { image_id, caption }) in annotations.into_iter().enumerate() {
        let place = format!("{place} annotations[{at}]");
        let Some(name) = names.get(&image_id) else {
            return Err(Error::invalid(place, "an image_id of its images", image_id));
        };
        let caption = Caption { number: None, line: 0, text: caption };
        let told = captions.add(&place, name, caption)?;
        if let Some(other) = told.folder.as_ref().filter(|other| *other != folder) {
            let got = format!("{} also in captions_{other}.json", excerpt(name));
            return Err(Error::invalid(place, "each image in one file", got));
        }
        told.split = split_of(folder);
        told.folder = Some(folder.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! The images and captions of a `*_precomp` folder against Karpathy's JSON beside it.

use std::collections::HashMap;
use std::path::Path;

use super::files::{self, excerpt};
use super::precomp_split::{PrecompSplit, SplitFiles};
use super::{Karpathy, KarpathyImage, Split};
use crate::text::caption_key;
use crate::{Error, Result};

/// Finds the JSON's entry of an id: by file name or, as in the files of the SCAN program, by number.
pub(crate) struct Names<'a> {
    json: &'a Karpathy,
    by_filename: HashMap<&'a str, &'a KarpathyImage>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(json: &'a Karpathy) -> Self {
        let by_filename = json.images.iter().map(|i| (i.filename.as_str(), i)).collect();
        Self { json, by_filename }
    }

    /// The file name of each image, after ids, splits and captions have been found to agree with the JSON.
    pub(crate) fn resolve(
        &self,
        folder: &Path,
        part: &PrecompSplit,
        split: Split,
        extra: bool,
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>> {
        let paths = SplitFiles::of(folder, &part.name);
        let caps = paths.caps.display();
        let Some(ids) = &part.ids else {
            return self.resolve_by_order(&caps.to_string(), part, split, notes);
        };
        let ids_place = paths.ids.display().to_string();
        let mut names = Vec::with_capacity(ids.len());
        let (mut unknown, find) = (0, self.finder(ids));
        for (i, id) in ids.iter().enumerate() {
            let place = format!("{ids_place}, image {i}");
            match find.get(id) {
                Some(image) if image.split != split => {
                    let expected = format!("an image of the {split} split");
                    let got = format!("{} of {}", excerpt(id), image.split);
                    return Err(Error::invalid(place, expected, got));
                }
                Some(image) => {
                    check_captions(&caps.to_string(), part, i, image)?;
                    names.push(image.filename.clone());
                }
                None if extra => {
                    unknown += 1;
                    names.push(files::file_name(id).to_string());
                }
                None => {
                    return Err(Error::invalid(place, "an image of the JSON", excerpt(id)));
                }
            }
        }
        if unknown > 0 {
            notes.push(format!(
                "{}: {unknown} images are not in the JSON, captions unchecked",
                part.name
            ));
        }
        let listed = self.json.images_of(split).count();
        if !extra && listed != names.len() {
            notes.push(format!(
                "{}: {} of the JSON's {listed} {split} images",
                part.name,
                names.len()
            ));
        }
        Ok(names)
    }

    /// Without ids the JSON's order decides, if the counts agree.
    fn resolve_by_order(
        &self,
        caps: &str,
        part: &PrecompSplit,
        split: Split,
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>> {
        let images: Vec<_> = self.json.images_of(split).collect();
        if images.len() != part.images() {
            let (name, listed) = (&part.name, images.len());
            notes.push(format!(
                "{name}: no ids, and the JSON lists {listed} {split} images: unchecked"
            ));
            return Ok((0..part.images()).map(|i| format!("{name}/{i}")).collect());
        }
        for (i, image) in images.iter().enumerate() {
            check_captions(caps, part, i, image)?;
        }
        Ok(images.into_iter().map(|image| image.filename.clone()).collect())
    }

    fn finder(&self, ids: &[String]) -> HashMap<String, &'a KarpathyImage> {
        let all: [fn(&KarpathyImage) -> Option<String>; 2] =
            [|i| i.cocoid.map(|n| n.to_string()), |i| i.imgid.map(|n| n.to_string())];
        let numbered = ids.iter().all(|id| id.parse::<i64>().is_ok());
        for number in all {
            let by_number: HashMap<_, _> =
                self.json.images.iter().filter_map(|i| Some((number(i)?, i))).collect();
            if numbered && ids.iter().all(|id| by_number.contains_key(id)) {
                return by_number;
            }
        }
        let name = |id: &String| self.by_filename.get(files::file_name(id)).copied();
        ids.iter().filter_map(|id| Some((id.clone(), name(id)?))).collect()
    }

    /// When the counts of a split do not fit, the first caption that stands elsewhere says which line is missing.
    pub(crate) fn explain(&self, error: Error, folder: &Path, name: &str, split: Split) -> Error {
        let Error::Invalid { place, expected, got } = error else { return error };
        let caps = SplitFiles::of(folder, name).caps;
        let first = (place == caps.display().to_string())
            .then(|| self.first_misplaced(&caps, split))
            .flatten();
        match first {
            Some(line) => Error::Invalid { place, expected, got: format!("{got}; {line}") },
            None => Error::Invalid { place, expected, got },
        }
    }

    fn first_misplaced(&self, caps: &Path, split: Split) -> Option<String> {
        let place = caps.display().to_string();
        let text = files::utf8(&place, files::read(caps, files::LARGEST_TEXT).ok()?).ok()?;
        let lines = files::lines(&place, "a caption", &text).ok()?;
        let listed: Vec<_> = self.json.images_of(split).flat_map(|i| &i.captions).collect();
        let differ = |(line, caption): (&String, &&String)| {
            line != *caption && caption_key(line) != caption_key(caption)
        };
        let at = lines.iter().zip(&listed).position(differ);
        let at = at.unwrap_or(lines.len().min(listed.len()));
        let caption = listed.get(at)?;
        Some(format!("line {} should be {}", at + 1, excerpt(caption)))
    }
}

/// Compares words: the files may differ in case, punctuation and spacing.
fn check_captions(caps: &str, part: &PrecompSplit, i: usize, image: &KarpathyImage) -> Result<()> {
    for (j, caption) in image.captions.iter().enumerate() {
        let line = i * part.captions_per_image + j;
        let got = &part.captions[line];
        if got != caption && caption_key(got) != caption_key(caption) {
            let place = format!("{caps} line {}", line + 1);
            let expected = format!("{} (caption {j} of {})", excerpt(caption), image.filename);
            return Err(Error::invalid(place, expected, excerpt(got)));
        }
    }
    Ok(())
}

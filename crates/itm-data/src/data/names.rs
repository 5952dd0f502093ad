//! Compares the images and captions of a `*_precomp` folder with Karpathy's JSON beside it.

use std::collections::HashMap;
use std::path::Path;

use super::fne_annotations::split_of;
use super::precomp_split::{PrecompSplit, SplitFiles};
use super::{Karpathy, KarpathyImage, Split};
use crate::files::{self, excerpt};
use crate::text::caption_key;
use crate::{Error, Result};

/// The start of the file names of the training images that have features and captions, but no picture. They follow the images of `train`.
pub(crate) const EXTRA: &str = "train_extra";

/// Finds the JSON entry of an id: by file name, or by number as in the files of the SCAN program.
pub(crate) struct Names<'a> {
    json: &'a Karpathy,
    by_filename: HashMap<&'a str, &'a KarpathyImage>,
}

/// What a comparison with the JSON found.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// The file name of each image.
    pub(crate) names: Vec<String>,
    pub(crate) mismatches: Vec<Error>,
    pub(crate) notes: Vec<String>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(json: &'a Karpathy) -> Self {
        let by_filename = json.images.iter().map(|i| (i.filename.as_str(), i)).collect();
        Self { json, by_filename }
    }

    /// The file name of each image, if ids, splits and captions agree with the JSON.
    ///
    /// # Errors
    /// The first mismatch of [`Names::compare`].
    pub(crate) fn resolve(
        &self,
        part: &PrecompSplit,
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>> {
        let found = self.compare(part);
        notes.extend(found.notes);
        found.mismatches.into_iter().next().map_or(Ok(found.names), Err)
    }

    /// Compares ids, splits and captions with the JSON.
    pub(crate) fn compare(&self, part: &PrecompSplit) -> Comparison {
        let (split, extra) = (split_of_files(&part.name), part.name == EXTRA);
        let ids = match &part.ids {
            Some(ids) => ids,
            None if extra => return unchecked(part, "not in the JSON"),
            None => return self.compare_by_order(part, split),
        };
        let place = part.files.ids.display();
        let (mut found, mut unknown, find) = (Comparison::default(), 0, self.finder(ids));
        for (i, id) in ids.iter().enumerate() {
            let wrong = |expected: &str, got: String| {
                Error::invalid(format!("{place}, image {i}"), expected, got)
            };
            let image = find.get(id);
            match image {
                Some(image) if image.split != split => {
                    let got = format!("{} of {}", excerpt(id), image.split);
                    found.mismatches.push(wrong(&format!("an image of the {split} split"), got));
                }
                Some(image) => found.mismatches.extend(wrong_captions(part, i, image)),
                None if extra => unknown += 1,
                None => found.mismatches.push(wrong("an image of the JSON", excerpt(id))),
            }
            let name = image.map_or(files::file_name(id), |image| &image.filename);
            found.names.push(name.to_string());
        }
        if unknown > 0 {
            let note = format!("{unknown} images are not in the JSON, their captions unchecked");
            found.notes.push(format!("{}: {note}", part.name));
        }
        let (listed, read) = (self.json.images_of(split).count(), ids.len());
        if !extra && listed != read {
            let note = format!("{}: {read} of the JSON's {listed} {split} images", part.name);
            found.notes.push(note);
        }
        found
    }

    /// Without ids, the order of the JSON decides, if the counts agree.
    fn compare_by_order(&self, part: &PrecompSplit, split: Split) -> Comparison {
        let images: Vec<_> = self.json.images_of(split).collect();
        if images.len() != part.images() {
            return unchecked(part, &format!("the JSON lists {} {split} images", images.len()));
        }
        let wrong = |(i, image): (usize, &&_)| wrong_captions(part, i, image);
        let mismatches = images.iter().enumerate().flat_map(wrong).collect();
        let names = images.into_iter().map(|image| image.filename.clone()).collect();
        Comparison { names, mismatches, notes: Vec::new() }
    }

    fn finder(&self, ids: &[String]) -> HashMap<String, &'a KarpathyImage> {
        let all: [fn(&KarpathyImage) -> Option<String>; 2] =
            [|i| i.cocoid.clone(), |i| i.imgid.clone()];
        for id_of in all {
            let by_id: HashMap<_, _> =
                self.json.images.iter().filter_map(|i| Some((id_of(i)?, i))).collect();
            if ids.iter().all(|id| by_id.contains_key(id)) {
                return by_id;
            }
        }
        let name = |id: &String| {
            let whole = self.by_filename.get(id.replace('\\', "/").as_str());
            whole.or_else(|| self.by_filename.get(files::file_name(id))).copied()
        };
        ids.iter().filter_map(|id| Some((id.clone(), name(id)?))).collect()
    }

    /// If the counts of a split do not fit, adds the first misplaced caption to the error: it shows which line is missing.
    pub(crate) fn explain(names: Option<&Self>, error: Error, folder: &Path, name: &str) -> Error {
        let Error::Invalid { place, expected, got } = error else { return error };
        let caps = SplitFiles::of(folder, name).caps;
        let names = names.filter(|_| place == caps.display().to_string());
        let line = names.and_then(|names| names.first_misplaced(&caps, split_of_files(name)));
        let more = line.map_or(String::new(), |line| format!("; {line}"));
        Error::Invalid { place, expected, got: got + &more }
    }

    fn first_misplaced(&self, caps: &Path, split: Split) -> Option<String> {
        let place = caps.display().to_string();
        let bytes = files::read(caps, files::LARGEST_TEXT).ok()?;
        let lines = files::empty_or_lines(&place, "a caption", &bytes).ok()?;
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

/// The split of the files of a name: `train_extra` belongs to `train`, `dev` to `val`, `testall` to `test`.
fn split_of_files(name: &str) -> Split {
    split_of(name).expect("every file name begins with a split")
}

/// The comparison of images that have no ids and cannot be found by their order either.
fn unchecked(part: &PrecompSplit, why: &str) -> Comparison {
    let notes = vec![format!("{}: no ids, and {why}: unchecked", part.name)];
    Comparison { names: part.numbered(), notes, ..Default::default() }
}

/// The captions of an image whose words differ from the JSON; case, punctuation and spacing may differ. The JSON may have more
/// captions than the file, because files of features stop at five.
fn wrong_captions(part: &PrecompSplit, i: usize, image: &KarpathyImage) -> Vec<Error> {
    let caps = part.files.caps.display();
    let texts = part.pairs.texts_of(i);
    if let Some(text) = texts.get(image.captions.len()) {
        let place = format!("{caps} line {}", text + 1);
        let expected = format!("{} captions of {}", image.captions.len(), image.filename);
        return vec![Error::invalid(place, expected, texts.len())];
    }
    let own = texts.iter().map(|&text| (text, &part.captions[text]));
    let pairs = image.captions.iter().zip(own).enumerate();
    let wrong =
        pairs.filter(|(_, (want, (_, got)))| want != got && caption_key(want) != caption_key(got));
    let error = |(j, (want, (text, got))): (usize, (&String, (usize, &String)))| {
        let place = format!("{caps} line {}", text + 1);
        let expected = format!("{} (caption {j} of {})", excerpt(want), image.filename);
        Error::invalid(place, expected, excerpt(got))
    };
    wrong.map(error).collect()
}

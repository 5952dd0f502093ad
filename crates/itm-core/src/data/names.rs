//! Compares the images and captions of a `*_precomp` folder with Karpathy's JSON beside it.

use std::collections::HashMap;
use std::path::Path;

use super::precomp_split::{PrecompSplit, SplitFiles};
use super::{Karpathy, KarpathyImage, Split};
use crate::files::{self, excerpt};
use crate::text::caption_key;
use crate::{Error, Result};

/// Whether `train_extra_*` is used: training images that have features and captions, but no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extra {
    /// They follow the images of `train`.
    Included,
    /// Only `train` is used.
    LeftOut,
}

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
        folder: &Path,
        part: &PrecompSplit,
        split: Split,
        extra: Extra,
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>> {
        let found = self.compare(folder, part, split, extra);
        notes.extend(found.notes);
        match found.mismatches.into_iter().next() {
            None => Ok(found.names),
            Some(mismatch) => Err(mismatch),
        }
    }

    /// Compares ids, splits and captions with the JSON.
    pub(crate) fn compare(
        &self,
        folder: &Path,
        part: &PrecompSplit,
        split: Split,
        extra: Extra,
    ) -> Comparison {
        let paths = SplitFiles::of(folder, &part.name);
        let caps = paths.caps.display().to_string();
        let ids = match (&part.ids, extra) {
            (Some(ids), _) => ids,
            (None, Extra::LeftOut) => return self.compare_by_order(&caps, part, split),
            (None, Extra::Included) => return unchecked(part, "not in the JSON"),
        };
        let ids_place = paths.ids.display();
        let (mut found, mut unknown, find) = (Comparison::default(), 0, self.finder(ids));
        for (i, id) in ids.iter().enumerate() {
            let place = || format!("{ids_place}, image {i}");
            let name = match find.get(id) {
                Some(image) if image.split != split => {
                    let expected = format!("an image of the {split} split");
                    let got = format!("{} of {}", excerpt(id), image.split);
                    found.mismatches.push(Error::invalid(place(), expected, got));
                    &image.filename
                }
                Some(image) => {
                    found.mismatches.extend(wrong_captions(&caps, part, i, image));
                    &image.filename
                }
                None => {
                    match extra {
                        Extra::Included => unknown += 1,
                        Extra::LeftOut => {
                            let expected = "an image of the JSON";
                            found.mismatches.push(Error::invalid(place(), expected, excerpt(id)));
                        }
                    }
                    files::file_name(id)
                }
            };
            found.names.push(name.to_string());
        }
        if unknown > 0 {
            let note = format!("{unknown} images are not in the JSON, their captions unchecked");
            found.notes.push(format!("{}: {note}", part.name));
        }
        let (listed, read) = (self.json.images_of(split).count(), ids.len());
        if extra == Extra::LeftOut && listed != read {
            found
                .notes
                .push(format!("{}: {read} of the JSON's {listed} {split} images", part.name));
        }
        found
    }

    /// Without ids, the order of the JSON decides, if the counts agree.
    fn compare_by_order(&self, caps: &str, part: &PrecompSplit, split: Split) -> Comparison {
        let images: Vec<_> = self.json.images_of(split).collect();
        if images.len() != part.images() {
            return unchecked(part, &format!("the JSON lists {} {split} images", images.len()));
        }
        let wrong = |(i, image): (usize, &&_)| wrong_captions(caps, part, i, image);
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
        let bytes = files::read(caps, files::LARGEST_TEXT).ok()?;
        let text = files::utf8(&place, &bytes).ok()?;
        let lines = files::empty_or_lines(&place, "a caption", text).ok()?;
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

/// The comparison of images that have no ids and cannot be found by their order either.
fn unchecked(part: &PrecompSplit, why: &str) -> Comparison {
    let notes = vec![format!("{}: no ids, and {why}: unchecked", part.name)];
    Comparison { names: part.numbered(), notes, ..Default::default() }
}

/// The captions of an image whose words differ from the JSON; case, punctuation and spacing may differ. The JSON may have more
/// captions than the file, because files of features stop at five.
fn wrong_captions(caps: &str, part: &PrecompSplit, i: usize, image: &KarpathyImage) -> Vec<Error> {
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

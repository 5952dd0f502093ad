//! What a held-out split shares with training.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{Dataset, Split, SplitData};
use crate::text::caption_key;
use crate::{Error, Result};

/// The most shared captions that are listed.
const SHOWN: usize = 5;

/// What validation and test share with training, and with each other.
///
/// An image in two splits is an error when data are loaded. A caption may occur in two splits by chance
/// ("A dog runs through the grass."): such captions are counted and listed for the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leakage {
    /// `val` in training, `test` in training, `test` in `val`.
    pub overlaps: Vec<Overlap>,
}

/// What one split shares with another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The held-out split.
    pub held_out: Split,
    /// The split that must not contain its images.
    pub seen: Split,
    /// Held-out images whose name also occurs in `seen`.
    pub images: Vec<String>,
    /// Held-out images with the features of an image in `seen`, bit for bit, under another name: both names.
    pub twins: Vec<(String, String)>,
    /// Number of held-out captions.
    pub captions: usize,
    /// Held-out captions with the same words, in the same order, as a caption in `seen`.
    pub shared_captions: usize,
    /// The most frequent shared captions.
    pub shared: Vec<SharedCaption>,
}

/// A caption that two splits share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCaption {
    /// Its words.
    pub words: String,
    /// How often it occurs in the held-out split.
    pub held_out: usize,
    /// How often it occurs in the other split.
    pub seen: usize,
}

impl Leakage {
    /// Compares the three splits by image name, by features, and by the words of the captions.
    pub(crate) fn of(data: &Dataset) -> Self {
        let train = SplitIndex::of(&data.train);
        let val = SplitIndex::of(&data.val);
        let overlaps = vec![
            train.overlap(&data.val, Split::Val, Split::Train),
            train.overlap(&data.test, Split::Test, Split::Train),
            val.overlap(&data.test, Split::Test, Split::Val),
        ];
        Self { overlaps }
    }

    /// Returns itself, if no image name is in two splits.
    ///
    /// # Errors
    /// If an image name is in two splits: the error gives the number of such images and the first. Twins are not an error,
    /// because real sets contain some photographs twice.
    pub(crate) fn refuse_images(self, place: impl AsRef<Path>) -> Result<Self> {
        for Overlap { held_out, seen, images, .. } in &self.overlaps {
            let Some(first) = images.first() else { continue };
            let place = format!("{}, {held_out} split", place.as_ref().display());
            let got = format!("{}, first {first}", images.len());
            return Err(Error::invalid(place, format!("no image of the {seen} split"), got));
        }
        Ok(self)
    }
}

impl fmt::Display for Leakage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, o) in self.overlaps.iter().enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            write!(f, "{newline}{} in {}: {} images, ", o.held_out, o.seen, o.images.len())?;
            if let Some((here, there)) = o.twins.first() {
                write!(f, "{} twins (first {here} = {there}), ", o.twins.len())?;
            }
            write!(f, "{} of {} captions", o.shared_captions, o.captions)?;
            for (j, s) in o.shared.iter().enumerate() {
                let before = if j == 0 { ": " } else { ", " };
                write!(f, "{before}\"{}\" ({} / {})", s.words, s.held_out, s.seen)?;
            }
        }
        Ok(())
    }
}

struct SplitIndex<'a> {
    names: HashSet<&'a str>,
    rows: HashMap<[u8; 32], &'a str>,
    captions: HashMap<String, usize>,
}

impl<'a> SplitIndex<'a> {
    fn of(part: &'a SplitData) -> Self {
        let names = part.images.iter().map(String::as_str).collect();
        let rows = part.images.iter().enumerate();
        let rows =
            rows.filter_map(|(i, name)| Some((fingerprint(part, i)?, name.as_str()))).collect();
        let mut captions = HashMap::new();
        part.captions.iter().for_each(|c| *captions.entry(caption_key(c)).or_default() += 1);
        Self { names, rows, captions }
    }

    fn overlap(&self, part: &SplitData, held_out: Split, seen: Split) -> Overlap {
        let (mut images, mut twins) = (Vec::new(), Vec::new());
        for (i, name) in part.images.iter().enumerate() {
            if self.names.contains(name.as_str()) {
                images.push(name.clone());
            } else if let Some(twin) = fingerprint(part, i).and_then(|row| self.rows.get(&row)) {
                twins.push((name.clone(), twin.to_string()));
            }
        }
        let mut times: HashMap<String, usize> = HashMap::new();
        part.captions.iter().for_each(|c| *times.entry(caption_key(c)).or_default() += 1);
        let shared = times.into_iter().filter_map(|(words, held_out)| {
            let seen = *self.captions.get(&words)?;
            Some(SharedCaption { words, held_out, seen })
        });
        let mut shared: Vec<_> = shared.collect();
        let shared_captions = shared.iter().map(|s| s.held_out).sum();
        shared.sort_by(|a, b| {
            (b.held_out + b.seen).cmp(&(a.held_out + a.seen)).then_with(|| a.words.cmp(&b.words))
        });
        shared.truncate(SHOWN);
        let captions = part.captions.len();
        Overlap { held_out, seen, images, twins, captions, shared_captions, shared }
    }
}

/// Equal rows have equal fingerprints; `None` without features.
fn fingerprint(part: &SplitData, row: usize) -> Option<[u8; 32]> {
    let known = part.features.dim > 0;
    known.then(|| Sha256::digest(bytemuck::cast_slice(part.features.row(row))).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pairs;
    use crate::data::Features;

    fn part(images: &[&str], captions: &[&str], first: f32) -> SplitData {
        SplitData {
            features: Features {
                dim: 1,
                values: (0..images.len()).map(|i| first + i as f32).collect(),
            },
            images: images.iter().map(|s| s.to_string()).collect(),
            captions: captions.iter().map(|s| s.to_string()).collect(),
            pairs: Pairs::uniform(images.len(), captions.len() / images.len()),
            ..SplitData::default()
        }
    }

    fn data() -> Dataset {
        Dataset {
            name: "x".into(),
            train: part(&["a", "b"], &["A dog.", "Two dogs", "a  DOG", "a cat"], 0.0),
            val: part(&["c"], &["two cats", "a bird"], 10.0),
            test: part(&["d", "e"], &["a dog !", "Two cats .", "a dog", "a house"], 20.0),
            sha256: String::new(),
        }
    }

    #[test]
    fn shared_captions_are_counted_and_listed() {
        let leakage = Leakage::of(&data()).refuse_images("dir").unwrap();
        let counts: Vec<_> =
            leakage.overlaps.iter().map(|o| (o.shared_captions, o.captions)).collect();
        assert_eq!(counts, [(0, 2), (2, 4), (1, 4)]);
        let want = SharedCaption { words: "a dog".into(), held_out: 2, seen: 2 };
        assert_eq!(leakage.overlaps[1].shared, [want]);
        let text = "val in train: 0 images, 0 of 2 captions\n\
                    test in train: 0 images, 2 of 4 captions: \"a dog\" (2 / 2)\n\
                    test in val: 0 images, 1 of 4 captions: \"two cats\" (1 / 1)";
        assert_eq!(leakage.to_string(), text);
    }

    #[test]
    fn the_most_frequent_are_listed_first() {
        let mut data = data();
        let words = ["a", "b", "c", "d", "e", "f", "g", "g"];
        data.train = part(&["t"], &words, 0.0);
        data.test = part(&["s"], &words, 1.0);
        let overlap = &Leakage::of(&data).overlaps[1];
        let shown: Vec<_> = overlap.shared.iter().map(|s| s.words.as_str()).collect();
        assert_eq!((overlap.shared_captions, shown), (8, vec!["g", "a", "b", "c", "d"]));
    }

    #[test]
    fn an_image_in_two_splits_is_an_error() {
        for (held_out, seen) in [("val", "train"), ("test", "train"), ("test", "val")] {
            let mut data = data();
            let name = if seen == "train" { "b" } else { "c" };
            let into = if held_out == "val" { &mut data.val } else { &mut data.test };
            into.images[0] = name.into();
            let line = Leakage::of(&data).refuse_images("dir").unwrap_err().to_string();
            let want = format!(
                "dir, {held_out} split: expected no image of the {seen} split, got 1, first {name}"
            );
            assert_eq!(line, want);
        }
    }

    #[test]
    fn equal_features_under_another_name_are_stated() {
        let mut data = data();
        data.test.features.values[1] = 1.0; // the value of image b
        let leakage = Leakage::of(&data).refuse_images("dir").unwrap();
        assert_eq!(leakage.overlaps[1].twins, [("e".to_string(), "b".to_string())]);
        assert!(leakage.to_string().contains("test in train: 0 images, 1 twins (first e = b), "));
        data.train.features = Features { dim: 0, values: Vec::new() };
        data.test.features = Features { dim: 0, values: Vec::new() };
        assert_eq!(Leakage::of(&data).overlaps[1].twins, []);
    }
}

//! What a held-out split shares with training.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{Dataset, Split, SplitData};
use crate::text::caption_key;
use crate::{Error, Result};

/// The most shared captions that are listed.
const SHOWN: usize = 5;

/// What validation and test share with training, and test with validation: a line for each. Images are compared by name and by
/// features, bit for bit; captions by their words, in the same order.
///
/// A caption may occur in two splits by chance ("A dog runs through the grass."): such captions are counted, and the most
/// frequent are listed with their number in each split.
///
/// # Errors
/// If an image name is in two splits: the error gives the number of such images and the first. Images with the features of another
/// are not an error, because real sets contain some photographs twice.
pub(crate) fn leakage(data: &Dataset, place: impl AsRef<Path>) -> Result<Vec<String>> {
    let (train, val) = (SplitIndex::of(&data.train), SplitIndex::of(&data.val));
    let compared = [
        (&data.val, Split::Val, &train, Split::Train),
        (&data.test, Split::Test, &train, Split::Train),
        (&data.test, Split::Test, &val, Split::Val),
    ];
    let place = place.as_ref().display();
    let line = |(part, held_out, index, seen): (&SplitData, Split, &SplitIndex, Split)| {
        let shared = index.shared(part).map_err(|images| {
            let place = format!("{place}, {held_out} split");
            Error::invalid(place, format!("no image of the {seen} split"), images)
        });
        shared.map(|shared| format!("{held_out} in {seen}: 0 images, {shared}"))
    };
    compared.into_iter().map(line).collect()
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
        Self { names, rows, captions: by_words(part) }
    }

    /// Twins and captions that a held-out split shares; the images that it shares are the error.
    fn shared(&self, part: &SplitData) -> Result<String, String> {
        let images = part.images.iter().filter(|name| self.names.contains(name.as_str()));
        let images: Vec<_> = images.collect();
        if let Some(first) = images.first() {
            return Err(format!("{}, first {first}", images.len()));
        }
        let twin = |(i, name)| Some((name, *self.rows.get(&fingerprint(part, i)?)?));
        let twins: Vec<(&String, &str)> = part.images.iter().enumerate().filter_map(twin).collect();
        let twins = twins.first().map_or(String::new(), |(here, there)| {
            format!("{} twins (first {here} = {there}), ", twins.len())
        });
        let captions = by_words(part).into_iter();
        let mut shared: Vec<(usize, usize, String)> = captions
            .filter_map(|(words, here)| Some((here, *self.captions.get(&words)?, words)))
            .collect();
        shared.sort_by(|(a, b, words), (c, d, others)| {
            (c + d).cmp(&(a + b)).then_with(|| words.cmp(others))
        });
        let all: usize = shared.iter().map(|(here, ..)| here).sum();
        let shown = shared.iter().take(SHOWN);
        let shown = shown.map(|(here, there, words)| format!("\"{words}\" ({here} / {there})"));
        let shown = shown.collect::<Vec<_>>().join(", ");
        let before = if shown.is_empty() { "" } else { ": " };
        Ok(format!("{twins}{all} of {} captions{before}{shown}", part.captions.len()))
    }
}

/// How often each caption occurs.
fn by_words(part: &SplitData) -> HashMap<String, usize> {
    let mut times = HashMap::new();
    part.captions.iter().for_each(|c| *times.entry(caption_key(c)).or_default() += 1);
    times
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
        let lines = leakage(&data(), "dir").unwrap();
        let want = [
            "val in train: 0 images, 0 of 2 captions",
            "test in train: 0 images, 2 of 4 captions: \"a dog\" (2 / 2)",
            "test in val: 0 images, 1 of 4 captions: \"two cats\" (1 / 1)",
        ];
        assert_eq!(lines, want);
    }

    #[test]
    fn the_most_frequent_are_listed_first() {
        let mut data = data();
        let words = ["a", "b", "c", "d", "e", "f", "g", "g"];
        data.train = part(&["t"], &words, 0.0);
        data.test = part(&["s"], &words, 1.0);
        let shown = [("g", 2), ("a", 1), ("b", 1), ("c", 1), ("d", 1)];
        let shown = shown.map(|(words, n)| format!("\"{words}\" ({n} / {n})")).join(", ");
        let want = format!("test in train: 0 images, 8 of 8 captions: {shown}");
        assert_eq!(leakage(&data, "dir").unwrap()[1], want);
    }

    #[test]
    fn an_image_in_two_splits_is_an_error() {
        for (held_out, seen) in [("val", "train"), ("test", "train"), ("test", "val")] {
            let mut data = data();
            let name = if seen == "train" { "b" } else { "c" };
            let into = if held_out == "val" { &mut data.val } else { &mut data.test };
            into.images[0] = name.into();
            let line = leakage(&data, "dir").unwrap_err().to_string();
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
        let line = &leakage(&data, "dir").unwrap()[1];
        assert!(
            line.starts_with("test in train: 0 images, 1 twins (first e = b), 2 of 4"),
            "{line}"
        );
        data.train.features = Features { dim: 0, values: Vec::new() };
        data.test.features = Features { dim: 0, values: Vec::new() };
        assert!(!leakage(&data, "dir").unwrap()[1].contains("twins"));
    }
}

//! Which published set a folder holds: what its images say, and not what a target or a JSON calls them.

use std::path::Path;

use itm_core::data::Dataset;

use crate::config::{DatasetName, Target};

/// Number of training, validation and test images of the published splits.
fn splits(name: DatasetName) -> &'static [[usize; 3]] {
    match name {
        DatasetName::Scenes => &[],
        DatasetName::Flickr8k => &[[6000, 1000, 1000]],
        DatasetName::Flickr30k => &[[29_000, 1014, 1000]],
        // With and without restval; the test split of 1,000 images or all of it.
        DatasetName::Coco => &[
            [113_287, 5000, 1000],
            [113_287, 5000, 5000],
            [82_783, 5000, 1000],
            [82_783, 5000, 5000],
        ],
    }
}

/// Whether an image has a name of the set: `1000268201_693b08cb0e.jpg`, `1000092795.jpg`, `COCO_val2014_000000391895.jpg`.
fn named(name: DatasetName, image: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some(stem) = image.strip_suffix(".jpg") else {
        return digits(image) && name != DatasetName::Flickr8k;
    };
    match name {
        DatasetName::Scenes => false,
        DatasetName::Flickr8k => stem.split_once('_').is_some_and(|(number, hash)| {
            digits(number) && hash.len() == 10 && hash.bytes().all(|b| b.is_ascii_hexdigit())
        }),
        DatasetName::Flickr30k => digits(stem),
        DatasetName::Coco => ["COCO_train2014_", "COCO_val2014_"].iter().any(|start| {
            stem.strip_prefix(start).is_some_and(|number| number.len() == 12 && digits(number))
        }),
    }
}

/// Whether the data are the published set: the counts of its splits, and its names of images. Bare numbers, as in the files of
/// the SCAN program, are names too, but not the numbers of the rows.
pub(super) fn is_set(name: DatasetName, data: &Dataset, cut_val: bool) -> bool {
    let parts = [&data.train, &data.val, &data.test];
    let counts = parts.map(|part| part.images.len());
    let same = |split: &[usize; 3]| {
        split[0] == counts[0] && split[2] == counts[2] && (cut_val || split[1] == counts[1])
    };
    let rows =
        |images: &[String]| images.iter().enumerate().all(|(row, image)| *image == row.to_string());
    splits(name).iter().any(same)
        && parts.iter().all(|part| part.images.iter().all(|image| named(name, image)))
        && !parts.iter().any(|part| rows(&part.images))
}

/// The published set, if a folder's data are that set; the title of the data in a report; why these are not the data that the target is for.
/// `declared` is the name in the folder's JSON.
pub(super) fn identify(
    target: &Target,
    data: &Dataset,
    declared: Option<&str>,
    folder: &Path,
) -> (Option<DatasetName>, String, Option<String>) {
    let asked = target.dataset;
    let called =
        declared.and_then(|name| DatasetName::ALL.into_iter().find(|set| set.folder() == name));
    let claimed = if declared.is_none() { Some(asked) } else { called };
    // A generated world has any size, and no paper measured one.
    let holds = |set: &DatasetName| {
        *set == DatasetName::Scenes || is_set(*set, data, target.val_captions.is_some())
    };
    let known = claimed.filter(holds);
    let title = match (known, declared) {
        (Some(set), _) => set.title().to_owned(),
        (None, Some(name)) if called.is_none() => name.to_owned(),
        _ => folder_name(folder),
    };
    let counts = || {
        [&data.train, &data.val, &data.test].map(|part| part.images.len().to_string()).join(" + ")
    };
    let note = match (known, claimed) {
        (Some(set), _) if set == asked => None,
        (None, Some(set)) => Some(format!(
            "the target is for {}, but the data ({} images) have not the counts and file names of {}: no number of the paper beside them",
            asked.title(),
            counts(),
            set.title()
        )),
        _ => Some(format!("the target is for {}, but the data declare {title}", asked.title())),
    };
    (known, title, note)
}

fn folder_name(folder: &Path) -> String {
    let full = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    full.file_name().map_or_else(|| "data".into(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use itm_core::Pairs;
    use itm_core::data::SplitData;

    use super::*;
    use crate::config::Config;
    use crate::tests::configs;

    fn data(counts: [usize; 3], name: impl Fn(usize, usize) -> String) -> Dataset {
        let part = |split: usize| SplitData {
            images: (0..counts[split]).map(|i| name(split, i)).collect(),
            pairs: Pairs::new(counts[split], vec![]).unwrap(),
            ..SplitData::default()
        };
        let sha256 = String::new();
        Dataset { name: String::new(), train: part(0), val: part(1), test: part(2), sha256 }
    }

    fn flickr(split: usize, i: usize) -> String {
        format!("{}.jpg", 7_000_000 + 50_000 * split + i)
    }

    #[test]
    fn a_set_has_its_counts_and_its_names() {
        use DatasetName::{Coco, Flickr8k, Flickr30k};
        let whole = [29_000, 1014, 1000];
        assert!(is_set(Flickr30k, &data(whole, flickr), false));
        assert!(!is_set(Flickr30k, &data([600, 1014, 1000], flickr), false));
        assert!(!is_set(Flickr30k, &data([29_000, 100, 1000], flickr), false));
        assert!(is_set(Flickr30k, &data([29_000, 100, 1000], flickr), true), "a target cuts it");
        assert!(!is_set(Flickr30k, &data(whole, |s, i| format!("photo-{s}-{i}.jpg")), false));
        assert!(is_set(Flickr30k, &data(whole, |_, i| (3 * i).to_string()), false));
        assert!(!is_set(Flickr30k, &data(whole, |_, i| i.to_string()), false), "numbers of rows");
        assert!(!is_set(Flickr30k, &data(whole, |_, i| format!("train/{i}")), false));
        let of_8k = |split: usize, i: usize| format!("{}_693b08cb0e.jpg", 9000 * split + i);
        assert!(is_set(Flickr8k, &data([6000, 1000, 1000], of_8k), false));
        assert!(!is_set(Flickr8k, &data([6000, 1000, 1000], flickr), false));
        let of_coco = |s: usize, i: usize| format!("COCO_val2014_{:012}.jpg", 200_000 * s + i);
        assert!(is_set(Coco, &data([82_783, 5000, 5000], of_coco), false));
    }

    #[test]
    fn other_data_carry_their_own_name() {
        let target = Config::load(&configs(), "fne-flickr-features").unwrap().target;
        let small = data([600, 100, 1000], flickr);
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("my-photos");
        std::fs::create_dir(&folder).unwrap();
        let of = |data: &Dataset, declared| identify(&target, data, declared, &folder);
        for declared in [None, Some("flickr30k")] {
            let (known, title, note) = of(&small, declared);
            assert_eq!((known, title.as_str()), (None, "my-photos"));
            assert!(note.unwrap().starts_with(
                "the target is for Flickr30K, but the data (600 + 100 + 1000 images)"
            ));
        }
        let (known, title, note) = of(&small, Some("dogs"));
        assert_eq!((known, title.as_str()), (None, "dogs"));
        assert_eq!(note.unwrap(), "the target is for Flickr30K, but the data declare dogs");
        let whole = data([29_000, 1014, 1000], flickr);
        let (known, title, note) = of(&whole, None);
        assert_eq!(
            (known, title.as_str(), note),
            (Some(DatasetName::Flickr30k), "Flickr30K", None)
        );
    }
}

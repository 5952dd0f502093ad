//! A folder of pictures and captions becomes a [`Dataset`](super::Dataset), without features.

use std::fs;
use std::path::Path;

use super::files::{self, LARGEST_TEXT, Manifest};
use super::image_folder::ImageFolder;
use super::precomp::{Loaded, folder_name, karpathy_file};
use super::{CaptionRule, Dataset, Features, Karpathy, Leakage, Part, Split, json};
use crate::{Error, Pairs, Result};

/// Loads pictures and captions; the features of every part have width 0.
///
/// ```text
/// DIR/dataset_NAME.json     Karpathy's captions and splits
/// DIR/images/…              the pictures, or where the JSON's `filepath` says
/// ```
///
/// Pictures are found and not read. The data's hash is of the JSON and of every picture's name and size: 31,000 files are
/// not read twice.
///
/// # Errors
/// No JSON or a malformed one, a split without an image, an image with fewer captions than `captions_per_image`, a picture
/// that is not there (the first one is named, all are counted), an image of `val` or `test` among the training images.
pub fn load_pictures(dir: impl AsRef<Path>, captions_per_image: usize) -> Result<Loaded> {
    let dir = dir.as_ref();
    let Some(path) = karpathy_file(dir)? else {
        return Err(Error::invalid(dir.display(), "a dataset_*.json", "none"));
    };
    let (bytes, mut manifest) = (files::read(&path, LARGEST_TEXT)?, Manifest::default());
    manifest.add(dir, &path, &bytes);
    let karpathy =
        Karpathy::parse(&json::place(&path), &bytes, CaptionRule::First(captions_per_image))?;
    let images = ImageFolder::new(dir, Some(&karpathy));
    let listing = listing(dir, &karpathy, &images)?;
    manifest.add(dir, Path::new("names and sizes of the pictures"), listing.as_bytes());

    let part = |split: Split| {
        let part = part(&karpathy, split)?;
        if part.images.is_empty() {
            let place = format!("{} split {split}", path.display());
            return Err(Error::invalid(place, "an image", "none"));
        }
        Ok(part)
    };
    let [train, val, test] = [part(Split::Train)?, part(Split::Val)?, part(Split::Test)?];
    let declared = Some(karpathy.dataset.clone()).filter(|name| !name.is_empty());
    let name = declared.clone().unwrap_or_else(|| folder_name(dir));
    let dataset = Dataset { name, train, val, test, sha256: manifest.combined() };
    let leakage = Leakage::of(&dataset).refuse_images(dir)?;
    let mut notes = vec![format!("{} pictures, read as they are needed", karpathy.images.len())];
    let dropped = karpathy.dropped;
    if dropped.captions > 0 {
        notes.push(format!(
            "{} captions of {} images beyond the first {captions_per_image} left out",
            dropped.captions, dropped.images
        ));
    }
    Ok(Loaded { dataset, declared, images, manifest, leakage, notes })
}

fn part(karpathy: &Karpathy, split: Split) -> Result<Part> {
    let (mut images, mut captions, mut image_of_text) = (vec![], vec![], vec![]);
    for image in karpathy.images_of(split) {
        image_of_text.extend(image.captions.iter().map(|_| images.len()));
        captions.extend(image.captions.iter().cloned());
        images.push(image.filename.clone());
    }
    let pairs = Pairs::new(images.len(), image_of_text)?;
    Ok(Part { features: Features { dim: 0, values: vec![] }, images, captions, pairs })
}

/// A line of name and size for every picture.
fn listing(dir: &Path, karpathy: &Karpathy, folder: &ImageFolder) -> Result<String> {
    let (mut lines, mut missing) = (String::new(), vec![]);
    for image in &karpathy.images {
        match folder.image_path(&image.filename).and_then(|path| fs::metadata(path).ok()) {
            Some(file) => lines += &format!("{} {}\n", image.filename, file.len()),
            None => missing.push(&image.filename),
        }
    }
    match missing.as_slice() {
        [] => Ok(lines),
        [first, ..] => {
            let expected = format!("{} pictures", karpathy.images.len());
            let got = format!("{} fewer, the first {first}", missing.len());
            Err(Error::invalid(dir.display(), expected, got))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(json: &str, pictures: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("dataset_flickr30k.json"), json).unwrap();
        fs::create_dir(dir.path().join("images")).unwrap();
        for name in pictures {
            fs::write(dir.path().join("images").join(name), name).unwrap();
        }
        dir
    }

    /// Two captions an image, one more for the first.
    fn json(splits: [(&str, &str); 3]) -> String {
        let image = |(k, (name, split)): (usize, &(&str, &str))| {
            let more = if k == 0 { r#", {"raw": "more"}"# } else { "" };
            format!(
                r#"{{"filename": "{name}", "split": "{split}", "sentences": [{{"raw": "a {k}"}}, {{"raw": "b {k}"}}{more}]}}"#
            )
        };
        let images: Vec<_> = splits.iter().enumerate().map(image).collect();
        format!(r#"{{"dataset": "flickr30k", "images": [{}]}}"#, images.join(","))
    }

    const SPLITS: [(&str, &str); 3] = [("1.jpg", "train"), ("2.jpg", "val"), ("3.jpg", "test")];

    #[test]
    fn splits_are_filled_from_the_json() {
        let dir = folder(&json(SPLITS), &["1.jpg", "2.jpg", "3.jpg"]);
        let loaded = load_pictures(dir.path(), 2).unwrap();
        let Dataset { name, train, val, test, sha256 } = loaded.dataset;
        assert_eq!((name.as_str(), loaded.declared.as_deref()), ("flickr30k", Some("flickr30k")));
        assert_eq!(
            (train.images, train.captions),
            (vec!["1.jpg".into()], vec!["a 0".into(), "b 0".to_string()])
        );
        assert_eq!(
            (val.images, test.images),
            (vec!["2.jpg".to_string()], vec!["3.jpg".to_string()])
        );
        assert_eq!(test.pairs.image_of_text(), [0, 0]);
        assert_eq!(train.features.rows(), 0);
        assert!(loaded.notes[1].starts_with("1 captions of 1 images"), "{:?}", loaded.notes);
        assert!(loaded.images.image_path("3.jpg").is_some());
        // Another picture of the same name is other data; the same folder elsewhere is not.
        let same = folder(&json(SPLITS), &["1.jpg", "2.jpg", "3.jpg"]);
        assert_eq!(load_pictures(same.path(), 2).unwrap().dataset.sha256, sha256);
        fs::write(same.path().join("images/3.jpg"), "longer").unwrap();
        assert_ne!(load_pictures(same.path(), 2).unwrap().dataset.sha256, sha256);
    }

    #[test]
    fn what_is_missing_is_one_line() {
        let line = |dir: &tempfile::TempDir| load_pictures(dir.path(), 2).unwrap_err().to_string();
        let none = tempfile::tempdir().unwrap();
        assert!(line(&none).ends_with("expected a dataset_*.json, got none"), "{}", line(&none));
        let fewer = folder(&json(SPLITS), &["2.jpg"]);
        let got = line(&fewer);
        assert!(got.ends_with("expected 3 pictures, got 2 fewer, the first 1.jpg"), "{got}");
        let all = ["1.jpg", "2.jpg", "3.jpg"];
        let no_test = [("1.jpg", "train"), ("2.jpg", "val"), ("3.jpg", "train")];
        let got = line(&folder(&json(no_test), &all));
        assert!(got.ends_with("split test: expected an image, got none"), "{got}");
        let got = load_pictures(folder(&json(SPLITS), &all).path(), 3).unwrap_err().to_string();
        assert!(got.contains("expected 3 captions, got 2"), "{got}");
    }
}

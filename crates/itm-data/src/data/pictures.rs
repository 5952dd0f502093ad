//! Loads a folder of pictures and captions as a [`Dataset`](super::Dataset) without features.

use std::fs;
use std::path::Path;

use super::fne_annotations::picture_of;
use super::image_folder::ImageFolder;
use super::leakage::leakage;
use super::precomp::{Loaded, folder_name};
use super::{CaptionRule, Dataset, Dropped, FneAnnotations, Karpathy, Split, SplitData, originals};
use crate::files::{Manifest, file_name};
use crate::{Error, Result};

/// Loads pictures and captions; the features of every part have width 0.
///
/// ```text
/// DIR/dataset_NAME.json     Karpathy's captions and splits; or, without it, the lists of the FNE program:
/// DIR/*train*.json          one object per caption
/// DIR/*val*.json, *test*    one object per image; or the files of the publishers:
/// DIR/Flickr8k.token.txt    also captions.txt (image,caption), results.csv, COCO's captions_*.json
/// DIR/*train*.txt, *dev*.txt, *test*.txt     a file name on each line
/// DIR/images/…              the pictures, or where the JSON says
/// ```
///
/// Pictures are located but not read. The hash of the data covers the JSON, and the name and size of every picture, so
/// that 31,000 files are not read twice.
///
/// # Errors
/// If there is no JSON or a malformed one, a split has no image, an image has fewer captions than `rule` needs (in
/// a training list any number is allowed), a picture is missing (the error counts all such pictures and names the first),
/// or an image is in two splits.
pub fn load_pictures(dir: impl AsRef<Path>, rule: CaptionRule) -> Result<Loaded> {
    let (dir, mut manifest) = (dir.as_ref(), Manifest::default());
    let Listing { declared, parts, names, images, dropped } = listed(dir, rule, &mut manifest)?;
    let listing = listing(dir, &names, &images)?;
    manifest.add(dir, Path::new("names and sizes of the pictures"), listing.as_bytes());
    let [train, val, test] = parts;
    let name = declared.clone().unwrap_or_else(|| folder_name(dir));
    let dataset = Dataset { name, train, val, test, sha256: manifest.combined() };
    let leakage = leakage(&dataset, dir)?;
    let mut notes = vec![format!("{} pictures, read as they are needed", names.len())];
    if let CaptionRule::First(kept) = rule
        && dropped.captions > 0
    {
        let Dropped { captions, images } = dropped;
        notes.push(format!(
            "{captions} captions of {images} images beyond the first {kept} left out"
        ));
    }
    Ok(Loaded { dataset, declared, images, manifest, leakage, notes })
}

/// The contents of a folder's JSON.
struct Listing {
    declared: Option<String>,
    parts: [SplitData; 3],
    /// Names of the pictures of all splits.
    names: Vec<String>,
    images: ImageFolder,
    dropped: Dropped,
}

fn listed(dir: &Path, rule: CaptionRule, manifest: &mut Manifest) -> Result<Listing> {
    if let Some((path, json)) = Karpathy::of_folder(dir, rule, manifest)? {
        return of_karpathy(dir, &path, json);
    }
    if let Some(lists) = FneAnnotations::of_folder(dir, rule, manifest)? {
        return Ok(of_annotations(dir, lists));
    }
    let expected =
        "a dataset_*.json, lists of train, val and test, or captions with lists of the splits";
    let missing = || Error::invalid(dir.display(), expected, "none");
    of_karpathy(dir, dir, originals::read(dir, rule, manifest)?.ok_or_else(missing)?)
}

fn of_karpathy(dir: &Path, path: &Path, json: Karpathy) -> Result<Listing> {
    let part = |split: Split| {
        let part = json.part(split);
        let place = format_args!("{} split {split}", path.display());
        Error::unless(!part.images.is_empty(), place, "an image", "none")?;
        Ok(part)
    };
    Ok(Listing {
        parts: [part(Split::Train)?, part(Split::Val)?, part(Split::Test)?],
        images: ImageFolder::new(dir, Some(&json)),
        names: json.images.iter().map(|image| image.filename.clone()).collect(),
        declared: Some(json.dataset).filter(|name| !name.is_empty()),
        dropped: json.dropped,
    })
}

fn of_annotations(dir: &Path, lists: [FneAnnotations; 3]) -> Listing {
    let name = |image: &String| file_name(image).to_owned();
    let places = lists.iter().flat_map(|list| &list.images);
    let images = ImageFolder::listed(dir, places.map(|i| (name(i), picture_of(dir, i))));
    let names = lists.iter().flat_map(|list| list.images.iter().map(name)).collect();
    let mut dropped = Dropped::default();
    for list in &lists {
        dropped.captions += list.dropped.captions;
        dropped.images += list.dropped.images;
    }
    let parts = lists.map(FneAnnotations::into_part);
    Listing { declared: None, parts, names, images, dropped }
}

/// One line per picture: name and size.
fn listing(dir: &Path, names: &[String], folder: &ImageFolder) -> Result<String> {
    let (mut lines, mut missing) = (String::new(), vec![]);
    for name in names {
        match folder.image_path(name).and_then(|path| fs::metadata(path).ok()) {
            Some(file) => lines += &format!("{name} {}\n", file.len()),
            None => missing.push(name),
        }
    }
    let Some(first) = missing.first() else { return Ok(lines) };
    let expected = format!("{} pictures", names.len());
    let tried = folder.tried(first);
    let link = folder.leads_out(&tried);
    let link = link.map_or(String::new(), |to| format!(", a link to {}", to.display()));
    let tried = format!("tried {}{link}", tried.display());
    let got = format!("{} fewer, the first {first} ({tried})", missing.len());
    Err(Error::invalid(dir.display(), expected, got))
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

    /// Two captions per image, one more for the first.
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
        let loaded = load_pictures(dir.path(), CaptionRule::First(2)).unwrap();
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
        // The hash does not depend on the place of the folder, but on the size of each picture.
        let same = folder(&json(SPLITS), &["1.jpg", "2.jpg", "3.jpg"]);
        assert_eq!(
            load_pictures(same.path(), CaptionRule::First(2)).unwrap().dataset.sha256,
            sha256
        );
        fs::write(same.path().join("images/3.jpg"), "longer").unwrap();
        assert_ne!(
            load_pictures(same.path(), CaptionRule::First(2)).unwrap().dataset.sha256,
            sha256
        );
    }

    /// Under `full` nothing is dropped, and one caption is enough.
    #[test]
    fn all_captions_may_be_read() {
        let dir = folder(&json(SPLITS), &["1.jpg", "2.jpg", "3.jpg"]);
        let loaded = load_pictures(dir.path(), CaptionRule::All).unwrap();
        assert_eq!(loaded.dataset.train.captions, ["a 0", "b 0", "more"]);
        assert_eq!(loaded.dataset.test.captions.len(), 2);
        assert_eq!(loaded.notes.len(), 1, "{:?}", loaded.notes);
    }

    /// Written on Windows, with another case than on the disk, and with one name in two folders.
    #[test]
    fn names_of_other_systems_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for name in ["photos/x/1.jpg", "photos/y/1.jpg", "images/2.JPG", "photos/x/3.jpg"] {
            write(name, name);
        }
        let image = |place: &str, split: &str| {
            format!(r#"{{{place}, "split": "{split}", "sentences": [{{"raw": "{split}"}}]}}"#)
        };
        let images = [
            image(r#""filepath": "photos\\x", "filename": "1.jpg""#, "train"),
            image(r#""filepath": "photos/y", "filename": "1.jpg""#, "train"),
            image(r#""filename": "2.jpg""#, "val"),
            image(r#""filename": "photos\\x\\3.jpg""#, "test"),
        ];
        write("dataset_own.json", &format!(r#"{{"images": [{}]}}"#, images.join(",")));
        let Loaded { dataset, images: folder, .. } =
            load_pictures(dir.path(), CaptionRule::All).unwrap();
        assert_eq!(dataset.train.images, ["photos/x/1.jpg", "photos/y/1.jpg"]);
        let found = |name: &str| fs::read_to_string(folder.image_path(name).unwrap()).unwrap();
        assert_eq!(found("photos/y/1.jpg"), "photos/y/1.jpg");
        assert_eq!(
            (found("2.jpg"), found("3.jpg")),
            ("images/2.JPG".into(), "photos/x/3.jpg".into())
        );
        fs::remove_file(dir.path().join("photos/y/1.jpg")).unwrap();
        write("images/1.jpg", "another picture");
        let line = load_pictures(dir.path(), CaptionRule::All).unwrap_err().to_string();
        assert!(line.contains("1 fewer, the first photos/y/1.jpg (tried "), "{line}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_folder_is_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret.jpg");
        fs::write(&secret, "a text").unwrap();
        let dir = folder(&json(SPLITS), &["2.jpg", "3.jpg"]);
        std::os::unix::fs::symlink(&secret, dir.path().join("images/1.jpg")).unwrap();
        let line = load_pictures(dir.path(), CaptionRule::All).unwrap_err().to_string();
        let real = secret.canonicalize().unwrap();
        assert!(line.ends_with(&format!("a link to {})", real.display())), "{line}");
        let problems = crate::data::check(dir.path()).unwrap().problems;
        let want =
            format!("are not followed), got links out of it: 1, the first to {}", real.display());
        assert!(problems.iter().any(|problem| problem.ends_with(&want)), "{problems:?}");
        fs::remove_file(dir.path().join("images/1.jpg")).unwrap();
        std::os::unix::fs::symlink("3.jpg", dir.path().join("images/1.jpg")).unwrap(); // inside
        assert!(load_pictures(dir.path(), CaptionRule::All).is_ok());
    }

    #[test]
    fn what_is_missing_is_one_line() {
        let line = |dir: &tempfile::TempDir| {
            load_pictures(dir.path(), CaptionRule::First(2)).unwrap_err().to_string()
        };
        let none = tempfile::tempdir().unwrap();
        let want = "or captions with lists of the splits, got none";
        assert!(line(&none).ends_with(want), "{}", line(&none));
        let fewer = folder(&json(SPLITS), &["2.jpg"]);
        let got = line(&fewer);
        assert!(got.contains("expected 3 pictures, got 2 fewer, the first 1.jpg (tried "), "{got}");
        assert!(got.ends_with("images/1.jpg)"), "{got}");
        let all = ["1.jpg", "2.jpg", "3.jpg"];
        let no_test = [("1.jpg", "train"), ("2.jpg", "val"), ("3.jpg", "train")];
        let got = line(&folder(&json(no_test), &all));
        assert!(got.ends_with("split test: expected an image, got none"), "{got}");
        let got = load_pictures(folder(&json(SPLITS), &all).path(), CaptionRule::First(3))
            .unwrap_err()
            .to_string();
        assert!(got.contains("expected 3 captions, got 2"), "{got}");
    }

    /// The lists of the FNE program: training images by `image_id`, a picture with its own path, one caption too many.
    #[test]
    fn lists_of_fne_fill_the_splits() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        for folder in ["images", "val2014"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        for name in ["images/1.jpg", "images/3.jpg", "val2014/2.jpg"] {
            write(name, name);
        }
        let line = || load_pictures(dir.path(), CaptionRule::First(2)).unwrap_err().to_string();
        write(
            "f30k_train.json",
            r#"[{"image": "x/1.jpg", "caption": "a 0", "image_id": 9},
                {"image": "x/1.jpg", "caption": "b 0", "image_id": 9},
                {"image": "x/1.jpg", "caption": "c 0", "image_id": 9}]"#,
        );
        write(
            "f30k_val.json",
            r#"[{"image": "val2014\\2.jpg", "caption": ["a 1", "b 1", "more"]}]"#,
        );
        assert!(line().ends_with("expected a list of the test split, got none"), "{}", line());
        write("f30k_test.json", r#"[{"image": "3.jpg", "caption": ["a 2", "b 2"]}]"#);
        let loaded = load_pictures(dir.path(), CaptionRule::First(2)).unwrap();
        let Dataset { train, val, test, .. } = loaded.dataset;
        assert_eq!((train.images, train.captions.len()), (vec!["1.jpg".to_owned()], 3));
        assert_eq!(
            (val.images, val.captions),
            (vec!["2.jpg".into()], vec!["a 1".into(), "b 1".to_owned()])
        );
        assert_eq!(test.pairs.image_of_text(), [0, 0]);
        let place = loaded.images.image_path("2.jpg").unwrap();
        assert_eq!(place, dir.path().join("val2014").join("2.jpg"));
        assert!(loaded.notes[1].starts_with("1 captions of 1 images"), "{:?}", loaded.notes);
        assert_eq!(loaded.manifest.files.len(), 4);
        write("f30k_dev.json", "[]");
        assert!(line().contains("f30k_dev.json") || line().contains("f30k_val.json"), "{}", line());
        fs::remove_file(dir.path().join("f30k_dev.json")).unwrap();
        fs::remove_file(dir.path().join("images/3.jpg")).unwrap();
        assert!(
            line().contains("expected 3 pictures, got 1 fewer, the first 3.jpg (tried "),
            "{}",
            line()
        );
    }
}

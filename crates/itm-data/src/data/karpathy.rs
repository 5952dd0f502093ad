//! Karpathy's JSON files: images, captions and splits of Flickr8k, Flickr30K and MS-COCO.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::json::{self, List};
use super::{CaptionRule, Dropped, SplitData};
use crate::files::{self, Manifest, excerpt};
use crate::{Error, Pairs, Result};

/// The split of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Split {
    /// For training; COCO's `restval` belongs here.
    Train,
    /// For choosing parameters and epochs; also called `dev`.
    Val,
    /// For reported results.
    Test,
}

impl Split {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Train, Self::Val, Self::Test];
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// A `dataset_*.json` in Karpathy's layout, in file order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Karpathy {
    /// The field `dataset`: `flickr8k`, `flickr30k`, `coco`.
    pub dataset: String,
    /// The images of all splits.
    pub images: Vec<KarpathyImage>,
    /// What the caption rule left out.
    pub dropped: Dropped,
}

/// One image with its captions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KarpathyImage {
    /// File name.
    pub filename: String,
    /// Folder below the folder of the JSON, if the JSON names one (`val2014` in COCO).
    pub filepath: Option<String>,
    /// Its split.
    pub split: Split,
    /// The raw captions.
    pub captions: Vec<String>,
    /// The number in this JSON, or another id.
    pub imgid: Option<String>,
    /// COCO's number.
    pub cocoid: Option<String>,
}

impl KarpathyImage {
    /// The path of the image; `dir` is the folder of the JSON. Images without `filepath` (Flickr) are in `images`.
    pub(crate) fn path(&self, dir: &Path) -> PathBuf {
        dir.join(self.filepath.as_deref().unwrap_or("images")).join(&self.filename)
    }
}

#[derive(Deserialize)]
pub(super) struct RawFile {
    dataset: Option<String>,
    pub(super) images: List<RawImage>,
}

#[derive(Deserialize)]
pub(super) struct RawImage {
    pub(super) filename: String,
    filepath: Option<String>,
    split: String,
    pub(super) sentences: List<RawSentence>,
    pub(super) imgid: Option<Id>,
    pub(super) cocoid: Option<Id>,
}

/// A number, or a text.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number or a text as id")]
pub(crate) enum Id {
    Number(i64),
    Text(String),
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        match id {
            Id::Number(number) => number.to_string(),
            Id::Text(text) => text,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct RawSentence {
    raw: String,
    pub(super) sentid: Option<Id>,
}

/// The `dataset_*.json` of a folder.
pub(crate) fn karpathy_file(dir: &Path) -> Result<Option<PathBuf>> {
    let is = |p: &PathBuf| {
        let name = p.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("dataset_") && name.ends_with(".json")
    };
    let mut found = files::entries(dir)?.into_iter().filter(is);
    match (found.next(), found.next()) {
        (Some(a), Some(b)) => {
            let got = format!("{} and {}", a.display(), b.display());
            Err(Error::invalid(dir.display(), "one dataset_*.json", got))
        }
        (one, _) => Ok(one),
    }
}

impl Karpathy {
    /// Reads the `dataset_*.json` of a folder, if there is one; with its path.
    ///
    /// # Errors
    /// If the file cannot be read or does not have this layout, or there are two of them. The error names file, image and field,
    /// or line and column.
    pub(crate) fn of_folder(
        dir: &Path,
        rule: CaptionRule,
        manifest: &mut Manifest,
    ) -> Result<Option<(PathBuf, Self)>> {
        let Some(path) = karpathy_file(dir)? else { return Ok(None) };
        let json = Self::parse(&path.display().to_string(), &manifest.read(dir, &path)?, rule)?;
        Ok(Some((path, json)))
    }

    /// Parses bytes; errors name `place`. A missing `dataset` is the empty string.
    ///
    /// # Errors
    /// As [`Karpathy::of_folder`].
    pub(crate) fn parse(place: &str, bytes: &[u8], rule: CaptionRule) -> Result<Self> {
        let what = "Karpathy's JSON (images[].sentences[].raw)";
        let bare = bytes.trim_ascii_start().starts_with(b"[");
        Error::unless(!bare, place, what, "a bare list, without \"images\"")?;
        let raw: RawFile = json::parse(place, what, bytes)?;
        let mut dropped = Dropped::default();
        let images = raw.images.0.into_iter().enumerate().map(|(i, image)| {
            let place = format!("{place} images[{i}] ({})", excerpt(&image.filename));
            read_image(&place, image, rule, &mut dropped)
        });
        let mut images = images.collect::<Result<Vec<_>>>()?;
        let some = !images.is_empty();
        Error::unless(some, format_args!("{place} images"), "an image", "an empty list")?;
        apart(&mut images);
        let mut seen = HashSet::new();
        if let Some(i) = images.iter().position(|image| !seen.insert(&image.filename)) {
            let got = format!("a second {}", images[i].filename);
            let place = format!("{place} images[{i}].filename");
            return Err(Error::invalid(place, "each image once", got));
        }
        Ok(Self { dataset: raw.dataset.unwrap_or_default(), images, dropped })
    }

    /// The images of a split, in file order.
    pub(crate) fn images_of(&self, split: Split) -> impl Iterator<Item = &KarpathyImage> {
        self.images.iter().filter(move |image| image.split == split)
    }

    /// The pictures and captions of a split.
    pub(crate) fn part(&self, split: Split) -> SplitData {
        let (mut images, mut captions, mut image_of_text) = (vec![], vec![], vec![]);
        for image in self.images_of(split) {
            image_of_text.extend(image.captions.iter().map(|_| images.len()));
            captions.extend(image.captions.iter().cloned());
            images.push(image.filename.clone());
        }
        let pairs = Pairs::new(images.len(), image_of_text).expect("counted from the images");
        SplitData { images, captions, pairs, ..SplitData::default() }
    }
}

/// Names images by folder and file where several folders have a file of one name.
fn apart(images: &mut [KarpathyImage]) {
    // The number of images of a name, and whether each of them has a folder.
    let mut named: HashMap<String, (usize, bool)> = HashMap::new();
    for image in images.iter() {
        let (count, all) = named.entry(image.filename.clone()).or_insert((0, true));
        *count += 1;
        *all &= image.filepath.as_ref().is_some_and(|folder| !folder.is_empty());
    }
    let several = |image: &&mut KarpathyImage| matches!(named[&image.filename], (2.., true));
    for image in images.iter_mut().filter(several) {
        let folder = image.filepath.replace(String::new()).unwrap_or_default();
        image.filename = format!("{}/{}", folder.trim_end_matches('/'), image.filename);
    }
}

fn read_image(
    place: &str,
    image: RawImage,
    rule: CaptionRule,
    dropped: &mut Dropped,
) -> Result<KarpathyImage> {
    let named = !image.filename.is_empty();
    Error::unless(named, format_args!("{place}.filename"), "a name", "an empty string")?;
    files::check_below(&format!("{place}.filename"), &image.filename)?;
    if let Some(folder) = &image.filepath {
        files::check_below(&format!("{place}.filepath"), folder)?;
    }
    let split = match image.split.as_str() {
        "train" | "restval" => Split::Train,
        "val" | "dev" | "valid" | "validation" => Split::Val,
        "test" => Split::Test,
        other => {
            let place = format!("{place}.split");
            return Err(Error::invalid(place, "train, restval, val or test", excerpt(other)));
        }
    };
    let sentences = image.sentences.0;
    let keep = rule.keep(&format!("{place}.sentences"), sentences.len(), dropped)?;
    if let Some(j) = sentences.iter().take(keep).position(|s| s.raw.trim().is_empty()) {
        let place = format!("{place}.sentences[{j}].raw");
        return Err(Error::invalid(place, "a caption", "an empty one"));
    }
    let captions = sentences.into_iter().take(keep).map(|s| s.raw).collect();
    let RawImage { filename, filepath, imgid, cocoid, .. } = image;
    // A list that was written on Windows: its folders end in `\`. A name with folders has its own place.
    let filename = filename.replace('\\', "/");
    let filepath = filepath.map(|folder| folder.replace('\\', "/"));
    let (filename, filepath) = match (filename.rsplit_once('/'), filepath) {
        (Some((folder, name)), None) => (name.to_owned(), Some(folder.to_owned())),
        // Some lists write the folder twice.
        (Some((folder, name)), Some(filepath)) if folder == filepath => {
            (name.to_owned(), Some(filepath))
        }
        (_, filepath) => (filename, filepath),
    };
    let [imgid, cocoid] = [imgid, cocoid].map(|id| id.map(String::from));
    Ok(KarpathyImage { filename, filepath, split, captions, imgid, cocoid })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COCO: &str = r#"{"dataset": "coco", "images": [
      {"filepath": "val2014", "filename": "a.jpg", "imgid": 0, "cocoid": 7, "split": "restval",
       "sentids": [0, 1], "sentences": [{"tokens": ["one"], "raw": "One.", "sentid": 0}, {"raw": "Two."}]},
      {"filepath": "train2014", "filename": "b.jpg", "split": "train",
       "sentences": [{"raw": "3"}, {"raw": "4"}, {"raw": "5"}]},
      {"filename": "c.jpg", "split": "test", "sentences": [{"raw": "Six"}, {"raw": "Seven"}]}]}"#;

    fn parse(text: &str, rule: CaptionRule) -> Result<Karpathy> {
        Karpathy::parse("k.json", text.as_bytes(), rule)
    }

    fn error(text: &str, rule: CaptionRule) -> String {
        parse(text, rule).unwrap_err().to_string()
    }

    #[test]
    fn restval_is_train_and_paths_follow_filepath() {
        let k = parse(COCO, CaptionRule::All).unwrap();
        assert_eq!(k.dataset, "coco");
        assert_eq!(k.images_of(Split::Train).count(), 2);
        assert_eq!(k.images_of(Split::Val).count(), 0);
        assert_eq!(k.images[1].captions, ["3", "4", "5"]);
        assert_eq!(k.images[0].cocoid.as_deref(), Some("7"));
        assert_eq!(k.images[0].path(Path::new("d")), Path::new("d/val2014/a.jpg"));
        assert_eq!(k.images[2].path(Path::new("d")), Path::new("d/images/c.jpg"));
    }

    #[test]
    fn ids_may_be_texts_and_splits_have_other_names() {
        for name in ["val", "dev", "valid", "validation"] {
            let text = COCO
                .replace("\"test\"", &format!("\"{name}\""))
                .replace("\"imgid\": 0", "\"imgid\": \"a7\"");
            let k = parse(&text, CaptionRule::All).unwrap();
            assert_eq!(k.images_of(Split::Val).count(), 1, "{name}");
            assert_eq!(k.images[0].imgid.as_deref(), Some("a7"));
        }
        let list = error("[{\"filename\": \"a.jpg\"}]", CaptionRule::All);
        assert!(list.ends_with("got a bare list, without \"images\""), "{list}");
    }

    #[test]
    fn too_many_captions_are_dropped_and_counted_too_few_refused() {
        let k = parse(COCO, CaptionRule::First(2)).unwrap();
        assert_eq!(k.images[1].captions, ["3", "4"]);
        assert_eq!((k.dropped.captions, k.dropped.images), (1, 1));
        let place = "k.json images[0] (\"a.jpg\").sentences";
        assert_eq!(
            error(COCO, CaptionRule::First(3)),
            format!("{place}: expected 3 captions, got 2")
        );
    }

    #[test]
    fn errors_name_the_place() {
        for (from, to, want) in [
            (
                "\"split\": \"test\"",
                "\"split\": \"exam\"",
                "k.json images[2] (\"c.jpg\").split: expected train",
            ),
            (
                "\"raw\": \"4\"",
                "\"raw\": \" \"",
                "k.json images[1] (\"b.jpg\").sentences[1].raw: expected",
            ),
            ("\"raw\": \"4\"", "\"row\": \"4\"", "entry 1: entry 1: missing field `raw`"),
            ("\"raw\": \"4\"", "\"raw\": 4", "entry 1: entry 1: invalid type: integer `4`"),
            (
                "\"filename\": \"c.jpg\"",
                "\"filename\": \"\"",
                "images[2] (\"\").filename: expected a name",
            ),
            (
                "c.jpg",
                "a.jpg",
                "k.json images[2].filename: expected each image once, got a second a.jpg",
            ),
            ("\"images\"", "\"pictures\"", "missing field `images` at line"),
            (
                "\"c.jpg\"",
                "\"/etc/c.jpg\"",
                ".filename: expected a path below the data folder, got \"/etc/c.jpg\"",
            ),
            (
                "\"val2014\"",
                "\"x/../../y\"",
                ".filepath: expected a path below the data folder, got \"x/../../y\"",
            ),
            ("\"val2014\"", "\"C:\\\\x\"", ".filepath: expected a path below the data folder, got"),
        ] {
            let got = error(&COCO.replace(from, to), CaptionRule::All);
            assert!(got.contains(want), "{got}");
            assert!(!got.contains('\n'));
        }
        assert!(error(&COCO[..200], CaptionRule::All).contains("line 3 column"));
        assert!(error("{\"images\": []}", CaptionRule::All).contains("an empty list"));
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Karpathy::parse("k.json", &bytes, CaptionRule::First(5));
        }

        #[test]
        fn a_changed_file_gives_an_answer(at in 0..COCO.len(), byte: u8, end in 0..COCO.len()) {
            let mut bytes = COCO.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = Karpathy::parse("k.json", &bytes, CaptionRule::All);
            prop_assert!(Karpathy::parse("k.json", &bytes[..end], CaptionRule::All).is_err());
        }
    }
}

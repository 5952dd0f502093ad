//! The annotation files of the FNE program: JSON lists, one object per caption (training) or per image (evaluation).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::json::{self, List};
use super::{CaptionRule, Dropped, Split, SplitData};
use crate::files::{self, LARGEST_TEXT, Manifest, excerpt, file_name};
use crate::{Error, Pairs, Result};

/// Images, captions and pairs of one annotation file.
///
/// Images are numbered 0, 1, 2, … by the first appearance of their `image_id` (training) or by their position in the
/// list (evaluation).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FneAnnotations {
    /// Path of each image below the image folder.
    pub images: Vec<String>,
    /// The captions, raw, in file order.
    pub captions: Vec<String>,
    /// Which captions belong to which image.
    pub pairs: Pairs,
    /// What the caption rule left out.
    pub dropped: Dropped,
}

/// An entry of either form.
#[derive(Deserialize)]
struct AnyEntry {
    caption: Value,
}

/// An entry of the training form: one per caption.
#[derive(Deserialize)]
struct TrainEntry {
    image: String,
    caption: String,
    image_id: Value,
}

/// An entry of the evaluation form: one per image.
#[derive(Deserialize)]
struct EvalEntry {
    image: String,
    caption: Vec<String>,
}

impl FneAnnotations {
    /// The lists of a folder whose names contain train, val (or dev) or test; `None` if there is no such list.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and if a split has no list or two lists.
    pub(crate) fn of_folder(
        dir: &Path,
        rule: CaptionRule,
        manifest: &mut Manifest,
    ) -> Result<Option<[Self; 3]>> {
        let mut found: [Option<Self>; 3] = Default::default();
        for path in
            files::entries(dir)?.iter().filter(|p| p.extension().is_some_and(|e| e == "json"))
        {
            let place = path.display().to_string();
            let Some(split) = split_of(&place) else { continue };
            let bytes = files::read(path, LARGEST_TEXT)?;
            if !is_list(&bytes) {
                continue;
            }
            manifest.add(dir, path, &bytes);
            let list = Self::parse(&place, &bytes, rule)?;
            let first = found[split as usize].replace(list).is_none();
            Error::unless(first, place, format_args!("one list of the {split} split"), "two")?;
        }
        if found.iter().all(Option::is_none) {
            return Ok(None);
        }
        if let Some(split) = Split::ALL.into_iter().find(|split| found[*split as usize].is_none()) {
            let expected = format!("a list of the {split} split");
            return Err(Error::invalid(dir.display(), expected, "none"));
        }
        Ok(Some(found.map(|list| list.expect("no split lacks a list"))))
    }

    /// Reads the training or the evaluation form; the first entry shows which. The rule applies only to evaluation.
    ///
    /// # Errors
    /// If the bytes do not have the form, or an image has fewer captions than the rule needs. The error names `place`, and
    /// entry and field, or line and column.
    pub(crate) fn parse(place: &str, bytes: &[u8], rule: CaptionRule) -> Result<Self> {
        let List(entries): List<AnyEntry> =
            json::parse(place, "a list of {\"caption\", …}", bytes)?;
        let first = entries.into_iter().next(); // the others are freed before the list is read in its form
        match first {
            None => Err(Error::invalid(place, "an entry", "an empty list")),
            Some(AnyEntry { caption: Value::Array(_) }) => Self::parse_eval(place, bytes, rule),
            Some(_) => Self::parse_train(place, bytes),
        }
    }

    fn parse_train(place: &str, bytes: &[u8]) -> Result<Self> {
        let what = "a list of {\"image\", \"caption\", \"image_id\"}, one per caption";
        let List(entries): List<TrainEntry> = json::parse(place, what, bytes)?;
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let (mut images, mut captions, mut image_of_text) = (Vec::new(), Vec::new(), Vec::new());
        for (i, entry) in entries.into_iter().enumerate() {
            let place = format!("{place} entry {i}");
            check(&place, &entry.image, [&entry.caption])?;
            let id = &entry.image_id;
            let fits = !matches!(id, Value::Null | Value::Array(_) | Value::Object(_));
            Error::unless(fits, format_args!("{place}.image_id"), "a number or a text", id)?;
            // As JSON: the number 1 and the text "1" are two images.
            let image = *numbers.entry(entry.image_id.to_string()).or_insert(images.len());
            if image == images.len() {
                images.push(entry.image);
            } else if images[image] != entry.image {
                let expected = format!("{} (image_id {})", excerpt(&images[image]), entry.image_id);
                let place = format!("{place}.image");
                return Err(Error::invalid(place, expected, excerpt(&entry.image)));
            }
            captions.push(entry.caption);
            image_of_text.push(image);
        }
        check_names(place, &images)?;
        let pairs = Pairs::new(images.len(), image_of_text)?;
        Ok(Self { images, captions, pairs, dropped: Dropped::default() })
    }

    fn parse_eval(place: &str, bytes: &[u8], rule: CaptionRule) -> Result<Self> {
        let what = "a list of {\"image\", \"caption\": […]}, one per image";
        let List(entries): List<EvalEntry> = json::parse(place, what, bytes)?;
        let mut dropped = Dropped::default();
        let (mut images, mut captions, mut image_of_text) = (Vec::new(), Vec::new(), Vec::new());
        let mut first = HashMap::new();
        for (i, EvalEntry { image, caption }) in entries.into_iter().enumerate() {
            let place = format!("{place} entry {i}");
            let keep = rule.keep(&format!("{place}.caption"), caption.len(), &mut dropped)?;
            check(&place, &image, caption.iter().take(keep))?;
            if let Some(first) = first.insert(image.clone(), i) {
                let got = format!("{} again, as entry {first}", excerpt(&image));
                return Err(Error::invalid(format!("{place}.image"), "each image once", got));
            }
            images.push(image);
            captions.extend(caption.into_iter().take(keep));
            image_of_text.resize(captions.len(), i);
        }
        check_names(place, &images)?;
        let pairs = Pairs::new(images.len(), image_of_text)?;
        Ok(Self { images, captions, pairs, dropped })
    }

    /// The pictures by file name, with their captions.
    pub(crate) fn into_part(self) -> SplitData {
        let images = self.images.iter().map(|image| file_name(image).to_owned()).collect();
        let Self { captions, pairs, .. } = self;
        SplitData { images, captions, pairs, ..SplitData::default() }
    }
}

/// Refuses two pictures of one file name: they are found by it.
fn check_names(place: &str, images: &[String]) -> Result<()> {
    let mut first = HashMap::new();
    for image in images {
        let first = *first.entry(file_name(image)).or_insert(image);
        let got = format_args!("{} and {}", excerpt(first), excerpt(image));
        Error::unless(first == image, place, "each file name in one folder", got)?;
    }
    Ok(())
}

/// Whether JSON is a list.
pub(crate) fn is_list(json: &[u8]) -> bool {
    let text = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json); // a byte order mark
    text.trim_ascii_start().first() == Some(&b'[')
}

/// Train, val or test, by the file's name.
pub(crate) fn split_of(place: &str) -> Option<Split> {
    use Split::{Test, Train, Val};
    let name = file_name(place).to_lowercase().replace("retrieval", ""); // it ends in "val"
    let words = [("train", Train), ("val", Val), ("dev", Val), ("test", Test)];
    words.into_iter().find(|(word, _)| name.contains(word)).map(|(_, split)| split)
}

/// The path of a picture: COCO's images have a path, Flickr's only a name below `images`.
pub(crate) fn picture_of(dir: &Path, image: &str) -> PathBuf {
    let whole = dir.join(image.replace('\\', "/"));
    if whole.exists() { whole } else { dir.join("images").join(file_name(image)) }
}

fn check<'a>(
    place: &str,
    image: &str,
    captions: impl IntoIterator<Item = &'a String>,
) -> Result<()> {
    let of_image = format!("{place}.image");
    Error::unless(!image.is_empty(), &of_image, "a path", "an empty string")?;
    files::check_below(&of_image, image)?;
    if let Some(j) = captions.into_iter().position(|caption| caption.trim().is_empty()) {
        let place = format!("{place}.caption, number {j}");
        return Err(Error::invalid(place, "a caption", "an empty one"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const TRAIN: &str = r#"[
      {"image": "d/b.jpg", "caption": "one", "image_id": "b"},
      {"image": "d/a.jpg", "caption": "two", "image_id": 7},
      {"image": "d/b.jpg", "caption": "three", "image_id": "b"},
      {"image": "d/c.jpg", "caption": "four", "image_id": "7"}]"#;
    const EVAL: &str = r#"[{"image": "a.jpg", "caption": ["1", "2", "3", "4", "5", "6"]},
      {"image": "b.jpg", "caption": ["7", "8", "9", "10", "11"], "other": 1}]"#;

    fn error(result: Result<FneAnnotations>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn training_ids_are_numbered_by_first_appearance() {
        let a = FneAnnotations::parse_train("t", TRAIN.as_bytes()).unwrap();
        assert_eq!(a.images, ["d/b.jpg", "d/a.jpg", "d/c.jpg"]);
        assert_eq!(a.pairs.image_of_text(), [0, 1, 0, 2]);
        assert_eq!(a.captions, ["one", "two", "three", "four"]);
    }

    #[test]
    fn a_file_says_its_split_and_whether_it_is_a_list() {
        for (name, want) in [
            ("a/flickr30k_train.json", Some(Split::Train)),
            ("retrieval_test.json", Some(Split::Test)),
            ("Retrieval_val.json", Some(Split::Val)),
            ("coco_dev.json", Some(Split::Val)),
            ("retrieval.json", None),
        ] {
            assert_eq!(split_of(name), want, "{name}");
        }
        for list in ["[]", " \n[1]", "\u{feff}[]", "\u{feff} ["] {
            assert!(is_list(list.as_bytes()), "{list:?}");
        }
        for other in ["", "{}", "\u{feff}{}", "\u{feff}"] {
            assert!(!is_list(other.as_bytes()), "{other:?}");
        }
    }

    /// Trap 21: the sixth caption must not shift the captions of the second image.
    #[test]
    fn six_captions_keep_the_pairs_aligned() {
        let a = FneAnnotations::parse_eval("e", EVAL.as_bytes(), CaptionRule::First(5)).unwrap();
        assert_eq!(a.pairs, Pairs::uniform(2, 5));
        assert_eq!(a.captions, ["1", "2", "3", "4", "5", "7", "8", "9", "10", "11"]);
        assert_eq!(a.dropped, Dropped { captions: 1, images: 1 });
        let a = FneAnnotations::parse_eval("e", EVAL.as_bytes(), CaptionRule::All).unwrap();
        assert_eq!(a.pairs.texts_of(1), [6, 7, 8, 9, 10]);
        assert_eq!(a.dropped, Dropped::default());
        let three = EVAL.replace(", \"9\", \"10\"", "");
        let got = error(FneAnnotations::parse_eval("e", three.as_bytes(), CaptionRule::First(5)));
        assert_eq!(got, "e entry 1.caption: expected 5 captions, got 3");
        let got = error(FneAnnotations::parse_eval("e", EVAL.as_bytes(), CaptionRule::First(0)));
        assert_eq!(got, "e entry 0.caption: expected a rule of at least 1 caption, got 0");
    }

    #[test]
    fn errors_name_entry_and_field() {
        for (from, to, want) in [
            (
                "\"two\"",
                "\"\"",
                "t entry 1.caption, number 0: expected a caption, got an empty one",
            ),
            ("\"two\"", "2", "entry 1: invalid type: integer `2`, expected a string at line 3"),
            ("d/a.jpg", "", "t entry 1.image: expected a path"),
            ("\"image_id\": 7", "\"id\": 7", "entry 1: missing field `image_id`"),
            (
                "\"image_id\": 7",
                "\"image_id\": null",
                "t entry 1.image_id: expected a number or a text",
            ),
            (
                "\"image_id\": 7",
                "\"image_id\": \"b\"",
                "t entry 1.image: expected \"d/b.jpg\" (image_id \"b\")",
            ),
            (
                "d/a.jpg",
                "e/b.jpg",
                "t: expected each file name in one folder, got \"d/b.jpg\" and \"e/b.jpg\"",
            ),
        ] {
            let text = TRAIN.replacen(from, to, 1);
            let got = error(FneAnnotations::parse_train("t", text.as_bytes()));
            assert!(got.contains(want) && !got.contains('\n'), "{got}");
        }
        let none = FneAnnotations::parse("t", b"[]", CaptionRule::All);
        assert_eq!(error(none), "t: expected an entry, got an empty list");
        assert!(error(FneAnnotations::parse_train("t", EVAL.as_bytes())).contains("entry 0"));
        let twice = EVAL.replace("b.jpg", "a.jpg");
        let got = error(FneAnnotations::parse_eval("e", twice.as_bytes(), CaptionRule::All));
        assert_eq!(
            got,
            "e entry 1.image: expected each image once, got \"a.jpg\" again, as entry 0"
        );
        let folders = EVAL.replace("b.jpg", "d/a.jpg");
        let got = error(FneAnnotations::parse_eval("e", folders.as_bytes(), CaptionRule::All));
        let want = "e: expected each file name in one folder, got \"a.jpg\" and \"d/a.jpg\"";
        assert_eq!(got, want);
    }

    #[test]
    fn the_form_shows_in_the_first_entry() {
        let parse = |text: &str| FneAnnotations::parse("x", text.as_bytes(), CaptionRule::All);
        let train = FneAnnotations::parse_train("t", TRAIN.as_bytes()).unwrap();
        assert_eq!(parse(TRAIN).unwrap(), train);
        let eval = FneAnnotations::parse_eval("e", EVAL.as_bytes(), CaptionRule::All).unwrap();
        assert_eq!(parse(EVAL).unwrap(), eval);
        assert!(parse("[{\"word\": 1}]").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in vec(any::<u8>(), 0..200)) {
            let _ = FneAnnotations::parse_train("t", &bytes);
            let _ = FneAnnotations::parse_eval("e", &bytes, CaptionRule::First(5));
            let _ = FneAnnotations::parse("f", &bytes, CaptionRule::All);
        }

        #[test]
        fn a_changed_file_gives_an_answer(at in 0..EVAL.len(), byte: u8) {
            let change = |text: &str| {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = byte;
                bytes
            };
            let _ = FneAnnotations::parse_train("t", &change(TRAIN));
            let _ = FneAnnotations::parse_eval("e", &change(EVAL), CaptionRule::First(5));
            prop_assert!(FneAnnotations::parse_eval("e", &EVAL.as_bytes()[..at], CaptionRule::All).is_err());
        }
    }
}

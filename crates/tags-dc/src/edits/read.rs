//! Captions of a text file, grouped by image.

use std::collections::HashMap;
use std::io::BufReader;
use std::path::Path;

use itm_core::data::{caption_table, numbered};
use itm_core::files::open;
use itm_core::{Error, Result};

use crate::lines::each_line;

/// The longest line that is accepted, in bytes.
const LONGEST: usize = 1 << 16;

/// The captions of one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captions {
    /// The image's id; caption `k` has the id `id#k`, in every file that this crate reads or writes.
    pub id: String,
    /// Its captions, in the file's order.
    pub texts: Vec<String>,
}

/// Reads lines of `image_id<TAB>caption`. Images are in the order of their first lines; empty lines are skipped.
///
/// An id that ends in `#` and a number is one caption of an image, as in the caption files of Flickr8k and Flickr30K
/// (`1.jpg#0` to `1.jpg#4`): the number is the place of the caption among the captions of `1.jpg`. Tables of these sets
/// ([`caption_table`]) are read too.
///
/// # Errors
/// If the file cannot be read, or a line has no tab, no id, no caption, bytes that are not UTF-8, or more than 64 KiB; if only some captions of an
/// image are numbered, or their numbers are not 0, 1, … in any order. The error names file and line.
pub fn read_captions(path: &Path) -> Result<Vec<Captions>> {
    let mut images: Vec<(String, Vec<CaptionLine>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut add = |id: &str, line: CaptionLine| {
        let at = *places.entry(id.to_owned()).or_insert_with(|| {
            images.push((id.to_owned(), Vec::new()));
            images.len() - 1
        });
        images[at].1.push(line);
    };
    if let Some(table) = caption_table(path)? {
        for (number, id, text) in table {
            add(&id, CaptionLine { number, place: None, text });
        }
        return images.into_iter().map(|(id, lines)| in_order(path, id, lines)).collect();
    }
    let name = path.display().to_string();
    each_line(&name, BufReader::new(open(path)?), LONGEST, |number, line| {
        let refused = |got: &str| {
            let place = format!("{name} line {number}");
            Err(Error::invalid(place, "an image's id, a tab and a caption", got))
        };
        let Ok(text) = std::str::from_utf8(line) else {
            return refused("bytes that are not UTF-8");
        };
        // A byte order mark is no part of the first id.
        let text = text.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(text);
        if text.trim().is_empty() {
            return Ok(());
        }
        match text.split_once('\t').map(|(id, caption)| (id.trim(), caption.trim())) {
            None => refused("no tab"),
            Some(("", _)) => refused("no id"),
            Some((_, "")) => refused("an empty caption"),
            Some((id, caption)) => {
                let (id, place) = numbered(id).map_or((id, None), |(id, k)| (id, Some(k)));
                add(id, CaptionLine { number, place, text: caption.to_owned() });
                Ok(())
            }
        }
    })?;
    images.into_iter().map(|(id, lines)| in_order(path, id, lines)).collect()
}

/// A caption's line.
struct CaptionLine {
    /// From 1.
    number: usize,
    /// Its number among the captions of the image, if the id has one.
    place: Option<usize>,
    text: String,
}

/// The captions of an image by their numbers, if they have numbers.
fn in_order(path: &Path, id: String, mut lines: Vec<CaptionLine>) -> Result<Captions> {
    if lines.iter().any(|line| line.place.is_some()) {
        lines.sort_by_key(|line| line.place);
        if let Some((k, line)) = lines.iter().enumerate().find(|(k, line)| line.place != Some(*k)) {
            let got = line.place.map_or(id.clone(), |place| format!("{id}#{place}"));
            let place = format!("{} line {}", path.display(), line.number);
            return Err(Error::invalid(place, format!("{id}#{k}, the image's next caption"), got));
        }
    }
    Ok(Captions { id, texts: lines.into_iter().map(|line| line.text).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Vec<Captions>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.tsv");
        std::fs::write(&path, text).unwrap();
        read_captions(&path)
    }

    #[test]
    fn captions_are_grouped_in_the_order_of_the_images() {
        let images = "\u{feff}b\tA dog.\r\na\tA cat.\n \nb \t A\tmutt.";
        let images = read(images.as_bytes()).unwrap();
        let of = |id: &str, texts: &[&str]| Captions {
            id: id.into(),
            texts: texts.iter().map(|&text| text.into()).collect(),
        };
        assert_eq!(images, [of("b", &["A dog.", "A\tmutt."]), of("a", &["A cat."])]);
        assert!(read(b"").unwrap().is_empty());
    }

    /// The form of Flickr's own files, and of the ids that negatives have.
    #[test]
    fn numbered_captions_are_of_one_image() {
        let images = read(b"b.jpg#1\tTwo.\nc#d\tOther.\nb.jpg#0\tOne.\na.jpg#0\tAlone.\n").unwrap();
        let found: Vec<_> = images.iter().map(|i| (i.id.as_str(), i.texts.join(" "))).collect();
        let of = |id, text: &str| (id, text.to_owned());
        assert_eq!(found, [of("b.jpg", "One. Two."), of("c#d", "Other."), of("a.jpg", "Alone.")]);
        for (text, want) in [
            ("b#0\tA\nb#2\tB", "line 2: expected b#1, the image's next caption, got b#2"),
            ("b#0\tA\nb#0\tB", "line 2: expected b#1, the image's next caption, got b#0"),
            ("b#0\tA\nb\tB", "line 2: expected b#0, the image's next caption, got b"),
        ] {
            let line = read(text.as_bytes()).unwrap_err().to_string();
            assert!(line.ends_with(want), "{line}");
        }
    }

    #[test]
    fn tables_that_go_around_are_read() {
        let bars = "image_name| comment_number| comment\nb| 0|\"So\" , a dog .\na| 0| A cat .\nb| 1| Two .\n";
        let comma = "image,caption\nb,\"\"\"So\"\" , a dog .\"\na,A cat .\nb,Two .\n";
        for text in [bars, comma] {
            let found = read(text.as_bytes()).unwrap();
            let found: Vec<_> = found.iter().map(|i| (i.id.as_str(), i.texts.join("/"))).collect();
            assert_eq!(found, [("b", "\"So\" , a dog ./Two .".into()), ("a", "A cat .".into())]);
        }
        let line = read(b"image,caption\na,A cat, a dog\n").unwrap_err().to_string();
        assert!(line.ends_with("c.tsv line 2: expected image,caption (a caption with a comma in quotes), got 3 fields"), "{line}");
    }

    #[test]
    fn errors_name_file_and_line() {
        let long = ["a\t", &"x".repeat(1 << 16)].concat();
        for (bad, said) in [
            (&b"no caption"[..], "no tab"),
            (b"\tno id", "no id"),
            (b"a\t\n", "an empty caption"),
            (b"a\t\xff", "not UTF-8"),
            (long.as_bytes(), "at most 65536 bytes"),
        ] {
            let error = read(&[b"a\tA dog.\n", bad].concat()).unwrap_err().to_string();
            assert!(error.contains("c.tsv line 2") && error.contains(said), "{error}");
        }
        assert!(read_captions(Path::new("/nowhere.tsv")).is_err());
    }
}

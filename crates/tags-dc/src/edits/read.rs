//! Captions of a text file, grouped by image.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use itm_core::{Error, Result};

/// The longest line that is accepted, in bytes.
const LONGEST: u64 = 1 << 16;

/// The captions of one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captions {
    /// The image's id; caption `k` has the id `id#k`.
    pub id: String,
    /// Its captions, in the file's order.
    pub texts: Vec<String>,
}

/// Reads lines of `image_id<TAB>caption`. Images are in the order of their first lines; empty lines are skipped.
///
/// # Errors
/// If the file cannot be read, or a line has no tab, no id, bytes that are not UTF-8, or more than 64 KiB. The error names file and line.
pub fn read_captions(path: &Path) -> Result<Vec<Captions>> {
    let mut lines = BufReader::new(File::open(path).map_err(Error::io(path))?);
    let mut images: Vec<Captions> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let bytes = (&mut lines).take(LONGEST + 1).read_until(b'\n', &mut line);
        if bytes.map_err(Error::io(path))? == 0 {
            break;
        }
        let refused = |got: &str| {
            let place = format!("{} line {number}", path.display());
            Err(Error::invalid(place, "an image's id, a tab and a caption", got))
        };
        if line.len() as u64 > LONGEST {
            return refused("more than 64 KiB");
        }
        let Ok(text) = std::str::from_utf8(line.trim_ascii_end()) else {
            return refused("bytes that are not UTF-8");
        };
        if text.is_empty() {
            continue;
        }
        match text.split_once('\t') {
            None => return refused("no tab"),
            Some(("", _)) => return refused("no id"),
            Some((id, caption)) => {
                let at = *places.entry(id.to_owned()).or_insert_with(|| {
                    images.push(Captions { id: id.to_owned(), texts: Vec::new() });
                    images.len() - 1
                });
                images[at].texts.push(caption.trim().to_owned());
            }
        }
    }
    Ok(images)
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
        let images = read(b"b\tA dog.\r\na\tA cat.\n\nb\t A\tmutt.").unwrap();
        let of = |id: &str, texts: &[&str]| Captions {
            id: id.into(),
            texts: texts.iter().map(|&text| text.into()).collect(),
        };
        assert_eq!(images, [of("b", &["A dog.", "A\tmutt."]), of("a", &["A cat."])]);
        assert!(read(b"").unwrap().is_empty());
    }

    #[test]
    fn errors_name_file_and_line() {
        let long = ["a\t", &"x".repeat(1 << 16)].concat();
        for (bad, said) in [
            (&b"no caption"[..], "no tab"),
            (b"\tno id", "no id"),
            (b"a\t\xff", "not UTF-8"),
            (long.as_bytes(), "64 KiB"),
        ] {
            let error = read(&[b"a\tA dog.\n", bad].concat()).unwrap_err().to_string();
            assert!(error.contains("c.tsv line 2") && error.contains(said), "{error}");
        }
        assert!(read_captions(Path::new("/nowhere.tsv")).is_err());
    }
}

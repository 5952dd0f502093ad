//! The captions of a file, and the images that they name.

use std::collections::HashMap;
use std::path::Path;

use itm_core::files::read_text;
use itm_core::{Error, Result};

/// Captions in the order of the file.
pub(super) struct Captions {
    pub(super) texts: Vec<String>,
    /// The name of the image of each caption, if the file names images.
    pub(super) names: Option<Vec<String>>,
}

impl Captions {
    /// Reads a caption per line: the caption alone, or the name of its image, a tab and the caption. A name may end with `#`
    /// and a number, as in the files of Flickr8k and Flickr30K.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = read_text(path)?;
        let lines: Vec<&str> = text.lines().collect();
        let named = lines.first().is_some_and(|line| line.contains('\t'));
        let (mut texts, mut names) = (vec![], vec![]);
        for (k, line) in lines.iter().enumerate() {
            let refused = |expected: &str, got: &str| {
                let place = format!("{} line {}", path.display(), k + 1);
                Err(Error::invalid(place, expected, got))
            };
            let (name, caption) = match line.split_once('\t') {
                Some(parts) if named => parts,
                None if !named => ("", *line),
                Some(_) => return refused("a caption alone, as in line 1", "a tab"),
                None => return refused("a name, a tab and a caption, as in line 1", "no tab"),
            };
            if caption.trim().is_empty() {
                return refused("a caption", "a blank one");
            }
            texts.push(caption.trim().to_owned());
            names.push(match name.rsplit_once('#') {
                Some((stem, number)) if number.parse::<u32>().is_ok() => stem.to_owned(),
                _ => name.to_owned(),
            });
        }
        if texts.is_empty() {
            return Err(Error::invalid(path.display(), "a caption on each line", "an empty file"));
        }
        Ok(Self { texts, names: named.then_some(names) })
    }

    /// The number of each caption's image among `images`, for those whose image is there.
    ///
    /// # Errors
    /// If a caption's image is neither among the images nor among those that were left out.
    pub(super) fn images(
        &self,
        path: &Path,
        images: &[&str],
        left_out: &[&str],
    ) -> Result<Option<Vec<Option<usize>>>> {
        let Some(names) = &self.names else { return Ok(None) };
        let by_name: HashMap<&str, usize> =
            images.iter().enumerate().map(|(i, n)| (*n, i)).collect();
        let number = |(k, name): (usize, &String)| {
            let found = by_name.get(name.as_str()).copied();
            if found.is_some() || left_out.contains(&name.as_str()) {
                return Ok(found);
            }
            let place = format!("{} line {}", path.display(), k + 1);
            let expected = format!("one of the {} pictures", images.len());
            Err(Error::invalid(place, expected, name))
        };
        names.iter().enumerate().map(number).collect::<Result<_>>().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> Result<Captions, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("captions.txt");
        fs::write(&path, text).unwrap();
        let line = |e: Error| e.to_string().replace(&*path.display().to_string(), "FILE");
        Captions::read(&path).map_err(line)
    }

    #[test]
    fn lines_are_captions_with_or_without_names() {
        let plain = read("\u{feff}A dog runs.\r\n two cats \n").unwrap();
        assert_eq!(
            (plain.texts, plain.names),
            (vec!["A dog runs.".into(), "two cats".into()], None)
        );
        let named = read("a.jpg#0\tA dog.\nb#c.jpg#12\tA cat.\nd.jpg\tA man.\n").unwrap();
        let (path, images) = (Path::new("FILE"), ["d.jpg", "a.jpg"]);
        let found = named.images(path, &images, &["b#c.jpg"]).unwrap();
        assert_eq!(found, Some(vec![Some(1), None, Some(0)]));
        let error = named.images(path, &images, &[]).unwrap_err().to_string();
        assert_eq!(error, "FILE line 2: expected one of the 2 pictures, got b#c.jpg");
    }

    #[test]
    fn faulty_lines_are_named() {
        for (text, want) in [
            ("", "FILE: expected a caption on each line, got an empty file"),
            ("a\n\nb", "FILE line 2: expected a caption, got a blank one"),
            (
                "a.jpg\tx\ny",
                "FILE line 2: expected a name, a tab and a caption, as in line 1, got no tab",
            ),
            ("x\na.jpg\ty", "FILE line 2: expected a caption alone, as in line 1, got a tab"),
        ] {
            assert_eq!(read(text).err().unwrap(), want);
        }
    }
}

//! The captions of a file, the images that they name, and their rows.

use std::path::Path;

use itm_core::data::{caption_table, numbered};
use itm_core::encoders::Embedder;
use itm_core::files::{excerpt, read_text};
use itm_core::{Error, Result};

use super::pictures::RowOf;
use super::rows::{RowFile, RowFiles, Tally};
use crate::cli::EmbedArgs;

/// Captions in the order of the file.
pub(crate) struct CaptionList {
    pub(crate) texts: Vec<String>,
    /// The name of the image of each caption, if the file names images.
    pub(crate) names: Option<Vec<String>>,
    /// The line of each caption.
    pub(crate) lines: Vec<usize>,
}

impl CaptionList {
    /// Reads a caption per line: the caption alone, or the name of its image, a tab and the caption. A name may end with `#`
    /// and a number, as in the files of Flickr8k and Flickr30K; their tables are read too.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        if let Some(table) = caption_table(path)? {
            let (lines, names, texts): (_, Vec<_>, _) = table.into_iter().collect();
            return Ok(Self { texts, names: Some(names), lines });
        }
        let text = read_text(path)?;
        let lines: Vec<&str> = text.lines().collect();
        let named = lines.first().is_some_and(|line| line.contains('\t'));
        if let Some(first) = lines.first().filter(|line| is_of_another_form(line)) {
            let place = format!("{} line 1", path.display());
            return Err(Error::invalid(place, FORMS, excerpt(first)));
        }
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
            names.push(numbered(name).map_or(name, |(image, _)| image).to_owned());
        }
        let expected = "a caption on each line";
        Error::unless(!texts.is_empty(), path.display(), expected, "an empty file")?;
        let lines = (1..=texts.len()).collect();
        Ok(Self { texts, names: named.then_some(names), lines })
    }

    /// The row of each caption's image, where the image has one; `None` if the captions name no images.
    ///
    /// # Errors
    /// If a caption's image is not among the names of `rows`, or most lines are such a name, alone or before a comma, a bar or a semicolon.
    pub(crate) fn images(&self, path: &Path, rows: &RowOf) -> Result<Option<Vec<Option<usize>>>> {
        let Some(names) = &self.names else {
            let begins = |text: &&String| {
                let name = text.split([',', '|', ';']).next().unwrap_or_default().trim();
                rows.contains_key(numbered(name).map_or(name, |(image, _)| image))
            };
            if self.texts.iter().filter(begins).count() * 2 > self.texts.len() {
                let place = format!("{} line 1", path.display());
                return Err(Error::invalid(place, FORMS, excerpt(&self.texts[0])));
            }
            return Ok(None);
        };
        let row = |(k, name): (usize, &String)| {
            rows.get(name.as_str()).copied().ok_or_else(|| {
                let place = format!("{} line {}", path.display(), self.lines[k]);
                Error::invalid(place, format!("one of the {} pictures", rows.len()), name)
            })
        };
        names.iter().enumerate().map(row).collect::<Result<_>>().map(Some)
    }

    /// Writes the rows of the chosen captions.
    pub(super) fn write(
        &self,
        args: &EmbedArgs,
        embedder: &Embedder,
        chosen: &[usize],
        file: RowFile,
    ) -> Result<Tally> {
        if let Some(done) = RowFiles::finished(&file.path) {
            return Ok(done);
        }
        let mut rows = RowFiles::open(vec![file])?;
        let bar = rows.bar("captions", chosen.len());
        for part in chosen[rows.done.items..].chunks(Embedder::SORTED) {
            let texts: Vec<&str> = part.iter().map(|&k| &*self.texts[k]).collect();
            let (got, cut) = embedder.captions(&texts, args.batch, |n| bar.inc(n as u64))?;
            let mut done = rows.done.clone();
            done.items += part.len();
            done.rows += part.len();
            done.cut += cut;
            rows.add(&[&got], done)?;
            rows.stop_if_asked("caption", chosen.len())?;
        }
        rows.finish()
    }
}

const FORMS: &str = "a caption on each line, alone or after a name and a tab, or a table with the head image,caption or \
                     image_name| comment_number| comment";

/// Whether a first line begins JSON, or is the head of a table that is not read.
fn is_of_another_form(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let fields: Vec<&str> =
        line.split([',', '|', ';', '\t']).map(|f| f.trim_matches([' ', '"'])).collect();
    let any = |names: &[&str]| fields.iter().any(|field| names.contains(field));
    let named =
        any(&["image", "image_name", "image_id", "filename", "file_name", "file", "filepath"]);
    line.starts_with(['{', '['])
        || named && any(&["caption", "captions", "text", "comment", "title"])
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs;

    use super::*;

    fn read(text: &str) -> Result<CaptionList, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("captions.txt");
        fs::write(&path, text).unwrap();
        let line = |e: Error| e.to_string().replace(&*path.display().to_string(), "FILE");
        CaptionList::read(&path).map_err(line)
    }

    #[test]
    fn lines_are_captions_with_or_without_names() {
        let plain = read("\u{feff}A dog runs.\r\n two cats \n").unwrap();
        assert_eq!(
            (plain.texts, plain.names),
            (vec!["A dog runs.".into(), "two cats".into()], None)
        );
        let named = read("a.jpg#0\tA dog.\nb#c.jpg#12\tA cat.\nd.jpg\tA man.\n").unwrap();
        let path = Path::new("FILE");
        let mut rows = HashMap::from([("d.jpg", Some(0)), ("a.jpg", Some(1)), ("b#c.jpg", None)]);
        let found = named.images(path, &rows).unwrap();
        assert_eq!(found, Some(vec![Some(1), None, Some(0)]));
        let table = read("image,caption\nb#c.jpg,\"A dog, a cat.\"\nd.jpg,A man.\n").unwrap();
        assert_eq!(table.texts, ["A dog, a cat.", "A man."]);
        assert_eq!(table.images(path, &rows).unwrap(), Some(vec![None, Some(0)]));
        rows.remove("b#c.jpg");
        let error = table.images(path, &rows).unwrap_err().to_string();
        assert_eq!(error, "FILE line 2: expected one of the 2 pictures, got b#c.jpg");
        let error = named.images(path, &rows).unwrap_err().to_string();
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
        for first in [
            r#"{"images": []}"#,
            "[1]",
            "filename,caption",
            "file_name\ttext",
            "Image_Name | comment_number | comment | more",
        ] {
            let want = format!("FILE line 1: expected {FORMS}, got {}", excerpt(first));
            assert_eq!(read(&format!("{first}\nA.JPG,a dog\n")).err().unwrap(), want);
        }
        read("an image, a text\nthe caption of an image\n").unwrap();
    }

    /// Without a head, the names of the pictures show that a file is a table.
    #[test]
    fn names_before_commas_are_no_captions() {
        let rows = HashMap::from([("A.JPG", Some(0)), ("b.jpg", None)]);
        let line =
            |text| read(text).unwrap().images(Path::new("FILE"), &rows).map_err(|e| e.to_string());
        for text in ["A.JPG,a dog\nb.jpg,a cat\n", "A.JPG#0| a dog\n"] {
            let want = format!("FILE line 1: expected {FORMS}, got \"A.JPG");
            assert!(line(text).unwrap_err().starts_with(&want));
        }
        assert_eq!(line("A dog, a cat\nA.JPG, it says\n"), Ok(None));
    }
}

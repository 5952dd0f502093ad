//! The pictures of a folder or of a list.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use itm_core::data::sha256_hex;
use itm_core::files::read_text;
use itm_core::{Error, Result};

use crate::cli::Shard;

/// The pictures of a folder or of a list.
pub(super) struct Pictures {
    pub(super) folder: PathBuf,
    pub(super) names: Vec<String>,
    /// Those of the other shards.
    pub(super) elsewhere: Vec<String>,
    /// SHA-256 over names and lengths of the files.
    pub(super) hash: String,
}

pub(super) fn pictures(path: &Path, shard: Option<Shard>) -> Result<Pictures> {
    let (folder, all) = match path.is_dir() {
        true => (path.to_path_buf(), found(path)?),
        false => (path.parent().unwrap_or(Path::new("")).to_path_buf(), listed(path)?),
    };
    let part = shard.map_or(0..all.len(), |shard| shard.part(all.len()));
    let (mut names, mut elsewhere) = (vec![], vec![]);
    for (i, name) in all.into_iter().enumerate() {
        if part.contains(&i) { names.push(name) } else { elsewhere.push(name) }
    }
    let line = |name: &String| {
        let length = folder.join(name).metadata().map_or(0, |file| file.len());
        format!("{length}  {name}\n")
    };
    let hash = sha256_hex(names.iter().map(line).collect::<String>().as_bytes());
    Ok(Pictures { folder, names, elsewhere, hash })
}

/// The names of a list; refuses a name that occurs twice.
fn listed(file: &Path) -> Result<Vec<String>> {
    let text = read_text(file)?;
    let mut seen = HashSet::new();
    for (i, name) in text.lines().enumerate() {
        let place = format!("{} line {}", file.display(), i + 1);
        if name.trim().is_empty() {
            return Err(Error::invalid(place, "a file name", "an empty line"));
        }
        if !seen.insert(name) {
            return Err(Error::invalid(place, "each picture once", format!("a second {name}")));
        }
    }
    if seen.is_empty() {
        return Err(Error::invalid(file.display(), "a file name on each line", "an empty file"));
    }
    Ok(text.lines().map(str::to_owned).collect())
}

/// The files of a folder that end like pictures, sorted by name.
fn found(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        let end = path.extension().unwrap_or_default().to_ascii_lowercase();
        if ["jpg", "jpeg", "png", "webp"].iter().any(|e| end == *e) && path.is_file() {
            let name = path.file_name().unwrap_or_default().to_str();
            let name = name.filter(|n| !n.contains(char::is_control));
            let refuse =
                || Error::invalid(path.display(), "a name of one line in UTF-8", "another");
            names.push(name.ok_or_else(refuse)?.to_owned());
        }
    }
    if names.is_empty() {
        let expected = "pictures (.jpg, .jpeg, .png, .webp)";
        return Err(Error::invalid(folder.display(), expected, "none"));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only pictures, in the order of their names; a list has its own order. Each picture stands in one part.
    #[test]
    fn pictures_of_a_folder_and_of_a_list() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["c.png", "a.JPG", "b.webp", "notes.txt"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let of = |path: &Path, shard| {
            let found = pictures(path, shard).unwrap();
            (found.names, found.elsewhere, found.hash)
        };
        let (names, elsewhere, whole) = of(dir.path(), None);
        assert_eq!(
            (names, elsewhere.len()),
            (vec!["a.JPG".into(), "b.webp".into(), "c.png".into()], 0)
        );
        let (names, elsewhere, _) = of(dir.path(), Some(Shard { number: 2, of: 2 }));
        assert_eq!((names.len(), elsewhere), (2, vec!["a.JPG".to_owned()]));
        let list = dir.path().join("list.txt");
        fs::write(&list, "c.png\na.JPG\n").unwrap();
        let (names, _, hash) = of(&list, None);
        assert_eq!(names, ["c.png", "a.JPG"]);
        assert_ne!(hash, whole);
        for (text, want) in [
            ("a.JPG\na.JPG\n", "list.txt line 2: expected each picture once, got a second a.JPG"),
            ("a.JPG\n\n", "list.txt line 2: expected a file name, got an empty line"),
            ("", "list.txt: expected a file name on each line, got an empty file"),
        ] {
            fs::write(&list, text).unwrap();
            let line = pictures(&list, None).err().unwrap().to_string();
            assert!(line.ends_with(want), "{line}");
        }
        let none = tempfile::tempdir().unwrap();
        let line = pictures(none.path(), None).err().unwrap().to_string();
        assert!(line.ends_with("expected pictures (.jpg, .jpeg, .png, .webp), got none"), "{line}");
    }
}

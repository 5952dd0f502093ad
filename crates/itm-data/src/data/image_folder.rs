//! Finds the picture of an image.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::Karpathy;
use crate::files::{self, file_name};

/// Finds pictures by name, for reports.
#[derive(Debug, Clone, Default)]
pub struct ImageFolder {
    dir: PathBuf,
    listed: HashMap<String, PathBuf>,
}

impl ImageFolder {
    /// The pictures below `dir`: where the JSON says, or else in `images` or in `dir` itself.
    pub(crate) fn new(dir: impl AsRef<Path>, json: Option<&Karpathy>) -> Self {
        let dir = dir.as_ref();
        let images = json.map(|json| json.images.as_slice()).unwrap_or_default();
        Self::listed(dir, images.iter().map(|i| (i.filename.clone(), i.path(dir))))
    }

    /// Pictures below `dir` with known paths.
    pub(crate) fn listed(dir: &Path, listed: impl Iterator<Item = (String, PathBuf)>) -> Self {
        Self { dir: dir.to_path_buf(), listed: listed.collect() }
    }

    /// The picture's path, if there is such a file in the folder; links out of the folder are not followed.
    pub fn image_path(&self, name: &str) -> Option<PathBuf> {
        let listed = self.listed.get(name).cloned();
        // A listed name with a folder tells two pictures of one base name apart.
        let base = !(listed.is_some() && name.contains('/'));
        let guessed = ["images", ""].map(|sub| self.dir.join(sub).join(file_name(name)));
        let places: Vec<_> =
            listed.into_iter().chain(guessed.into_iter().filter(|_| base)).collect();
        let found = places.iter().find(|path| path.is_file()).cloned();
        let found = found.or_else(|| places.iter().find_map(|path| other_case(path)));
        found.filter(|path| self.leads_out(path).is_none())
    }

    /// Where a picture's path leads, if that is out of the folder: a link in a folder of a stranger can name any file.
    pub(crate) fn leads_out(&self, path: &Path) -> Option<PathBuf> {
        let real = path.canonicalize().ok()?;
        let folder = self.dir.canonicalize().ok()?;
        (!real.starts_with(folder)).then_some(real)
    }

    /// The first place where a picture is looked for.
    pub(crate) fn tried(&self, name: &str) -> PathBuf {
        let guessed = || self.dir.join("images").join(file_name(name));
        self.listed.get(name).cloned().unwrap_or_else(guessed)
    }
}

/// The only file beside `path` whose name differs from its name in case alone: `1.JPG` for `1.jpg`.
fn other_case(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let alike =
        |other: &PathBuf| other.file_name().is_some_and(|other| other.eq_ignore_ascii_case(name));
    let mut found = files::entries(path.parent()?).ok()?.into_iter().filter(alike);
    match (found.next(), found.next()) {
        (Some(one), None) if one.is_file() => Some(one),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::CaptionRule;

    #[test]
    fn finds_listed_and_guessed_pictures() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["val2014/a.jpg", "images/b.jpg", "c.jpg"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let json = r#"{"images": [{"filepath": "val2014", "filename": "a.jpg", "split": "val",
            "sentences": [{"raw": "x"}]}]}"#;
        let json = Karpathy::parse("k", json.as_bytes(), CaptionRule::All).unwrap();
        let folder = ImageFolder::new(dir.path(), Some(&json));
        assert_eq!(folder.image_path("a.jpg"), Some(dir.path().join("val2014").join("a.jpg")));
        assert_eq!(folder.image_path("b.jpg"), Some(dir.path().join("images").join("b.jpg")));
        assert_eq!(folder.image_path("c.jpg"), Some(dir.path().join("c.jpg")));
        assert_eq!(folder.image_path("../c.jpg"), Some(dir.path().join("c.jpg")));
        assert_eq!(folder.image_path("C.JPG"), Some(dir.path().join("c.jpg")));
        assert_eq!(folder.image_path("d.jpg"), None);
        assert_eq!(folder.image_path("images"), None);
    }
}

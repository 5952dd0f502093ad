//! Finds the picture of an image.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::Karpathy;
use crate::files::file_name;

/// Finds pictures by name, for reports.
#[derive(Debug, Clone, Default)]
pub struct ImageFolder {
    dir: PathBuf,
    listed: HashMap<String, PathBuf>,
}

impl ImageFolder {
    /// The pictures below `dir`: where the JSON says, or else in `images` or in `dir` itself.
    pub fn new(dir: impl AsRef<Path>, json: Option<&Karpathy>) -> Self {
        let dir = dir.as_ref();
        let images = json.map(|json| json.images.as_slice()).unwrap_or_default();
        Self::listed(dir, images.iter().map(|i| (i.filename.clone(), i.path(dir))))
    }

    /// Pictures below `dir` with known paths.
    pub(crate) fn listed(dir: &Path, listed: impl Iterator<Item = (String, PathBuf)>) -> Self {
        Self { dir: dir.to_path_buf(), listed: listed.collect() }
    }

    /// The picture's path, if there is such a file.
    pub fn image_path(&self, name: &str) -> Option<PathBuf> {
        let listed = self.listed.get(name).cloned();
        let guessed = ["images", ""].map(|sub| self.dir.join(sub).join(file_name(name)));
        listed.into_iter().chain(guessed).find(|path| path.is_file())
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
        assert_eq!(folder.image_path("d.jpg"), None);
        assert_eq!(folder.image_path("images"), None);
    }
}

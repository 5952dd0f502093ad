//! Finds the picture of an image.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::Karpathy;
use crate::files::{self, file_name};

/// Finds pictures by name, for reports.
#[derive(Debug, Clone, Default)]
pub struct ImageFolder {
    dir: PathBuf,
    listed: HashMap<String, PathBuf>,
    /// The files of each folder in which a name was not found. Each is listed once.
    folders: Arc<Mutex<HashMap<PathBuf, FilesByName>>>,
}

/// Files by their names in small letters; `None` if several have a name.
type FilesByName = HashMap<String, Option<PathBuf>>;

impl ImageFolder {
    /// The pictures below `dir`: where the JSON says, or else in `images` or in `dir` itself.
    pub(crate) fn new(dir: impl AsRef<Path>, json: Option<&Karpathy>) -> Self {
        let dir = dir.as_ref();
        let images = json.map(|json| json.images.as_slice()).unwrap_or_default();
        Self::listed(dir, images.iter().map(|i| (i.filename.clone(), i.path(dir))))
    }

    /// Pictures below `dir` with known paths.
    pub(crate) fn listed(dir: &Path, listed: impl Iterator<Item = (String, PathBuf)>) -> Self {
        let (dir, listed) = (dir.to_path_buf(), listed.collect());
        Self { dir, listed, folders: Arc::default() }
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
        let found = found.or_else(|| places.iter().find_map(|path| self.other_case(path)));
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

    /// The only file beside `path` whose name differs from its name in case alone: `1.JPG` for `1.jpg`.
    fn other_case(&self, path: &Path) -> Option<PathBuf> {
        let (name, folder) = (path.file_name()?.to_str()?.to_ascii_lowercase(), path.parent()?);
        let mut folders = self.folders.lock().expect("no panic under this lock");
        let files = folders.entry(folder.to_owned()).or_insert_with(|| by_name(folder));
        files.get(&name)?.clone().filter(|one| one.is_file())
    }
}

/// The files of a folder; none if it cannot be read.
fn by_name(folder: &Path) -> FilesByName {
    let mut files = FilesByName::new();
    for path in files::entries(folder).unwrap_or_default() {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let one = files.entry(name.to_ascii_lowercase());
        one.and_modify(|one| *one = None).or_insert(Some(path));
    }
    files
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
        // A folder is listed once: a list of many missing pictures listed it for each of them.
        std::fs::write(dir.path().join("D.JPG"), "x").unwrap();
        assert_eq!(folder.image_path("d.jpg"), None);
        assert_eq!(folder.image_path("D.JPG"), Some(dir.path().join("D.JPG")));
        let again = ImageFolder::new(dir.path(), Some(&json));
        assert_eq!(again.image_path("d.jpg"), Some(dir.path().join("D.JPG")));
    }
}

//! Embeddings of another program: `image.npy`, `text.npy` and, where there is one, `text_to_image.npy`.

use std::fmt;
use std::path::{Path, PathBuf};

use super::files::Manifest;
use super::npy_header::Dtype;
use super::{Features, Npy};
use crate::{Error, Pairs, Result};

/// Embeddings of images and texts, and which belong together.
#[derive(Debug, Clone)]
pub struct EmbeddingPair {
    /// One row an image.
    pub images: Features,
    /// One row a text, of the same width.
    pub texts: Features,
    /// Which texts belong to which image.
    pub pairs: Pairs,
    /// How that is known; to be said in reports.
    pub pairs_from: PairsFrom,
    /// Every file that was read.
    pub manifest: Manifest,
}

/// How the pairs are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairsFrom {
    /// `text_to_image.npy` says it.
    File,
    /// Guessed from the shapes: text `t` belongs to image `t / n`.
    Shapes {
        /// Texts of an image.
        captions_per_image: usize,
    },
}

impl fmt::Display for PairsFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => write!(f, "pairs from text_to_image.npy"),
            Self::Shapes { captions_per_image: n } => {
                write!(f, "pairs guessed from the shapes: {n} texts an image, in order")
            }
        }
    }
}

/// Where the embeddings lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingFiles {
    /// `[images, d]`; for i8 or u8 with `<name>_scale.npy` beside it.
    pub image: PathBuf,
    /// `[texts, d]`; the same.
    pub text: PathBuf,
    /// `[texts]` integers: the image row of each text.
    pub text_to_image: Option<PathBuf>,
}

impl EmbeddingFiles {
    /// The files of a folder, under their usual names.
    pub fn of(dir: impl AsRef<Path>) -> Self {
        let file = |name: &str| dir.as_ref().join(name);
        let text_to_image = Some(file("text_to_image.npy")).filter(|path| path.exists());
        Self { image: file("image.npy"), text: file("text.npy"), text_to_image }
    }

    /// Reads them.
    ///
    /// # Errors
    /// Missing or malformed files, different widths, a text that names no image, and without `text_to_image` a number
    /// of texts that is no multiple of that of the images.
    pub fn load(&self) -> Result<EmbeddingPair> {
        let root = self.image.parent().unwrap_or(Path::new(""));
        let mut manifest = Manifest::default();
        let images = embeddings(root, &self.image, &mut manifest)?;
        let texts = embeddings(root, &self.text, &mut manifest)?;
        if images.dim != texts.dim {
            let expected = format!("rows of {} numbers, as {}", images.dim, self.image.display());
            return Err(Error::invalid(self.text.display(), expected, texts.dim));
        }
        let (pairs, pairs_from) = match &self.text_to_image {
            Some(path) => {
                let pairs = read_pairs(root, path, images.rows(), texts.rows(), &mut manifest)?;
                (pairs, PairsFrom::File)
            }
            None if texts.rows().is_multiple_of(images.rows()) => {
                let captions_per_image = texts.rows() / images.rows();
                let pairs = Pairs::uniform(images.rows(), captions_per_image);
                (pairs, PairsFrom::Shapes { captions_per_image })
            }
            None => {
                let expected = format!(
                    "a multiple of the {} rows of {} (or a text_to_image.npy)",
                    images.rows(),
                    self.image.display()
                );
                let got = format!("{} rows", texts.rows());
                return Err(Error::invalid(self.text.display(), expected, got));
            }
        };
        Ok(EmbeddingPair { images, texts, pairs, pairs_from, manifest })
    }
}

fn embeddings(root: &Path, path: &Path, manifest: &mut Manifest) -> Result<Features> {
    let mut npy = Npy::open(path)?;
    manifest.add(root, path, npy.file_bytes());
    match npy.dtype() {
        Dtype::F16 | Dtype::F32 | Dtype::F64 => {}
        Dtype::I8 | Dtype::U8 => {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let beside = path.with_file_name(format!("{stem}_scale.npy"));
            let scale = Npy::open(&beside)?;
            manifest.add(root, &beside, scale.file_bytes());
            npy = npy.with_scale(scale.to_vec()?)?;
        }
        other @ (Dtype::I32 | Dtype::I64) => {
            return Err(Error::invalid(
                npy.place(),
                "embeddings of f16, f32, f64, i8 or u8",
                other,
            ));
        }
    }
    npy.to_features()
}

fn read_pairs(
    root: &Path,
    path: &Path,
    images: usize,
    texts: usize,
    manifest: &mut Manifest,
) -> Result<Pairs> {
    let npy = Npy::open(path)?;
    manifest.add(root, path, npy.file_bytes());
    let image_of_text = npy.to_indices()?;
    if image_of_text.len() != texts {
        let got = format!("{} rows", image_of_text.len());
        return Err(Error::invalid(npy.place(), format!("a row for each of {texts} texts"), got));
    }
    if let Some(text) = image_of_text.iter().position(|&image| image >= images) {
        let place = format!("{} row {text}", npy.place());
        return Err(Error::invalid(place, format!("an image below {images}"), image_of_text[text]));
    }
    let pairs = Pairs::new(images, image_of_text)?;
    match (0..images).find(|&image| pairs.texts_of(image).is_empty()) {
        None => Ok(pairs),
        Some(image) => {
            let got = format!("none for image {image}");
            Err(Error::invalid(npy.place(), "a text for every image", got))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::data::fixture::{npy, npy_of};

    fn folder(image: Vec<u8>, text: Vec<u8>) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("image.npy"), image).unwrap();
        fs::write(dir.path().join("text.npy"), text).unwrap();
        dir
    }

    fn values(n: usize) -> impl Iterator<Item = f32> {
        (0..n).map(|i| i as f32)
    }

    fn load(dir: &TempDir) -> Result<EmbeddingPair> {
        EmbeddingFiles::of(dir.path()).load()
    }

    fn error(dir: &TempDir) -> String {
        load(dir).unwrap_err().to_string().replace(&format!("{}/", dir.path().display()), "")
    }

    #[test]
    fn shapes_say_how_many_texts_an_image_has() {
        let dir = folder(npy(&[2, 3], values(6)), npy(&[6, 3], values(18)));
        let pair = load(&dir).unwrap();
        assert_eq!(pair.pairs, Pairs::uniform(2, 3));
        assert_eq!(pair.pairs_from, PairsFrom::Shapes { captions_per_image: 3 });
        assert_eq!(
            pair.pairs_from.to_string(),
            "pairs guessed from the shapes: 3 texts an image, in order"
        );
        assert_eq!(pair.texts.row(5), [15.0, 16.0, 17.0]);
        assert_eq!(pair.manifest.files.len(), 2);
    }

    #[test]
    fn a_file_of_pairs_goes_first() {
        let dir = folder(npy(&[2, 3], values(6)), npy(&[4, 3], values(12)));
        let write = |rows: [i32; 4]| {
            let bytes = rows.into_iter().flat_map(i32::to_le_bytes);
            fs::write(dir.path().join("text_to_image.npy"), npy_of("<i4", &[4], bytes)).unwrap();
        };
        write([1, 0, 1, 1]);
        let pair = load(&dir).unwrap();
        assert_eq!(
            (pair.pairs.texts_of(1), pair.pairs_from),
            ([0, 2, 3].as_slice(), PairsFrom::File)
        );
        assert_eq!(pair.manifest.files.len(), 3);
        write([1, 0, 2, 1]);
        assert_eq!(error(&dir), "text_to_image.npy row 2: expected an image below 2, got 2");
        write([1, 0, -1, 1]);
        assert_eq!(error(&dir), "text_to_image.npy row 2: expected a row number, got -1");
        write([1, 1, 1, 1]);
        assert_eq!(
            error(&dir),
            "text_to_image.npy: expected a text for every image, got none for image 0"
        );
        fs::write(dir.path().join("text_to_image.npy"), npy_of("|u1", &[3], [0, 1, 0])).unwrap();
        assert_eq!(
            error(&dir),
            "text_to_image.npy: expected a row for each of 4 texts, got 3 rows"
        );
        fs::write(dir.path().join("text_to_image.npy"), npy(&[4], values(4))).unwrap();
        assert_eq!(error(&dir), "text_to_image.npy: expected integers, got f32");
    }

    #[test]
    fn bytes_come_with_a_scale() {
        let dir = folder(npy_of("|i1", &[1, 2], [255, 3]), npy_of("|u1", &[1, 2], [255, 3]));
        assert!(error(&dir).starts_with("image_scale.npy: No such file"));
        fs::write(dir.path().join("image_scale.npy"), npy(&[2], [2.0, 0.5])).unwrap();
        fs::write(dir.path().join("text_scale.npy"), npy(&[1], [2.0])).unwrap();
        let pair = load(&dir).unwrap();
        assert_eq!((pair.images.values, pair.texts.values), (vec![-2.0, 1.5], vec![510.0, 6.0]));
        assert_eq!(pair.manifest.files.len(), 4);
    }

    #[test]
    fn faults_have_their_line() {
        let image = || npy(&[2, 3], values(6));
        let nan = npy(&[2, 3], values(6).map(|v| if v == 4.0 { f32::INFINITY } else { v }));
        for (image, text, want) in [
            (
                image(),
                npy(&[4, 2], values(8)),
                "text.npy: expected rows of 3 numbers, as image.npy, got 2",
            ),
            (
                image(),
                npy(&[3, 3], values(9)),
                "text.npy: expected a multiple of the 2 rows of image.npy (or a text_to_image.npy), got 3 rows",
            ),
            (image(), npy(&[1, 3], values(3)), "text.npy: expected a multiple of the 2 rows"),
            (nan, image(), "image.npy row 1, column 1: expected a finite number, got inf"),
            (npy(&[6], values(6)), image(), "image.npy: expected an array of rank 2, got rank 1"),
            (npy_of("<i4", &[2, 3], [0; 24]), image(), "image.npy: expected embeddings of f16"),
            (npy(&[0, 3], values(0)), image(), "image.npy: expected an array that is not empty"),
        ] {
            let line = error(&folder(image, text));
            assert!(line.contains(want), "{line}");
        }
    }

    proptest! {
        #[test]
        fn changed_files_give_an_answer(at in 0..96usize, byte: u8, text: bool) {
            let mut files = [npy(&[2, 3], values(6)), npy(&[4, 3], values(12))];
            files[usize::from(text)][at] = byte;
            let [image, text] = files;
            let _ = load(&folder(image, text));
        }
    }
}

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

//! Turns the pictures of a batch from files into the floats of a tensor.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use image::RgbImage;

use super::prefetch::caught;
use super::{Augment, Transform};
use crate::data::decode_image;
use crate::{Error, Result};

/// One picture of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Where its pixels are.
    pub source: PictureSource,
    /// Decides the augmentation; evaluation ignores it.
    pub seed: u64,
}

/// Where the pixels of a picture are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PictureSource {
    /// In a JPEG, PNG or WebP file.
    File(PathBuf),
    /// In memory.
    Decoded(Arc<RgbImage>),
}

impl PictureSource {
    fn pixels(&self) -> Result<Cow<'_, RgbImage>> {
        match self {
            Self::File(path) => decode_image(path).map(Cow::Owned),
            Self::Decoded(image) => Ok(Cow::Borrowed(image)),
        }
    }

    fn place(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Decoded(image) => format!("a picture of {} × {}", image.width(), image.height()),
        }
    }
}

/// A batch of pictures, ready for an encoder.
///
/// It can be prepared by [`Prefetch`](super::Prefetch):
///
/// ```no_run
/// use itm_data::vision::{Ahead, Augment, Picture, PictureBatch, Prefetch};
///
/// let batches: Vec<Vec<Picture>> = vec![];
/// let augment = Augment::default();
/// let ahead = Ahead { workers: 2, results: 4 };
/// for batch in Prefetch::new(batches, ahead, move |p| PictureBatch::training(&p, &augment)) {
///     let PictureBatch { images, size, values } = batch?; // a tensor [images, 3, size, size]
/// }
/// # Ok::<(), itm_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PictureBatch {
    /// Number of pictures.
    pub images: usize,
    /// Their width and height.
    pub size: usize,
    /// `[images, 3, size, size]`.
    pub values: Vec<f32>,
}

impl PictureBatch {
    /// Decodes the pictures, augments each with its seed, and normalises.
    ///
    /// # Errors
    /// If the size is 0, or a file cannot be decoded or a decoder panics: one line that names the file.
    pub fn training(pictures: &[Picture], augment: &Augment) -> Result<Self> {
        Self::of(pictures, augment.transform, |image, seed, out| augment.apply(image, seed, out))
    }

    /// Decodes, resizes and normalises the pictures.
    ///
    /// # Errors
    /// As [`PictureBatch::training`].
    pub fn evaluation(pictures: &[Picture], transform: &Transform) -> Result<Self> {
        Self::of(pictures, *transform, |image, _, out| transform.apply(image, out))
    }

    fn of(
        pictures: &[Picture],
        transform: Transform,
        floats: impl Fn(&RgbImage, u64, &mut [f32]),
    ) -> Result<Self> {
        Error::unless(!transform.is_empty(), "size of pictures", "at least 1", 0)?;
        let mut values = vec![0.0; pictures.len() * transform.len()];
        for (picture, out) in pictures.iter().zip(values.chunks_exact_mut(transform.len())) {
            caught(picture.source.place(), || {
                floats(&*picture.source.pixels()?, picture.seed, out);
                Ok(())
            })?;
        }
        Ok(Self { images: pictures.len(), size: transform.size as usize, values })
    }
}

#[cfg(test)]
mod tests;

//! Pictures of a batch, from files to the floats of a tensor.

use std::path::PathBuf;

use image::RgbImage;

use super::prefetch::caught;
use super::{Augment, Transform};
use crate::Result;
use crate::data::decode_image;

/// One picture of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// JPEG or PNG.
    pub path: PathBuf,
    /// Decides the augmentation; evaluation takes no notice.
    pub seed: u64,
}

/// A batch as an encoder takes it.
///
/// A job of [`Prefetch`](super::Prefetch):
///
/// ```no_run
/// use itm_core::vision::{Ahead, Augment, Picture, PictureBatch, Prefetch};
///
/// let batches: Vec<Vec<Picture>> = vec![];
/// let augment = Augment::default();
/// let ahead = Ahead { workers: 2, results: 4 };
/// for batch in Prefetch::new(batches, ahead, move |p| PictureBatch::training(&p, &augment)) {
///     let PictureBatch { images, size, values } = batch?; // a tensor [images, 3, size, size]
/// }
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PictureBatch {
    /// Pictures.
    pub images: usize,
    /// Their width and height.
    pub size: usize,
    /// `[images, 3, size, size]`.
    pub values: Vec<f32>,
}

impl PictureBatch {
    /// Decodes, augments by each picture's seed, normalises.
    ///
    /// # Errors
    /// If a file cannot be decoded; one line that names it, whatever went wrong, a panic of a decoder included.
    pub fn training(pictures: &[Picture], augment: &Augment) -> Result<Self> {
        Self::of(pictures, augment.transform, |image, seed, out| augment.apply(image, seed, out))
    }

    /// Decodes, resizes, normalises.
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
        let mut values = vec![0.0; pictures.len() * transform.len()];
        for (picture, out) in pictures.iter().zip(values.chunks_exact_mut(transform.len())) {
            caught(picture.path.display(), || {
                floats(&decode_image(&picture.path)?, picture.seed, out);
                Ok(())
            })?;
        }
        Ok(Self { images: pictures.len(), size: transform.size as usize, values })
    }
}

#[cfg(test)]
mod tests;

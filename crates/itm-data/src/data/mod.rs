//! Data sets: what a split holds, and the loaders that fill it.
//!
//! | data | reader |
//! |---|---|
//! | a folder with precomputed features, as [`Dataset`] | [`load_precomp`] |
//! | a folder with pictures and captions, as [`Dataset`] without features | [`load_pictures`] |
//! | region features of either, read from the file when a batch needs them | [`Regions`], by [`RegionSource`] |
//! | Karpathy's JSON, annotation files of the FNE program | [`load_pictures`] finds them |
//! | ECCV Caption, CxC, plausible matches for a test split | [`Judgements`] |
//! | one `.npy` file | [`Npy`] |
//! | word vectors | [`WordVectors`] |
//!
//! [`check`] reports what a folder holds and what is wrong with it. [`ADVICE`] says where the files of the published sets
//! go. [`Loaded::leakage`] says what held-out splits share with training. Every error is one line: place, expected, got.

mod bounds;
mod captions;
mod centred;
mod check;
mod check_report;
mod counted;
#[cfg(feature = "images")]
mod decode;
mod embeddings;
mod fne_annotations;
mod image_folder;
mod images;
mod json;
mod judgements;
mod karpathy;
mod leakage;
mod names;
mod npy;
mod npy_header;
mod originals;
mod parts;
mod pictures;
mod precomp;
mod precomp_split;
mod region_files;
mod regions;
mod repeats;
#[cfg(test)]
mod tests;
mod vectors;

pub use crate::files::{FileHash, Manifest, contents, excerpt, sha256_hex};
pub use bounds::Bounds;
pub(crate) use captions::Dropped;
pub use captions::{CaptionRule, numbered};
pub use centred::{CentredRoots, RegionTransform, mean_row, unit};
pub use check::check;
pub use check_report::CheckReport;
pub use counted::{check_counts, item_of};
#[cfg(feature = "images")]
pub use decode::{decode_bytes, decode_image, image_of_pixels, upright_bytes, upright_image};
pub use embeddings::Embeddings;
pub(crate) use fne_annotations::FneAnnotations;
pub use image_folder::ImageFolder;
pub use images::{
    ImageFormat, ImageInfo, LARGEST_IMAGE_FILE, is_picture, probe_image, turned_pictures,
};
pub use json::ByName;
pub use judgements::Judgements;
pub use karpathy::Split;
pub(crate) use karpathy::{Karpathy, KarpathyImage};
pub use npy::{FileBytes, Npy};
pub use npy_header::{Dtype, npy_header};
pub use originals::caption_table;
pub use pictures::load_pictures;
pub use precomp::{LoadOptions, Loaded, TestSet, load_precomp};
pub use region_files::RegionSource;
pub use regions::{RegionRows, Regions};
pub use repeats::Repeats;
pub use vectors::WordVectors;

use crate::{Error, Pairs, Result};

/// Which files of the published sets go where, what a person must sign for them, and how to check the result.
///
/// Nothing is downloaded: the photographs belong to their authors, and two of the sets require a form.
pub const ADVICE: &str = include_str!("advice.txt");

/// Global features, one row per image, row-major `[rows, dim]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Features {
    /// Width of a row.
    pub dim: usize,
    /// `rows · dim` values.
    pub values: Vec<f32>,
}

impl Features {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.dim).unwrap_or(0)
    }

    /// One row; empty if the width is 0.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[f32] {
        assert!(self.dim == 0 || row < self.rows(), "row {row} of {}", self.rows());
        &self.values[row * self.dim..(row + 1) * self.dim]
    }
}

/// One split of a data set, with precomputed global features or only with pictures.
#[derive(Debug, Clone, Default)]
pub struct SplitData {
    /// One row per image; of width 0 if there are only pictures.
    pub features: Features,
    /// Rows of frozen encoders beside the features and the captions.
    pub embeddings: Embeddings,
    /// Several rows per image, if the data have them and the caller wants them.
    pub regions: Option<Regions>,
    /// Name of each image: its file name, as written in the data.
    pub images: Vec<String>,
    /// The texts, raw.
    pub captions: Vec<String>,
    /// Which texts belong to which image.
    pub pairs: Pairs,
}

/// A data set with its three splits.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// `flickr8k`, `scenes`, …
    pub name: String,
    /// The only split that a method may train on.
    pub train: SplitData,
    /// The split for choosing hyper-parameters and epochs.
    pub val: SplitData,
    /// The split for reported results.
    pub test: SplitData,
    /// SHA-256 over everything that was read, in a fixed order (hexadecimal).
    pub sha256: String,
}

impl Dataset {
    /// From now on the regions of every split are transformed as they are read. The mean is taken over the training
    /// regions, in one pass.
    ///
    /// # Errors
    /// If there are no regions to transform, or one cannot be read.
    pub fn transform_regions(&mut self, transform: RegionTransform) -> Result<()> {
        let missing = || Error::invalid(&self.name, format!("regions for {transform:?}"), "none");
        if transform == RegionTransform::Given {
            return Ok(());
        }
        let train = self.train.regions.as_ref().ok_or_else(missing)?;
        let fitted =
            transform.fit(train.dim(), (0..train.len()).map(|image| train.stored(image)))?;
        for part in [&mut self.train, &mut self.val, &mut self.test] {
            part.regions = part.regions.take().map(|regions| regions.transformed(fitted.clone()));
        }
        Ok(())
    }
}

//! The data of a target: a data set by name, or a generated world by its sizes.

use std::path::Path;

use itm_core::data::{CaptionRule, LoadOptions, RegionSource, RegionTransform, TestSet};
use itm_core::eval::Protocol;
use itm_core::{Error, Result};
use scenes::{ImageFeature, Sizes};
use serde::Deserialize;

use super::read::within;
use super::{ImageFeatures, Target};

/// The data sets a target can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum DatasetName {
    /// The built-in world.
    Scenes,
    /// Flickr8k, in `--data DIR`.
    Flickr8k,
    /// Flickr30K, in `--data DIR`.
    Flickr30k,
    /// MS-COCO, in `--data DIR`.
    Coco,
}

impl DatasetName {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Scenes, Self::Flickr8k, Self::Flickr30k, Self::Coco];

    /// The data set's usual name.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Scenes => "Scenes",
            Self::Flickr8k => "Flickr8k",
            Self::Flickr30k => "Flickr30K",
            Self::Coco => "MS-COCO",
        }
    }

    /// The data set's folder below the data folder, and its name in Karpathy's JSON.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Scenes => "scenes",
            Self::Flickr8k => "flickr8k",
            Self::Flickr30k => "flickr30k",
            Self::Coco => "coco",
        }
    }
}

/// What a target reads from a folder of features.
pub(crate) fn load_options(target: &Target) -> LoadOptions {
    let of_coco = target.protocol.images() == Some(5000);
    let is_full = target.protocol == Protocol::Full;
    LoadOptions {
        test: if of_coco { TestSet::TestAll } else { TestSet::Test },
        val_captions: target.val_captions,
        regions: target.regions,
        captions: if is_full { CaptionRule::All } else { CaptionRule::First(5) },
    }
}

/// Refuses keys that the data of a target do not support.
pub(super) fn check(target: &Target, path: &Path) -> Result<()> {
    let refuse = |key: &str, expected: &str, got: &dyn std::fmt::Debug| {
        let place = format!("{}, target.{key}", path.display());
        Err(Error::invalid(place, expected, format!("{got:?}")))
    };
    let Target { regions, region_transform, val_captions, embeddings, .. } = target;
    if target.dataset == DatasetName::Scenes && !embeddings.is_empty() {
        return refuse("embeddings", "none for Scenes", embeddings);
    }
    if *region_transform != RegionTransform::Given && regions.is_none() {
        return refuse("region_transform", "none without target.regions", region_transform);
    }
    let pictures = target.features == ImageFeatures::Pictures;
    let scenes = target.dataset == DatasetName::Scenes;
    match (regions, val_captions) {
        (Some(regions), _) if pictures => refuse("regions", "none beside pictures", regions),
        (_, Some(n)) if pictures => refuse("val_captions", "none beside pictures", n),
        (Some(RegionSource::Grid | RegionSource::Patches), _) if scenes => {
            refuse("regions", "\"given\": Scenes have no grid", regions)
        }
        (_, Some(n)) if scenes => {
            refuse("val_captions", "none: scenes.val is the number of images", n)
        }
        _ => Ok(()),
    }
}

/// Size and seed of a generated world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScenesConfig {
    /// Seed of the world, not of the training.
    pub seed: u64,
    /// Training images.
    pub train: usize,
    /// Validation images.
    pub val: usize,
    /// Test images.
    pub test: usize,
    /// Width and height of an image.
    pub pixels: u32,
    /// Which feature represents a whole image.
    #[serde(default)]
    pub features: ImageFeature,
}

impl ScenesConfig {
    /// Only the sizes.
    pub(crate) fn sizes(&self) -> Sizes {
        let Self { train, val, test, pixels, .. } = *self;
        Sizes { train, val, test, pixels }
    }

    /// Checks that a world of these sizes can be made; `place` gives the place of a key, for an error.
    ///
    /// # Errors
    /// If there are no test images, if a split has more than a million images, or if `pixels` is not in 16 to 1024.
    pub(crate) fn check(&self, place: impl Fn(&str) -> String) -> Result<()> {
        for (key, images, least) in
            [("train", self.train, 0), ("val", self.val, 0), ("test", self.test, 1)]
        {
            within(place(key), images as u64, least..=1_000_000)?;
        }
        within(place("pixels"), self.pixels.into(), 16..=1024)
    }
}

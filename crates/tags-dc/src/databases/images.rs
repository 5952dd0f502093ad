//! Regions of images.

use std::fmt::Display;
use std::path::Path;

use indexmap::IndexMap;
use itm_core::files::read_json;
use itm_core::{Error, Result};
use serde::Deserialize;

use super::environment::Environment;
use super::value::{self, NdArray, Packed};

/// Numbers of a stored box: x1, y1, x2, y2, w, h in shares of the picture.
const BOX: usize = 6;
/// How far beyond the picture a box may reach, because half precision rounds.
const BEYOND: f32 = 1e-3;

/// Which regions of a picture are in the database.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Detections {
    /// All regions above a confidence, but at least `least` and at most `most` of them, the most confident first.
    /// `feat_th0.2_max100_min10` by default.
    Confident {
        /// The confidence that a region must exceed.
        threshold: f64,
        /// The most regions of a picture.
        most: usize,
        /// The fewest regions of a picture, if the detector found that number.
        least: usize,
    },
    /// The same number of regions in every picture: `feat_numbb36`.
    Fixed(usize),
}

impl Default for Detections {
    fn default() -> Self {
        Self::Confident { threshold: 0.2, most: 100, least: 10 }
    }
}

/// The regions of an image as they are stored, in descending order of confidence.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageValue {
    /// Width of a region's features.
    pub width: usize,
    /// `[rows, width]`
    pub features: Vec<f32>,
    /// x1, y1, x2, y2, w, h in shares of the picture.
    pub boxes: Vec<[f32; BOX]>,
    /// The detector's confidence in each region.
    pub confidences: Option<Vec<f32>>,
}

#[derive(Deserialize)]
struct StoredImage<'a> {
    #[serde(borrow)]
    features: value::FromMap<Packed<'a>>,
    #[serde(borrow)]
    norm_bb: Option<value::FromMap<Packed<'a>>>,
    #[serde(borrow)]
    conf: Option<value::FromMap<Packed<'a>>>,
}

impl ImageValue {
    /// Reads a stored value: a MessagePack map of arrays, or an NPZ archive. Unknown members are skipped.
    ///
    /// # Errors
    /// If the value is neither, has no boxes, its arrays do not fit each other, a number is not finite, or a box lies outside the
    /// picture. The error gives `place` as its place.
    pub fn decode(place: &str, value: &[u8]) -> Result<Self> {
        let [features, boxes, conf] = if value.starts_with(b"PK") {
            let member = |name| value::member(place, value, name);
            [member("features")?, member("norm_bb")?, member("conf")?]
        } else {
            let what = "the arrays of an image";
            let stored: StoredImage = value::message(place, what, value)?;
            let array = |of: Option<value::FromMap<Packed>>, name: &str| {
                of.map(|packed| packed.0.array(&format!("{place} {name}"))).transpose()
            };
            let StoredImage { features, norm_bb, conf } = stored;
            [array(Some(features), "features")?, array(norm_bb, "norm_bb")?, array(conf, "conf")?]
        };
        let missing = |name: &str| Error::invalid(place, format!("an array `{name}`"), "none");
        let features = features.ok_or_else(|| missing("features"))?;
        let boxes = boxes.ok_or_else(|| missing("norm_bb"))?;
        Self::new(place, features, boxes, conf)
    }

    fn new(place: &str, features: NdArray, boxes: NdArray, conf: Option<NdArray>) -> Result<Self> {
        let refused = |name: &str, expected: String, got: &[usize]| {
            Err(Error::invalid(format!("{place} {name}"), expected, format!("shape {got:?}")))
        };
        let [rows, width] = match features.shape[..] {
            [rows, width] if width > 0 => [rows, width],
            _ => return refused("features", "rows of numbers".into(), &features.shape),
        };
        if boxes.shape != [rows, BOX] {
            return refused("norm_bb", format!("{rows} rows of {BOX} numbers"), &boxes.shape);
        }
        if let Some(conf) = conf.as_ref().filter(|conf| conf.shape != [rows]) {
            return refused("conf", format!("{rows} numbers"), &conf.shape);
        }
        for array in [&features, &boxes].into_iter().chain(&conf) {
            Error::unless_finite(&array.values, |_| place.into(), "finite numbers")?;
        }
        let boxes: Vec<[f32; BOX]> = boxes.values.as_chunks::<BOX>().0.to_vec();
        for (region, own) in boxes.iter().enumerate() {
            let [x1, y1, x2, y2, ..] = *own;
            let inside = own.iter().all(|x| (-BEYOND..=1.0 + BEYOND).contains(x));
            let place = format_args!("{place} norm_bb, region {region}");
            let expected = "x1 ≤ x2 and y1 ≤ y2 in shares of the picture";
            let fits = inside && x1 <= x2 && y1 <= y2;
            Error::unless(fits, place, expected, format_args!("{own:?}"))?;
        }
        let confidences = conf.map(|conf| conf.values);
        Ok(Self { width, features: features.values, boxes, confidences })
    }

    /// The number of regions.
    pub fn rows(&self) -> usize {
        self.boxes.len()
    }

    fn cut(mut self, count: usize) -> Self {
        self.features.truncate(count * self.width);
        self.boxes.truncate(count);
        self.confidences.iter_mut().for_each(|confidences| confidences.truncate(count));
        self
    }
}

/// An image database: a folder with the counts, and one with the regions.
///
/// The regions are in `feat_…` or in `feat_…_compressed`; if both exist, `feat_…` is read. Without the file of counts the unfiltered folder
/// `all` is read, and the counts follow from the confidences.
#[derive(Debug)]
pub struct ImageDatabase {
    values: Environment,
    detections: Detections,
    /// The numbers of the file of counts.
    listed: Option<IndexMap<String, usize>>,
}

impl ImageDatabase {
    /// Opens the database in a folder.
    ///
    /// # Errors
    /// If the folder has no such database, or its counts cannot be read.
    pub fn open(folder: impl AsRef<Path>, detections: Detections) -> Result<Self> {
        let folder = folder.as_ref();
        let mut listed = None;
        let name = match detections {
            Detections::Fixed(n) => format!("feat_numbb{n}"),
            Detections::Confident { threshold, most, least } => {
                let name = format!("th{threshold}_max{most}_min{least}");
                let file = folder.join(format!("nbb_{name}.json"));
                if file.exists() {
                    listed = Some(read_json(&file, "region counts by image")?);
                    format!("feat_{name}")
                } else {
                    "all".into()
                }
            }
        };
        let compressed = format!("{name}_compressed");
        let found = [&name, &compressed].into_iter().find(|name| folder.join(name).is_dir());
        let Some(found) = found else {
            let expected = format!("a folder `{name}` or `{compressed}`");
            return Err(Error::invalid(folder.display(), expected, "neither"));
        };
        Ok(Self { values: Environment::open(&folder.join(found))?, detections, listed })
    }

    /// Names of all images: in the order of the counts, or of the list in the database.
    ///
    /// # Errors
    /// If there is no file of counts, and the list is missing or malformed.
    pub fn names(&self) -> Result<Vec<String>> {
        if let Some(counts) = &self.listed {
            return Ok(counts.keys().cloned().collect());
        }
        self.values.value("__keys__", |place, value| {
            serde_json::from_slice(value).map_err(|e| Error::invalid(place, "a list of names", e))
        })
    }

    /// The regions of an image, as many as its count says.
    ///
    /// # Errors
    /// If there is no such image, its value cannot be read, or the count is 0 or larger than the number of regions.
    pub fn image(&self, name: &str) -> Result<ImageValue> {
        self.values.value(name, |place, value| {
            let image = ImageValue::decode(place, value)?;
            let refused = |expected: &str, got: &dyn Display| Error::invalid(place, expected, got);
            let rows = image.rows();
            let count = match (&self.listed, self.detections) {
                (Some(counts), _) => {
                    *counts.get(name).ok_or_else(|| refused("a region count", &"none"))?
                }
                (None, Detections::Fixed(n)) => n,
                (None, Detections::Confident { threshold, most, least }) => {
                    let confidences = image.confidences.as_ref();
                    let confidences =
                        confidences.ok_or_else(|| refused("an array `conf`", &"none"))?;
                    let sure = confidences.iter().filter(|&&c| c > threshold as f32).count();
                    sure.max(least).min(most).min(rows)
                }
            };
            match count {
                0 => Err(refused("a region count above 0", &0)),
                n if n > rows => Err(refused(&format!("{n} regions, as counted"), &rows)),
                n => Ok(image.cut(n)),
            }
        })
    }

    /// Regions of some images for a model.
    ///
    /// # Errors
    /// As [`image`](Self::image), and if images have features of unequal widths.
    #[cfg(feature = "burn")]
    pub fn batch(&self, names: &[&str]) -> Result<crate::model::RegionBatch> {
        let (mut counts, mut features, mut boxes, mut width) = (vec![], vec![], vec![], 0);
        for (k, name) in names.iter().enumerate() {
            let image = self.image(name)?;
            let expected = format_args!("{width} wide, as before");
            let place = format_args!("regions of `{name}`");
            Error::unless(k == 0 || image.width == width, place, expected, image.width)?;
            width = image.width;
            counts.push(image.rows());
            let seven = |&[x1, y1, x2, y2, w, h]: &[f32; BOX]| [x1, y1, x2, y2, w, h, w * h];
            boxes.extend(image.boxes.iter().flat_map(seven));
            features.extend(image.features);
        }
        crate::model::RegionBatch::new(width, counts, features, boxes)
    }
}

//! Regions of images, and their embedding.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use itm_core::data::{Bounds, Regions, check_counts, item_of, mean_row};
use itm_core::encoders::BertShape;
use itm_core::{Error, Result};
use itm_kernels::{LayerNorm, Linear};

/// How many numbers describe a box.
const BOX_NUMBERS: usize = 7;

/// Regions of some images, one after another without padding. The batch holds no tensor, so any thread can make it.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionBatch {
    /// Regions of each image.
    pub(crate) counts: Vec<usize>,
    features: Vec<f32>,
    boxes: Vec<f32>,
    /// Width of a region's features.
    pub(crate) width: usize,
}

impl RegionBatch {
    /// Features `[Σ counts, width]` and boxes `[Σ counts, 7]` of images with these numbers of regions.
    ///
    /// # Errors
    /// If values and counts do not fit, an image has no region, or a value is not finite (the error names image and region).
    pub fn new(
        width: usize,
        counts: Vec<usize>,
        features: Vec<f32>,
        boxes: Vec<f32>,
    ) -> Result<Self> {
        Error::unless(!counts.is_empty(), "regions", "at least 1 image", 0)?;
        for (what, values, width) in
            [("features", &features, width), ("boxes", &boxes, BOX_NUMBERS)]
        {
            let names = ["image", "region", &format!("{what} of regions")];
            check_counts(&counts, names, width, values.len())?;
            let place = |at| {
                let (image, region) = item_of(&counts, at / width);
                format!("image {image}, region {region}, {what}")
            };
            Error::unless_finite(values, place, "finite values")?;
        }
        Ok(Self { counts, features, boxes, width })
    }

    /// These images of a split, with their boxes.
    ///
    /// # Errors
    /// If a region cannot be read, or has no box.
    ///
    /// # Panics
    /// If an image does not exist.
    pub fn of(regions: &Regions, images: &[usize]) -> Result<Self> {
        let rows = regions.rows(images)?;
        let mut boxes = Vec::with_capacity(rows.counts.iter().sum::<usize>() * BOX_NUMBERS);
        for &image in images {
            let got = "regions without boxes";
            let missing = || Error::invalid(format!("image {image}"), "a box for each region", got);
            let own = regions.boxes(image).ok_or_else(missing)?;
            boxes.extend(own.iter().flat_map(box_numbers));
        }
        Self::new(rows.dim, rows.counts, rows.values, boxes)
    }

    /// The mean features of each image, `[images, width]`.
    pub(super) fn means(&self) -> Vec<f32> {
        let mut left = &self.features[..];
        let mean = |&count: &usize| {
            let own;
            (own, left) = left.split_at(count * self.width);
            mean_row(own, self.width).into_iter().map(|x| x as f32)
        };
        self.counts.iter().flat_map(mean).collect()
    }
}

/// x1, y1, x2, y2, w, h and w·h of a box, as shares of its picture.
///
/// ```
/// use itm_core::data::Bounds;
/// use tags_dc::model::box_numbers;
///
/// let half = Bounds { x1: 0.25, y1: 0.0, x2: 0.75, y2: 0.5 };
/// assert_eq!(box_numbers(&half), [0.25, 0.0, 0.75, 0.5, 0.5, 0.5, 0.25]);
/// ```
pub fn box_numbers(bounds: &Bounds) -> [f32; BOX_NUMBERS] {
    let Bounds { x1, y1, x2, y2 } = *bounds;
    let (w, h) = (bounds.width(), bounds.height());
    [x1, y1, x2, y2, w, h, w * h]
}

/// Embedded regions. An image is embedded once for all its texts.
#[derive(Debug, Clone)]
pub struct EmbeddedRegions {
    /// `[Σ counts, d]`
    pub rows: Tensor<2>,
    /// Regions of each image.
    pub counts: Vec<usize>,
    /// The image side of a model's prior, `[images, k]`.
    pub prior: Option<Tensor<2>>,
}

/// Maps features and box of a region to a row.
///
/// ```text
/// v = norm( norm_f(W_f f + b_f) + norm_p(W_p p + b_p) + T[1] )
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | W_f, b_f, norm_f | `features`, `feature_norm` | x → d |
/// | W_p, b_p, norm_p | `boxes`, `box_norm` | 7 → d |
/// | `T[1]` | the second row of the text's kinds | `[1, d]` |
///
/// Dropout comes later, on texts and regions together, so that each text draws its own mask.
#[derive(Module, Debug)]
pub struct RegionEmbedding {
    /// x → d
    pub features: Linear,
    /// On the mapped features.
    pub feature_norm: LayerNorm,
    /// 7 → d
    pub boxes: Linear,
    /// On the mapped boxes.
    pub box_norm: LayerNorm,
    /// On the sum.
    pub norm: LayerNorm,
}

impl RegionEmbedding {
    pub(super) fn new(features: usize, text: &BertShape, device: &Device) -> Self {
        let d = text.width;
        let norm = || LayerNorm::new(d, text.epsilon, device);
        Self {
            features: Linear::seeded(features, d, 0, device),
            feature_norm: norm(),
            boxes: Linear::seeded(BOX_NUMBERS, d, 0, device),
            box_norm: norm(),
            norm: norm(),
        }
    }

    /// Rows of all regions. `kind` is T[1], `[1, d]`.
    ///
    /// # Panics
    /// If the features have another width.
    pub(super) fn forward(&self, regions: &RegionBatch, kind: Tensor<2>) -> EmbeddedRegions {
        let [x, _] = self.features.weight.dims();
        let n: usize = regions.counts.iter().sum();
        assert_eq!(regions.width, x, "regions of width {} for a map from {x}", regions.width);
        let device = kind.device();
        let rows = |values: &[f32], width| {
            Tensor::<2>::from_data(TensorData::new(values.to_vec(), [n, width]), &device)
        };
        let f = self.features.forward(rows(&regions.features, x));
        let p = self.boxes.forward(rows(&regions.boxes, BOX_NUMBERS));
        let (f, p) = (self.feature_norm.forward(f), self.box_norm.forward(p));
        let rows = self.norm.forward(f + p + kind);
        EmbeddedRegions { rows, counts: regions.counts.clone(), prior: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_regions_are_named() {
        let refused = |counts: &[usize], features: Vec<f32>, boxes: Vec<f32>| {
            RegionBatch::new(2, counts.to_vec(), features, boxes).unwrap_err().to_string()
        };
        let fine = |n: usize| (vec![0.5; 2 * n], vec![0.5; 7 * n]);
        let (f, b) = fine(2);
        assert_eq!(
            refused(&[2, 0], f.clone(), b.clone()),
            "image 1: expected at least 1 region, got 0"
        );
        assert_eq!(refused(&[], vec![], vec![]), "regions: expected at least 1 image, got 0");
        assert_eq!(
            refused(&[1, 1], f.clone(), vec![0.5; 8]),
            "boxes of regions: expected 2 × 7 values, at least 1 wide, got 8"
        );
        assert!(refused(&[3], f, b).starts_with("features of regions: expected 3 × 2"));
        let (f, mut b) = fine(3);
        b[2 * 7 + 4] = f32::NAN;
        assert_eq!(
            refused(&[1, 2], f, b),
            "image 1, region 1, boxes: expected finite values, got NaN"
        );
    }

    #[test]
    fn regions_without_boxes_are_refused() {
        let regions = Regions::new(2, vec![1, 1], vec![0.1, 0.2, 0.3, 0.4]).unwrap();
        let line = RegionBatch::of(&regions, &[1]).unwrap_err().to_string();
        assert_eq!(line, "image 1: expected a box for each region, got regions without boxes");
    }
}

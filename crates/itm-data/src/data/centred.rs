//! Features for methods that train from scratch: of images roots, centred, of unit length; of regions of unit length, centred.

use std::sync::Arc;

use serde::Deserialize;

use super::Features;
use crate::Result;

/// Roots of non-negative features, centred by the training split, of unit length.
///
/// ```text
/// r(x) = √max(x, 0) / ‖√max(x, 0)‖,   y = (r(x) − r̄) / ‖r(x) − r̄‖        r̄ = mean of r over the training images
/// ```
///
/// [`CentredRoots::of_free_length`] omits the last division: `y = r(x) − r̄`, the input of closed-form CCA.
///
/// Pooled rectified features have a few large values and one large common direction. The root reduces the large values,
/// and centring removes the common direction. Without centring, a linear map spends its first epochs on the common
/// direction. Both are also the first steps of the closed-form CCA.
///
/// ```
/// use itm_data::data::{CentredRoots, Features};
///
/// let train = Features { dim: 2, values: vec![16.0, 9.0, 9.0, 16.0] }; // roots (.8, .6) and (.6, .8), mean (.7, .7)
/// let y = CentredRoots::of(&train).apply(&train);
/// assert!((y.row(0)[0] - 0.5f32.sqrt()).abs() < 1e-6 && (y.row(0)[1] + 0.5f32.sqrt()).abs() < 1e-6);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CentredRoots {
    mean: Vec<f64>,
    /// Whether a transformed row gets unit length.
    unit_length: bool,
}

impl CentredRoots {
    /// Takes the mean over the **training** images; never pass another split.
    ///
    /// # Panics
    /// If a value is not finite.
    pub fn of(training: &Features) -> Self {
        let mut mean = vec![0.0; training.dim];
        finite(training);
        for i in 0..training.rows() {
            let row = RegionTransform::CentredRoots.directed(training.row(i));
            mean.iter_mut().zip(row).for_each(|(m, r)| *m += r / training.rows() as f64);
        }
        Self { mean, unit_length: true }
    }

    /// As [`of`](Self::of), but the length of a row is its distance from the mean.
    ///
    /// # Panics
    /// If a value is not finite.
    pub fn of_free_length(training: &Features) -> Self {
        Self { unit_length: false, ..Self::of(training) }
    }

    /// The transformed features of any split. A row that is the mean itself becomes zero.
    ///
    /// # Panics
    /// If the width differs from the width in training, or a value is not finite.
    pub fn apply(&self, features: &Features) -> Features {
        let width = self.mean.len();
        assert_eq!(features.dim, width, "features of width {}, not {width}", features.dim);
        finite(features);
        let mut values = Vec::with_capacity(features.values.len());
        for i in 0..features.rows() {
            let row = RegionTransform::CentredRoots.directed(features.row(i));
            let mut row: Vec<f64> = row.zip(&self.mean).map(|(r, m)| r - m).collect();
            if self.unit_length {
                unit(&mut row);
            }
            values.extend(row.iter().map(|&r| r as f32));
        }
        Features { dim: width, values }
    }
}

/// The root of a NaN would be 0.
fn finite(features: &Features) {
    if let Some(at) = features.values.iter().position(|x| !x.is_finite()) {
        panic!("row {} of the features: {}", at / features.dim.max(1), features.values[at]);
    }
}

/// The mean of rows of `dim` values, summed row by row in double precision; NaN without rows.
///
/// ```
/// assert_eq!(itm_data::data::mean_row(&[1.0, 2.0, 3.0, 4.0], 2), [2.0, 3.0]);
/// ```
pub fn mean_row(rows: &[f32], dim: usize) -> Vec<f64> {
    let mut sums = vec![0.0; dim];
    for row in rows.chunks_exact(dim.max(1)) {
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    let count = (rows.len() / dim.max(1)) as f64;
    sums.into_iter().map(|sum| sum / count).collect()
}

/// Divides by the Euclidean norm; zeros stay zeros.
pub fn unit(row: &mut [f64]) {
    let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
    if norm > 0.0 {
        row.iter_mut().for_each(|x| *x /= norm);
    }
}

/// How every region is transformed as it is read.
///
/// ```text
/// unit_centred    y = x / ‖x‖ − m                        m = mean of x / ‖x‖ over all training regions
/// centred_roots   y = √max(x, 0) / ‖√max(x, 0)‖ − m      m = mean of the same over all training regions
/// ```
///
/// A region of zeros has no direction: it becomes −m.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RegionTransform {
    /// Not at all.
    #[default]
    Given,
    /// Unit length, minus the mean: for features of either sign, such as a grid after PCA.
    UnitCentred,
    /// Roots, unit length, minus the mean: for features that are never negative, such as the features of Scenes.
    CentredRoots,
}

impl RegionTransform {
    /// Takes the mean over the rows, `dim` wide, of the **training** images; never pass another split.
    pub(super) fn fit(
        self,
        dim: usize,
        training: impl Iterator<Item = Result<Vec<f32>>>,
    ) -> Result<Arc<CentredTransform>> {
        let (mut mean, mut count) = (vec![0.0; dim], 0_u32);
        for image in training {
            for row in image?.chunks_exact(dim) {
                mean.iter_mut().zip(self.directed(row)).for_each(|(m, x)| *m += x);
                count += 1;
            }
        }
        mean.iter_mut().for_each(|m| *m /= f64::from(count.max(1)));
        Ok(Arc::new(CentredTransform { transform: self, mean }))
    }

    /// A row before the mean is subtracted.
    pub(super) fn directed(self, row: &[f32]) -> impl Iterator<Item = f64> {
        let value = move |&x: &f32| match self {
            Self::Given | Self::UnitCentred => f64::from(x),
            Self::CentredRoots => f64::from(x.max(0.0)).sqrt(),
        };
        let norm = row.iter().map(|x| value(x).powi(2)).sum::<f64>().sqrt();
        row.iter().map(move |x| if norm > 0.0 { value(x) / norm } else { 0.0 })
    }
}

/// A transform with the mean of training.
#[derive(Debug)]
pub(super) struct CentredTransform {
    transform: RegionTransform,
    mean: Vec<f64>,
}

impl CentredTransform {
    pub(super) fn apply(&self, row: &[f32]) -> impl Iterator<Item = f32> {
        self.transform.directed(row).zip(&self.mean).map(|(x, m)| (x - m) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(values: &[f32]) -> Features {
        Features { dim: 3, values: values.to_vec() }
    }

    /// By hand: roots (0, .6, .8), (.8, 0, .6); mean (.4, .3, .7); centred (∓.4, ±.3, ±.1), norm √.26.
    #[test]
    fn golden_two_images() {
        let train = features(&[-5.0, 9.0, 16.0, 16.0, 0.0, 9.0]);
        let got = CentredRoots::of(&train).apply(&train);
        let want = [-0.4, 0.3, 0.1, 0.4, -0.3, -0.1].map(|x: f32| x / 0.26f32.sqrt());
        for (g, w) in got.values.iter().zip(want) {
            assert!((g - w).abs() < 1e-6, "{got:?}");
        }
    }

    /// By hand: as above without the division by √.26.
    #[test]
    fn golden_free_length() {
        let train = features(&[-5.0, 9.0, 16.0, 16.0, 0.0, 9.0]);
        let got = CentredRoots::of_free_length(&train).apply(&train);
        for (g, w) in got.values.iter().zip([-0.4, 0.3, 0.1, 0.4, -0.3, -0.1]) {
            assert!((g - w).abs() < 1e-6, "{got:?}");
        }
    }

    #[test]
    fn the_mean_is_that_of_training() {
        let train = features(&[4.0, 1.0, 0.0, 1.0, 1.0, 2.0]);
        // Two test images: a single one in the mean would only shorten its own difference from it.
        let test = features(&[0.0, 1.0, 5.0, 3.0, 2.0, 0.0]);
        let whole = features(&[&train.values[..], &test.values].concat());
        let apply = |fitted: &Features| CentredRoots::of(fitted).apply(&test);
        assert_ne!(apply(&train), apply(&whole), "a test image took part in the mean");
        let beside = CentredRoots::of(&train).apply(&whole);
        assert_eq!(beside.row(3), apply(&train).row(1), "an image depends on those beside it");
    }

    #[test]
    fn zeros_and_the_mean_itself_are_finite() {
        let train = features(&[1.0, 4.0, 9.0]);
        assert_eq!(CentredRoots::of(&train).apply(&train).values, [0.0; 3]);
        let dark = features(&[0.0; 3]);
        assert!(CentredRoots::of(&train).apply(&dark).values.iter().all(|x| x.is_finite()));
    }
}

//! Region features for methods that train from scratch: of unit length, minus the mean of training.

use std::sync::Arc;

use serde::Deserialize;

use crate::Result;

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

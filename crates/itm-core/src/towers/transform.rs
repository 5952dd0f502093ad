//! The transform of given image features.

use serde::{Deserialize, Serialize};

/// The transform of a row of image features before the projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FeatureTransform {
    /// No transform.
    Raw,
    /// Divided by its norm.
    L2,
    /// `√max(x, 0)`, then divided by its norm: tames the few large values of rectified features.
    SqrtL2,
}

impl FeatureTransform {
    /// Transforms one row in place. A row of zeros stays a row of zeros; a NaN stays a NaN.
    ///
    /// ```
    /// let mut row = [9.0, 16.0, -1.0];
    /// itm_core::towers::FeatureTransform::SqrtL2.apply(&mut row);
    /// assert_eq!(row, [0.6, 0.8, 0.0]);
    /// ```
    pub fn apply(self, row: &mut [f32]) {
        if self == Self::Raw {
            return;
        }
        if self == Self::SqrtL2 {
            row.iter_mut().for_each(|x| *x = x.clamp(0.0, f32::INFINITY).sqrt());
        }
        let norm = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        if norm > 0.0 {
            row.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_transformed_row_by_row() {
        let mut row = [3.0, -4.0];
        FeatureTransform::Raw.apply(&mut row);
        assert_eq!(row, [3.0, -4.0]);
        FeatureTransform::L2.apply(&mut row);
        assert_eq!(row, [0.6, -0.8]);
        let mut zero = [0.0, -1.0];
        FeatureTransform::SqrtL2.apply(&mut zero);
        assert_eq!(zero, [0.0, 0.0]);
        for transform in [FeatureTransform::L2, FeatureTransform::SqrtL2] {
            let mut damaged = [1.0, f32::NAN];
            transform.apply(&mut damaged);
            assert!(damaged[1].is_nan(), "{transform:?} must not hide a NaN: {damaged:?}");
        }
    }
}

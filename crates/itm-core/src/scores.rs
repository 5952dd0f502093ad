//! The score matrix that all methods share: rows are images, columns are texts.

use rayon::prelude::*;

use crate::{Error, Result};

/// Scores of all images against all texts, row-major; larger is more similar.
///
/// ```
/// use itm_core::ScoreMatrix;
///
/// let scores = ScoreMatrix::from_rows([[0.9, 0.3], [0.2, 0.2]]);
/// assert_eq!(scores.ranking(0), [0, 1]);
/// assert_eq!(scores.ranking(1), [0, 1]); // a tie: the smaller index first
/// assert_eq!(scores.transpose().row(0), [0.9, 0.2]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreMatrix {
    images: usize,
    texts: usize,
    values: Vec<f32>,
}

impl ScoreMatrix {
    /// A matrix from row-major values.
    ///
    /// # Errors
    /// If the number of values is not `images · texts`, there are 2³² images or texts or more, or a value is NaN (the error
    /// names its image and text).
    pub fn new(images: usize, texts: usize, values: Vec<f32>) -> Result<Self> {
        if images.checked_mul(texts) != Some(values.len()) {
            let size = images.checked_mul(texts);
            let size = size.map_or_else(|| "too many".into(), |size| size.to_string());
            let expected = format!("{images} × {texts} = {size} values");
            return Err(Error::invalid("score matrix", expected, values.len()));
        }
        let (most, expected) = (images.max(texts), "fewer than 2³² images and texts");
        Error::unless(u32::try_from(most).is_ok(), "score matrix", expected, most)?;
        if let Some(at) = values.iter().position(|s| s.is_nan()) {
            let place = format!("score matrix, image {}, text {}", at / texts, at % texts);
            return Err(Error::invalid(place, "a number", "NaN"));
        }
        Ok(Self { images, texts, values })
    }

    /// A small matrix from literal rows, for examples and tests.
    ///
    /// # Panics
    /// If a value is NaN.
    pub fn from_rows<const N: usize, const M: usize>(rows: [[f32; M]; N]) -> Self {
        Self::new(N, M, rows.concat()).expect("a matrix that is written out has no NaN")
    }

    /// Number of rows.
    pub fn images(&self) -> usize {
        self.images
    }

    /// Number of columns.
    pub fn texts(&self) -> usize {
        self.texts
    }

    /// Scores of one image against all texts.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn row(&self, image: usize) -> &[f32] {
        assert!(image < self.images, "image {image} of {}", self.images);
        &self.values[image * self.texts..(image + 1) * self.texts]
    }

    /// All values, row-major.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Gives all values away, row-major.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// Texts of an image from best to worst; the smaller index first on ties.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn ranking(&self, image: usize) -> Vec<usize> {
        let row = self.row(image);
        let mut order: Vec<_> = (0..self.texts).collect();
        // Stable, so the smaller index stays first; −0 and +0 are equal, as everywhere.
        order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).expect("no score is NaN"));
        order
    }

    /// Texts become rows: for code that is written for one direction.
    pub fn transpose(&self) -> Self {
        const BLOCK: usize = 32; // both sides stay in the first-level cache
        let (n, m) = (self.images, self.texts);
        let mut values = vec![0.0; self.values.len()];
        let bands = values.par_chunks_mut((BLOCK * n).max(1)).enumerate();
        bands.for_each(|(band, values)| {
            for i0 in (0..n).step_by(BLOCK) {
                for (j, row) in values.chunks_exact_mut(n).enumerate() {
                    for (i, value) in row.iter_mut().enumerate().skip(i0).take(BLOCK) {
                        *value = self.values[i * m + band * BLOCK + j];
                    }
                }
            }
        });
        Self { images: self.texts, texts: self.images, values }
    }

    /// The mean of several matrices: an ensemble, such as the "two seeds" of the papers.
    ///
    /// The sum is taken in the given order, in f32, and multiplied by 1/n.
    ///
    /// # Errors
    /// If there is no matrix, two differ in shape, or a score is +∞ in one and −∞ in another.
    pub fn average(matrices: &[Self]) -> Result<Self> {
        let Some((first, others)) = matrices.split_first() else {
            return Err(Error::invalid("ensemble", "at least one score matrix", "none"));
        };
        let mut mean = first.clone();
        for (k, matrix) in others.iter().enumerate() {
            let fits = (matrix.images, matrix.texts) == (mean.images, mean.texts);
            let expected = format_args!("{} × {} scores", mean.images, mean.texts);
            let got = format_args!("{} × {}", matrix.images, matrix.texts);
            Error::unless(fits, format_args!("ensemble, matrix {}", k + 1), expected, got)?;
            mean.values.iter_mut().zip(&matrix.values).for_each(|(sum, s)| *sum += s);
        }
        if let Some(at) = mean.values.iter().position(|sum| sum.is_nan()) {
            let place = format!("ensemble, image {}, text {}", at / mean.texts, at % mean.texts);
            return Err(Error::invalid(place, "scores with a sum", "∞ and −∞"));
        }
        let factor = 1.0 / matrices.len() as f32;
        mean.values.iter_mut().for_each(|sum| *sum *= factor);
        Ok(mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nan_is_named_by_row_and_column() {
        let error = ScoreMatrix::new(2, 3, vec![0., 0., 0., 0., f32::NAN, 0.]).unwrap_err();
        assert_eq!(error.to_string(), "score matrix, image 1, text 1: expected a number, got NaN");
    }

    #[test]
    fn zeros_of_both_signs_are_equal() {
        assert_eq!(ScoreMatrix::from_rows([[-0.0, 0.0, -0.0, 1.0]]).ranking(0), [3, 0, 1, 2]);
    }

    #[test]
    fn an_ensemble_averages_and_refuses_other_shapes() {
        let a = ScoreMatrix::from_rows([[1.0, 0.0], [0.0, 1.0]]);
        let b = ScoreMatrix::from_rows([[0.0, 0.5], [1.0, 1.0]]);
        let mean = ScoreMatrix::average(&[a.clone(), b]).unwrap();
        assert_eq!(mean.values(), [0.5, 0.25, 0.5, 1.0]);
        let other = ScoreMatrix::from_rows([[1.0, 0.0]]);
        let error = ScoreMatrix::average(&[a, other]).unwrap_err().to_string();
        assert_eq!(error, "ensemble, matrix 1: expected 2 × 2 scores, got 1 × 2");
        assert!(ScoreMatrix::average(&[]).is_err());
    }

    proptest! {
        #[test]
        fn transposing_twice_changes_nothing(n in 1usize..70, m in 1usize..70, seed in 0u32..1000) {
            let values = (0..n * m).map(|k| (k as u32).wrapping_mul(seed) as f32).collect();
            let s = ScoreMatrix::new(n, m, values).unwrap();
            let t = s.transpose();
            prop_assert_eq!(t.row(m - 1)[0], s.row(0)[m - 1]);
            prop_assert_eq!(t.transpose(), s);
        }
    }
}

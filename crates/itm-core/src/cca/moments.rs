//! Means and covariances of the training pairs.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat};

use super::parallel;
use super::rows::SparseRow;
use crate::Pairs;

/// The statistics of the training set that CCA needs; their size does not depend on the number of pairs.
pub(super) struct PairMoments {
    pub(super) mean_x: Vec<f64>, // [dx], over images
    pub(super) mean_y: Vec<f64>, // [dy], over captions
    pub(super) xx: Mat<f64>,     // [dx, dx]
    pub(super) yy: Mat<f64>,     // [dy, dy], over captions, because a query is a single caption
    pub(super) xy: Mat<f64>,     // [dx, dy], each image with the mean of its captions
}

impl PairMoments {
    /// Computes the statistics without the images that have no caption. `row` writes the transformed row of an image; rows have
    /// these widths.
    pub(super) fn new(
        [dx, dy]: [usize; 2],
        row: impl Fn(usize, &mut [f64]),
        texts: &[SparseRow],
        pairs: &Pairs,
    ) -> Self {
        let used: Vec<_> = (0..pairs.images()).filter(|&i| !pairs.texts_of(i).is_empty()).collect();
        let (n, m) = (used.len() as f64, texts.len() as f64);
        let mut x = vec![0.0; dx];

        let mut mean_x = vec![0.0; dx];
        for &image in &used {
            row(image, &mut x);
            mean_x.iter_mut().zip(&x).for_each(|(mean, x)| *mean += x / n);
        }
        let mut mean_y = vec![0.0; dy];
        for &(term, value) in texts.iter().flatten() {
            mean_y[term] += value / m;
        }

        let (mut xx, mut xy) = (Mat::zeros(dx, dx), Mat::<f64>::zeros(dx, dy));
        for images in used.chunks(1024) {
            let mut block = Mat::zeros(dx, images.len());
            for (column, &image) in images.iter().enumerate() {
                row(image, &mut x);
                let column = block.col_as_slice_mut(column);
                (0..dx).for_each(|k| column[k] = x[k] - mean_x[k]);
                let texts_of = pairs.texts_of(image);
                let share = 1.0 / (n * texts_of.len() as f64);
                // X is centred, so the mean of Y drops out of XᵀY.
                for &(term, value) in texts_of.iter().flat_map(|&t| &texts[t]) {
                    let products = xy.col_as_slice_mut(term).iter_mut().zip(&*column);
                    products.for_each(|(sum, x)| *sum += x * value * share);
                }
            }
            matmul(&mut xx, Accum::Add, &block, block.transpose(), 1.0 / n, parallel());
        }

        let mut yy = Mat::from_fn(dy, dy, |a, b| -mean_y[a] * mean_y[b]);
        for text in texts {
            for &(a, u) in text {
                text.iter().for_each(|&(b, v)| yy[(b, a)] += u * v / m);
            }
        }
        Self { mean_x, mean_y, xx, yy, xy }
    }

    /// Whether the images have at most as many dimensions as the texts.
    pub(super) fn images_are_fewer(&self) -> bool {
        self.mean_x.len() <= self.mean_y.len()
    }
}

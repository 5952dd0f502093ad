//! From two sets of encoded items to the score matrix.

use burn::tensor::Tensor;

use crate::{Result, ScoreMatrix};

/// Scores of all images of a block against all texts of a block; larger is more similar.
pub trait Scorer<V, W> {
    /// `[images, texts]`
    fn score(&self, images: &V, texts: &W) -> Tensor<2>;
}

/// Cosine similarity of rows that have unit length.
///
/// ```text
/// s(v, w) = v · w    for ‖v‖ = ‖w‖ = 1
/// ```
///
/// The encoders of this crate return unit rows; others go through `itm_kernels::normalize_rows` first, once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cosine;

impl Scorer<Tensor<2>, Tensor<2>> for Cosine {
    /// # Panics
    /// If the widths differ.
    fn score(&self, images: &Tensor<2>, texts: &Tensor<2>) -> Tensor<2> {
        let (v, w) = (images.dims(), texts.dims());
        assert_eq!(v[1], w[1], "images of shape {v:?} against texts of shape {w:?}");
        images.clone().matmul(texts.clone().transpose())
    }
}

/// All images against all texts, block by block: no more than one block of scores is on the device at a time.
///
/// Each block goes with its number of items, which the scorer's result must have.
///
/// # Errors
/// If a score is NaN; its image and text are named.
///
/// # Panics
/// If a block of scores has another shape than its images and texts.
pub fn score_all<V, W>(
    scorer: &impl Scorer<V, W>,
    images: &[(V, usize)],
    texts: &[(W, usize)],
) -> Result<ScoreMatrix> {
    let n: usize = images.iter().map(|(_, n)| n).sum();
    let m: usize = texts.iter().map(|(_, m)| m).sum();
    let mut values = vec![0.0f32; n * m];
    let mut row = 0;
    for (v, rows) in images {
        let mut column = 0;
        for (w, columns) in texts {
            let block = scorer.score(v, w);
            let (got, want) = (block.dims(), [*rows, *columns]);
            assert_eq!(got, want, "scores of shape {got:?} for a block of {want:?}");
            let block = block.into_data().convert::<f32>();
            let block = block.as_slice::<f32>().expect("converted to f32 above");
            for (i, from) in block.chunks_exact((*columns).max(1)).enumerate() {
                values[(row + i) * m + column..][..*columns].copy_from_slice(from);
            }
            column += columns;
        }
        row += rows;
    }
    ScoreMatrix::new(n, m, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use proptest::prelude::*;

    fn rows(values: &[f32], width: usize) -> Tensor<2> {
        Tensor::<1>::from_floats(values, &Device::flex()).reshape([values.len() / width, width])
    }

    /// Cut into blocks of `size` rows.
    fn blocks(x: &Tensor<2>, size: usize) -> Vec<(Tensor<2>, usize)> {
        let n = x.dims()[0];
        let starts = (0..n).step_by(size);
        let cut = |s: usize| (x.clone().narrow(0, s, size.min(n - s)), size.min(n - s));
        starts.map(cut).collect()
    }

    /// By hand: rows are images, columns are texts.
    #[test]
    fn golden_two_by_three() {
        let (v, w) = (rows(&[1., 0., 0.6, 0.8], 2), rows(&[0., 1., 1., 0., 0.8, 0.6], 2));
        let s = Cosine.score(&v, &w).into_data().try_to_vec::<f32>().unwrap();
        let want = [0., 1., 0.8, 0.8, 0.6, 0.96];
        assert!(s.iter().zip(want).all(|(s, w)| (s - w).abs() < 1e-6), "{s:?}");
    }

    #[test]
    fn a_nan_is_named_by_image_and_text() {
        let (v, w) = (rows(&[1., 1., f32::NAN], 1), rows(&[1., 2.], 1));
        let error = score_all(&Cosine, &blocks(&v, 2), &blocks(&w, 1)).unwrap_err();
        assert_eq!(error.to_string(), "score matrix, image 2, text 0: expected a number, got NaN");
    }

    #[test]
    #[should_panic(expected = "images of shape [1, 2] against texts of shape [2, 1]")]
    fn widths_that_differ_are_named() {
        Cosine.score(&rows(&[1., 0.], 2), &rows(&[1., 0.], 1));
    }

    proptest! {
        /// Blocks of any size give the matrix that one product gives.
        #[test]
        fn blocks_change_nothing(n in 1usize..9, m in 1usize..9, a in 1usize..5, b in 1usize..5, seed in 0u64..99) {
            let x = |n: usize, part| (0..n * 3).map(|k| itm_kernels::random::unit(seed + part, k as u64)).collect::<Vec<_>>();
            let (v, w) = (rows(&x(n, 0), 3), rows(&x(m, 1000), 3));
            let whole = Cosine.score(&v, &w).into_data().try_to_vec::<f32>().unwrap();
            let s = score_all(&Cosine, &blocks(&v, a), &blocks(&w, b)).unwrap();
            prop_assert_eq!((s.images(), s.texts()), (n, m));
            prop_assert!(s.values().iter().zip(&whole).all(|(x, y)| (x - y).abs() < 1e-6));
        }
    }
}

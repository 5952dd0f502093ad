//! Embeddings and scores for evaluation.

use burn::module::Module;
use itm_core::data::Features;
use itm_core::encoders::TokenBatch;
use itm_core::{Result, ScoreMatrix, host};
use rayon::prelude::*;

use super::config::Similarity;
use super::step::Hal;

/// Rows encoded at once.
const BLOCK: usize = 512;

impl Hal {
    /// Embeddings of images in evaluation mode, `[rows, d]` row-major.
    pub fn embed_images(&self, features: &Features) -> Vec<f32> {
        let model = self.encoders.valid();
        let blocks = features.values.chunks(BLOCK * features.dim.max(1));
        blocks.flat_map(|block| host(model.images(block))).collect()
    }

    /// Embeddings of texts in evaluation mode, `[texts, d]` row-major, in the given order.
    ///
    /// # Panics
    /// If a text has no word or one outside the vocabulary.
    pub fn embed_texts<C: AsRef<[u32]>>(&self, texts: &[C]) -> Vec<f32> {
        let (model, d) = (self.encoders.valid(), self.width());
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&i| texts[i].as_ref().len()); // little padding in a block
        let mut out = vec![0.0; texts.len() * d];
        for block in order.chunks(BLOCK) {
            let tokens: Vec<&[u32]> = block.iter().map(|&i| texts[i].as_ref()).collect();
            let rows = host(model.texts(&TokenBatch::new(&tokens)));
            for (&i, row) in block.iter().zip(rows.chunks_exact(d)) {
                out[i * d..(i + 1) * d].copy_from_slice(row);
            }
        }
        out
    }
}

/// Scores of embeddings on the host, images × texts, each an array of rows of `width`.
///
/// ```
/// use hubness::training::{Similarity, score_matrix};
///
/// let (images, texts) = ([0.6, 0.8, 0.0, 1.0], [0.6, 0.0]);
/// let order = score_matrix(Similarity::Order, 2, &images, &texts)?;
/// assert_eq!(order.values(), [0.0, -0.6]);
/// # Ok::<(), itm_core::Error>(())
/// ```
///
/// # Errors
/// If a score is NaN.
///
/// # Panics
/// If the embeddings are not rows of `width`.
pub fn score_matrix(
    similarity: Similarity,
    width: usize,
    images: &[f32],
    texts: &[f32],
) -> Result<ScoreMatrix> {
    for (name, values) in [("images", images), ("texts", texts)] {
        let n = values.len();
        assert!(n.is_multiple_of(width), "{name}: {n} values in rows of {width}");
    }
    let m = texts.len() / width;
    if similarity == Similarity::Order {
        let scores = itm_kernels::order::forward(images, texts, width);
        return ScoreMatrix::new(images.len() / width, m, scores);
    }
    let mut scores = vec![0.0; images.len() / width * m];
    scores.par_chunks_mut(m.max(1)).zip(images.par_chunks(width)).for_each(|(row, image)| {
        row.iter_mut().zip(texts.chunks_exact(width)).for_each(|(s, text)| *s = dot(image, text));
    });
    ScoreMatrix::new(images.len() / width, m, scores)
}

/// In sixteen lanes, which the compiler keeps in registers; their order is fixed.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; 16];
    let (a, b) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (x, y) in a.0.iter().zip(b.0) {
        sums.iter_mut().zip(x.iter().zip(y)).for_each(|(s, (x, y))| *s += x * y);
    }
    let rest: f32 = a.1.iter().zip(b.1).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f32>() + rest
}

//! The triplet losses of a step: Eq. 3 in the batch, Eq. 15 over the memory.

use burn::tensor::{Bool, Int, Tensor, TensorData};
use itm_core::{AllNegatives, Block, Siblings, WarmupLoss, triplet, triplet_in_batch};
use itm_kernels::matmul;

/// Hinges of `b` pairs against each other, Eq. 3: the warm-up, not reduced.
///
/// ```text
/// S = v̄ w̄ᵀ
/// images as anchors   H_ij = [γ − S_ii + S_ij]₊   for the texts j that count
/// texts as anchors    G_ij = [γ − S_ii + S_ji]₊   for the images j that count;   0 for every other j
/// loss of the paper   1/b · (Σ H + Σ G)
/// ```
///
/// | symbol | here       | shape    |
/// |--------|------------|----------|
/// | v̄      | `images`: rows of unit length | `[b, d]` |
/// | w̄      | `texts`: rows of unit length; row i of both is a pair | `[b, d]` |
/// | γ      | `margin`   |          |
/// | H, G   | result     | `[b, b]` each |
///
/// With [`WarmupLoss::Hardest`] only the candidate with the largest hinge of each anchor counts. With [`WarmupLoss::Sum`] all
/// candidates count. An anchor's own partner never counts. With `ids`, other pairs of the same image do not count either; without
/// `ids` they count (released code). The gradient goes into both sides.
///
/// # Panics
/// If there is no pair, `images`, `texts` and `ids` do not have the same number of rows and the same width, or the margin is
/// negative or not finite.
///
/// # Departures
/// `Sum` is ours, for encoders that start from scratch.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use fne::{WarmupLoss, in_batch_hinges};
///
/// let images = Tensor::<2>::from_floats([[1.0, 0.0], [0.0, 1.0]], &Device::flex());
/// let texts = Tensor::<2>::from_floats([[0.8, 0.6], [0.0, 1.0]], &Device::flex());
/// let [h, g] = in_batch_hinges(images, texts, 0.5, WarmupLoss::Hardest, None);
/// // H_10 = 0.5 − 1 + 0.6 = 0.1 and G_01 = 0.5 − 0.8 + 0.6 = 0.3; every other hinge is 0.
/// let loss = (h.sum() + g.sum()) / 2.0;
/// assert!((loss.into_scalar::<f32>() - 0.2).abs() < 1e-6);
/// # }
/// ```
pub fn in_batch_hinges(
    images: Tensor<2>,
    texts: Tensor<2>,
    margin: f64,
    kind: WarmupLoss,
    ids: Option<&[i64]>,
) -> [Tensor<2>; 2] {
    let ([b, d], texts_shape) = (images.dims(), texts.dims());
    assert!(b > 0, "a batch has at least one pair");
    assert_eq!(texts_shape, [b, d], "texts of shape {texts_shape:?} for images of [{b}, {d}]");
    let scores = matmul(images, texts.transpose());
    let siblings = ids.map_or(Siblings::Negatives, Siblings::Masked);
    triplet_in_batch(scores, margin, siblings, kind)
}

/// [`in_batch_hinges`] with a mask for each direction, `[b, b]`: a candidate with `true` does not count.
pub(crate) fn masked_hinges(
    images: Tensor<2>,
    texts: Tensor<2>,
    margin: f64,
    mut kind: WarmupLoss,
    [of_images, of_texts]: [Vec<bool>; 2],
) -> [Tensor<2>; 2] {
    let scores = matmul(images, texts.transpose());
    [(scores.clone(), of_images), (scores.transpose(), of_texts)].map(|(scores, mask)| {
        let mask = TensorData::new(mask, scores.dims());
        let excluded = Tensor::from_data(mask, &scores.device());
        triplet(&Block { excluded, ..Block::in_batch(scores) }, &mut kind, margin)
    })
}

/// Hinges of `b` anchors against one negative each: a direction of Eq. 15, `[b, 1]`, not reduced.
///
/// ```text
/// h_i = [ γ − s⁺_i + a_i · c_i ]₊
/// ```
///
/// | symbol | here        | shape    | gradient |
/// |--------|-------------|----------|----------|
/// | a      | `anchors`   | `[b, d]` | yes |
/// | s⁺     | `positive`  | `[b, 1]` | if it has one |
/// | c      | `negatives` | `[b, d]` | if it has one; rows of a bank have none |
/// | h      | result      | `[b, 1]` | |
///
/// A row with `true` in `masked` has hinge 0. The result equals [`triplet`] over all candidates with a sampler that selects the
/// drawn candidates. It takes a fraction of the time, because only the drawn columns of the score matrix are computed.
///
/// # Panics
/// If the shapes do not fit: the message names both. If the margin is negative or not finite.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use fne::{drawn_hinges, row_dots};
///
/// let of = |rows: [[f32; 2]; 2]| Tensor::<2>::from_floats(rows, &Device::flex());
/// let (anchors, own) = (of([[1.0, 0.0], [0.0, 1.0]]), of([[0.6, 0.8], [0.6, 0.8]]));
/// let positive = row_dots(anchors.clone(), own); // 0.6, 0.8
/// let negatives = of([[0.8, 0.6], [0.8, 0.6]]); // scores 0.8, 0.6
/// let h = drawn_hinges(anchors, positive, negatives, &[false, true], 0.2); // 0.2 − 0.6 + 0.8; masked
/// let loss = h.sum() / 2.0;
/// assert!((loss.into_scalar::<f32>() - 0.2).abs() < 1e-6);
/// # }
/// ```
pub fn drawn_hinges(
    anchors: Tensor<2>,
    positive: Tensor<2>,
    negatives: Tensor<2>,
    masked: &[bool],
    margin: f64,
) -> Tensor<2> {
    let (b, positives) = (anchors.dims()[0], positive.dims());
    assert_eq!(positives, [b, 1], "positives of shape {positives:?} for {b} anchors");
    assert_eq!(masked.len(), b, "a mask of {} values for {b} anchors", masked.len());
    let mask = TensorData::new(masked.to_vec(), [b, 1]);
    let excluded = Tensor::<2, Bool>::from_data(mask, &anchors.device());
    let block = Block::new(positive, row_dots(anchors, negatives), excluded);
    triplet(&block, &mut AllNegatives, margin)
}

/// `a_i · c_i` of every row, `[b, 1]`.
///
/// # Panics
/// If the shapes differ: the message names both.
pub fn row_dots(a: Tensor<2>, c: Tensor<2>) -> Tensor<2> {
    let (left, right) = (a.dims(), c.dims());
    assert_eq!(left, right, "row products of rows of shape {left:?} and {right:?}");
    (a * c).sum_dim(1)
}

/// The rows `columns` of a table that may carry a gradient.
pub(crate) fn gather(table: Tensor<2>, columns: &[usize]) -> Tensor<2> {
    let columns: Vec<i64> = columns.iter().map(|&j| j as i64).collect();
    let n = columns.len();
    let index = Tensor::<1, Int>::from_data(TensorData::new(columns, [n]), &table.device());
    table.select(0, index)
}

#[cfg(test)]
mod tests;

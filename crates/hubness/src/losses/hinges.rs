//! Eq. 2 and Eq. 3, on raw scores and on reweighted scores.

use burn::tensor::Tensor;
use itm_core::{AllNegatives, Hardest, Siblings, triplet_in_batch};

use super::reweight::{HubOptions, reweighted};

/// SUM, Eq. 2: the hinges of all negatives, with images as anchors and with texts as anchors, `[b, b]` each.
///
/// ```text
/// L = Σ_i Σ_{t≠i} [α − S_ii + S_it]₊  +  Σ_t Σ_{i≠t} [α − S_tt + S_it]₊
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | S | `scores` | `[b, b]`, images × texts |
/// | α | `margin` | |
/// | `[…]₊` | result | `[b, b]` twice; rows are anchors, so the second is texts × images |
///
/// The hinges are neither divided by b nor summed: `.sum()` of both is the loss. A batch of one pair has no loss.
///
/// # Panics
/// If `scores` is not square or empty, there are not `b` image ids, or the margin is negative or not finite.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use hubness::losses::{Siblings, max, sum};
///
/// let s = Tensor::<2>::from_floats([[0.9, 0.8, 0.8], [0.4, 0.5, 0.6], [0.0, 0.1, 0.7]], &Device::flex());
/// let total = |[i2t, t2i]: [Tensor<2>; 2]| (i2t.sum() + t2i.sum()).into_scalar::<f32>();
/// assert!((total(sum(s.clone(), 0.2, Siblings::Negatives)) - 1.5).abs() < 1e-6);
/// assert!((total(max(s, 0.2, Siblings::Negatives)) - 1.2).abs() < 1e-6);
/// # }
/// ```
pub fn sum(scores: Tensor<2>, margin: f64, siblings: Siblings) -> [Tensor<2>; 2] {
    triplet_in_batch(scores, margin, siblings, AllNegatives)
}

/// MAX, Eq. 3: the largest hinge of each anchor, the first among equal ones; all others are 0. Shapes as [`sum`].
///
/// ```text
/// L = Σ_i max_{t≠i} [α − S_ii + S_it]₊  +  Σ_t max_{i≠t} [α − S_tt + S_it]₊
/// ```
///
/// # Panics
/// If `scores` is not square or empty, there are not `b` image ids, or the margin is negative or not finite.
pub fn max(scores: Tensor<2>, margin: f64, siblings: Siblings) -> [Tensor<2>; 2] {
    triplet_in_batch(scores, margin, siblings, Hardest)
}

/// HAL: [`sum`] of the reweighted scores `S′` of Eq. 4.
///
/// The margin is not rescaled, although `S′` is in about ±7.4. Masked siblings are not negatives, but still
/// neighbours.
///
/// # Panics
/// As [`sum`], and if k is 0.
pub fn hal(
    scores: Tensor<2>,
    margin: f64,
    siblings: Siblings,
    options: &HubOptions,
) -> [Tensor<2>; 2] {
    sum(reweighted(scores, options), margin, siblings)
}

/// MAX + HAL: [`max`] of the reweighted scores `S′` of Eq. 4; the hardest negative is the hardest in `S′`.
///
/// # Panics
/// As [`sum`], and if k is 0.
pub fn max_hal(
    scores: Tensor<2>,
    margin: f64,
    siblings: Siblings,
    options: &HubOptions,
) -> [Tensor<2>; 2] {
    max(reweighted(scores, options), margin, siblings)
}

//! Which candidates are the negatives of an anchor.

use burn::tensor::{Bool, Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

/// Scores of `b` anchors against `n` candidates in one direction: the input of a loss and a sampler.
///
/// | field | shape | |
/// |---|---|---|
/// | `positive` | `[b, 1]` | each anchor's score with its own positive |
/// | `scores` | `[b, n]` | its scores with all candidates |
/// | `excluded` | `[b, n]` | true: never a negative of this anchor |
#[derive(Debug, Clone)]
pub struct Block {
    /// `[b, 1]`
    pub positive: Tensor<2>,
    /// `[b, n]`
    pub scores: Tensor<2>,
    /// `[b, n]`
    pub excluded: Tensor<2, Bool>,
}

impl Block {
    /// Builds a block from its parts.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn new(positive: Tensor<2>, scores: Tensor<2>, excluded: Tensor<2, Bool>) -> Self {
        let block = Self { positive, scores, excluded };
        block.check();
        block
    }

    /// The fields are public, so a sampler or a loss may get any.
    pub(crate) fn check(&self) {
        let (p, s, x) = (self.positive.dims(), self.scores.dims(), self.excluded.dims());
        assert_eq!(p, [s[0], 1], "positives of shape {p:?} for scores of shape {s:?}");
        assert_eq!(x, s, "exclusions of shape {x:?} for scores of shape {s:?}");
    }

    /// Anchors and candidates of one batch. Pair `i` is on the diagonal; only the diagonal is excluded.
    ///
    /// # Panics
    /// If `scores` is not square, or there is no pair.
    pub fn in_batch(scores: Tensor<2>) -> Self {
        let [b, n] = scores.dims();
        assert!(b > 0, "a batch has at least one pair");
        assert_eq!(b, n, "in-batch scores of shape [{b}, {n}] are not square");
        let diagonal = Tensor::<1, burn::tensor::Int>::arange(0..b as i64, &scores.device());
        let [rows, columns] =
            [[b, 1], [1, b]].map(|shape| diagonal.clone().reshape(shape).expand([b, b]));
        let positive = scores.clone().gather(1, diagonal.reshape([b, 1]));
        Self::new(positive, scores, rows.equal(columns))
    }
}

/// Whether another pair of the same image is a negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Siblings<'a> {
    /// The other pair is a negative: only the own pair is excluded (HAL's released code).
    #[default]
    Negatives,
    /// The other pair is no negative (`mask_same_image`). Holds the image id of each pair, `[b]`.
    Masked(&'a [i64]),
}

impl Siblings<'_> {
    /// Which of the `b` × `b` pairs are masked: true off the diagonal where both pairs have one image. `None` for
    /// [`Siblings::Negatives`].
    ///
    /// # Panics
    /// If there are not `b` image ids.
    pub fn masked(self, b: usize, device: &Device) -> Option<Tensor<2, Bool>> {
        let Self::Masked(ids) = self else { return None };
        assert_eq!(ids.len(), b, "{} image ids of {b} pairs", ids.len());
        let same = |k: usize| k / b != k % b && ids[k / b] == ids[k % b];
        let masked: Vec<bool> = (0..b * b).map(same).collect();
        Some(Tensor::from_data(TensorData::new(masked, [b, b]), device))
    }
}

/// Chooses negatives. `&mut` because a sampler may learn or draw.
pub trait NegativeSampler {
    /// `[b, n]`, true where the candidate is a negative of this anchor. Never true for an excluded candidate.
    fn select(&mut self, block: &Block) -> Tensor<2, Bool>;
}

/// Every candidate that is not excluded.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllNegatives;

impl NegativeSampler for AllNegatives {
    fn select(&mut self, block: &Block) -> Tensor<2, Bool> {
        block.excluded.clone().bool_not()
    }
}

/// The candidate with the largest score among the candidates that are not excluded; among equals, the first.
///
/// The hinge grows with the score, so this candidate also has the largest hinge. An anchor whose candidates are all
/// excluded has no negative.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hardest;

impl NegativeSampler for Hardest {
    fn select(&mut self, block: &Block) -> Tensor<2, Bool> {
        block.check();
        // Selection has no gradient, and a maximum with ties resolved by index needs no sorting.
        let scores =
            block.scores.clone().detach().mask_fill(block.excluded.clone(), f32::NEG_INFINITY);
        let [b, n] = scores.dims();
        if n == 0 {
            return block.excluded.clone();
        }
        // The test is "not smaller", not "equal". So a NaN is selected and becomes visible in the loss.
        let smaller = scores.clone().lower(scores.clone().max_dim(1).expand([b, n]));
        let passed_over = smaller.bool_or(block.excluded.clone());
        let columns = Tensor::<1, burn::tensor::Int>::arange(0..n as i64, &scores.device());
        let columns = columns.reshape([1, n]).expand([b, n]);
        let first = columns.clone().mask_fill(passed_over, n as i64).min_dim(1);
        columns.equal(first.expand([b, n]))
    }
}

/// Which hinges of a batch count in a warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WarmupLoss {
    /// The largest hinge of each row and column, as after the warm-up (released code).
    Hardest,
    /// All hinges. Ours: from random weights, hardest negatives can pull every embedding to one point.
    Sum,
}

impl NegativeSampler for WarmupLoss {
    fn select(&mut self, block: &Block) -> Tensor<2, Bool> {
        match self {
            Self::Hardest => Hardest.select(block),
            Self::Sum => AllNegatives.select(block),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn block(b: usize, n: usize, scores: &[f32], excluded: &[bool]) -> Block {
        let device = Device::flex();
        let scores = Tensor::from_data(TensorData::new(scores.to_vec(), [b, n]), &device);
        let excluded = Tensor::from_data(TensorData::new(excluded.to_vec(), [b, n]), &device);
        Block::new(Tensor::zeros([b, 1], &device), scores, excluded)
    }

    fn chosen(sampler: &mut impl NegativeSampler, block: &Block) -> Vec<bool> {
        sampler.select(block).into_data().convert::<bool>().try_to_vec().unwrap()
    }

    const O: bool = false;
    const X: bool = true;

    /// By hand: the tie of row 0 goes to the first candidate, the largest score of row 1 is excluded, row 2 has no
    /// candidate left.
    #[test]
    fn golden_hardest() {
        let scores = [0.1, 0.9, 0.9, /**/ 0.3, 0.2, 0.8, /**/ 0.5, 0.5, 0.5];
        let block = block(3, 3, &scores, &[O, O, O, /**/ O, O, X, /**/ X, X, X]);
        assert_eq!(chosen(&mut Hardest, &block), [O, X, O, /**/ X, O, O, /**/ O, O, O]);
    }

    #[test]
    fn without_candidates_nothing_is_chosen() {
        let none = block(2, 0, &[], &[]);
        assert_eq!(Hardest.select(&none).dims(), [2, 0]);
        assert_eq!(AllNegatives.select(&none).dims(), [2, 0]);
    }

    #[test]
    fn a_nan_is_not_passed_over() {
        let block = block(1, 3, &[f32::NAN; 3], &[X, O, O]);
        assert_eq!(chosen(&mut Hardest, &block), [O, X, O]);
    }

    #[test]
    fn in_batch_takes_the_diagonal_as_positives() {
        let scores = Tensor::<2>::from_floats([[1., 2.], [3., 4.]], &Device::flex());
        let block = Block::in_batch(scores);
        assert_eq!(block.positive.dims(), [2, 1]);
        assert_eq!(block.positive.clone().into_data().try_to_vec::<f32>().unwrap(), [1., 4.]);
        assert_eq!(chosen(&mut AllNegatives, &block), [O, X, X, O]);
    }

    /// By hand: pairs 0 and 2 are of image 7.
    #[test]
    fn siblings_are_masked_off_the_diagonal() {
        let device = Device::flex();
        let masked = Siblings::Masked(&[7, 5, 7]).masked(3, &device).unwrap();
        let masked: Vec<bool> = masked.into_data().convert::<bool>().try_to_vec().unwrap();
        assert_eq!(masked, [O, O, X, /**/ O, O, O, /**/ X, O, O]);
        assert!(Siblings::Negatives.masked(3, &device).is_none());
    }

    #[test]
    #[should_panic(expected = "in-batch scores of shape [2, 3] are not square")]
    fn a_batch_that_is_not_square_is_refused() {
        Block::in_batch(Tensor::zeros([2, 3], &Device::flex()));
    }

    #[test]
    #[should_panic(expected = "positives of shape [2, 2] for scores of shape [2, 3]")]
    fn positives_of_another_shape_are_refused() {
        let d = Device::flex();
        let scores = Tensor::<2>::zeros([2, 3], &d);
        Block::new(Tensor::zeros([2, 2], &d), scores.clone(), scores.equal_elem(1.0));
    }

    proptest! {
        /// Hardest selects one candidate if any candidate is left, else none. The selected candidate is not excluded.
        /// No candidate that is left has a larger score, or an equal score and a smaller index.
        #[test]
        fn hardest_is_the_first_largest(scores in vec(0u8..4, 20), excluded in vec(any::<bool>(), 20)) {
            let scores: Vec<f32> = scores.into_iter().map(f32::from).collect();
            let got = chosen(&mut Hardest, &block(4, 5, &scores, &excluded));
            for row in 0..4 {
                let at = |j: usize| row * 5 + j;
                let left: Vec<usize> = (0..5).filter(|&j| !excluded[at(j)]).collect();
                let picked: Vec<usize> = (0..5).filter(|&j| got[at(j)]).collect();
                prop_assert_eq!(picked.len(), usize::from(!left.is_empty()));
                for &p in &picked {
                    prop_assert!(left.contains(&p));
                    let beaten = |j: usize| scores[at(j)] < scores[at(p)] || scores[at(j)] == scores[at(p)] && j >= p;
                    prop_assert!(left.iter().all(|&j| beaten(j)));
                }
            }
        }
    }
}

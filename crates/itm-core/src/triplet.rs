//! The triplet loss that all four papers share.

use burn::tensor::Tensor;

use crate::{Block, NegativeSampler, Siblings};

/// Triplet ranking loss of `b` anchors against `n` candidates, in one direction, not reduced.
///
/// ```text
/// ℓ(a, c) = [ α − s(a, a⁺) + s(a, c) ]₊   for c ∈ N(a),   0 for every other c
/// ```
///
/// | symbol   | here             | shape    | HAL          | NAAF     | TAGS-DC   | FNE      |
/// |----------|------------------|----------|--------------|----------|-----------|----------|
/// | s(a, a⁺) | `block.positive` | `[b, 1]` | s(i, t)      | S(U, V)  | ITM(U, V) | s(V, W)  |
/// | s(a, c)  | `block.scores`   | `[b, n]` | s(i, t̄)      | S(U, V′) | ITM(U, W) | s(V, W⁻) |
/// | N(a)     | `negatives`      | `[b, n]` | all, hardest | hardest  | retrieved | sampled  |
/// | α        | `margin`         |          | α            | γ        | α         | margin   |
/// | equation |                  |          | (2), (3)     | (15)     | (4)       | (15)     |
///
/// Returns `ℓ`, `[b, n]`. For both directions, add the loss of the transposed scores. The gradient of an inactive hinge
/// is exactly zero, also where the hinge is just zero.
///
/// # Panics
/// If the shapes of the block do not fit, the selection of `negatives` does not have the shape `[b, n]`, or the margin is negative
/// or not finite.
///
/// # Departures
/// The papers (for FNE, its code) sum over the batch; here the caller writes `.sum()` or `.mean()`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use itm_core::{Block, Hardest, triplet};
///
/// //                                         text 0  text 1
/// let scores = Tensor::<2>::from_floats([[0.9, 0.8], // image 0
///                                        [0.1, 0.5]], &Device::flex());
/// let i2t = triplet(&Block::in_batch(scores.clone()), &mut Hardest, 0.2);
/// let t2i = triplet(&Block::in_batch(scores.transpose()), &mut Hardest, 0.2);
///
/// let loss = i2t.sum() + t2i.sum(); // 0.1 + 0.5
/// assert!((loss.into_scalar::<f32>() - 0.6).abs() < 1e-6);
/// ```
pub fn triplet(block: &Block, negatives: &mut impl NegativeSampler, margin: f64) -> Tensor<2> {
    block.check();
    let fits = margin >= 0.0 && (margin as f32).is_finite();
    assert!(fits, "a margin of at least 0, got {margin}");
    let Block { positive, scores, .. } = block.clone();
    let selected = negatives.select(block);
    let (got, want) = (selected.dims(), scores.dims());
    assert_eq!(got, want, "negatives of shape {got:?} for scores of shape {want:?}");
    let hinge = scores - positive + margin;
    // A mask instead of a product with zero, because an excluded score may be infinite.
    let inactive = hinge.clone().lower_equal_elem(0.0).bool_or(selected.bool_not());
    hinge.mask_fill(inactive, 0.0)
}

/// [`triplet`] over a batch in both directions: images with texts, then texts with images, `[b, b]` each, not reduced. Pair `i` is on the
/// diagonal of `scores`.
///
/// # Panics
/// If `scores` is not square or empty, there are not `b` image ids, or the margin is negative or not finite.
pub fn triplet_in_batch<N: NegativeSampler + Clone>(
    scores: Tensor<2>,
    margin: f64,
    siblings: Siblings,
    negatives: N,
) -> [Tensor<2>; 2] {
    [scores.clone(), scores.transpose()].map(|scores| {
        let mut block = Block::in_batch(scores);
        let [b, _] = block.scores.dims();
        if let Some(masked) = siblings.masked(b, &block.scores.device()) {
            block.excluded = block.excluded.bool_or(masked);
        }
        triplet(&block, &mut negatives.clone(), margin)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AllNegatives, Hardest};
    use burn::tensor::{Bool, Device, TensorData};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn square(s: &[f32], device: &Device) -> Tensor<2> {
        let b = s.len().isqrt();
        Tensor::from_data(TensorData::new(s.to_vec(), [b, b]), device)
    }

    fn total(s: &[f32], negatives: &mut impl NegativeSampler, margin: f64) -> f32 {
        let s = square(s, &Device::flex());
        let i2t = triplet(&Block::in_batch(s.clone()), negatives, margin).sum();
        let t2i = triplet(&Block::in_batch(s.transpose()), negatives, margin).sum();
        (i2t + t2i).into_scalar::<f32>()
    }

    /// Worked by hand from HAL Eq. (2) and (3), α = 0.2. The matrix is not symmetric, so that a wrong axis fails.
    #[test]
    fn golden_three_pairs() {
        #[rustfmt::skip]
        let s = [
            0.9, 0.8, 0.3, // [0.2 − 0.9 + 0.8]₊ = 0.1   [… + 0.3]₊ = 0
            0.4, 0.5, 0.6, // [0.2 − 0.5 + 0.4]₊ = 0.1   [… + 0.6]₊ = 0.3
            0.0, 0.1, 0.7, // 0                          0
        ];
        // Columns: 0: 0, 0 · 1: [0.2 − 0.5 + 0.8]₊ = 0.5, 0 · 2: 0, [0.2 − 0.7 + 0.6]₊ = 0.1
        for (name, got, want) in [
            ("SUM", total(&s, &mut AllNegatives, 0.2), 0.5 + 0.6),
            ("MAX", total(&s, &mut Hardest, 0.2), 0.4 + 0.6),
        ] {
            assert!((got - want).abs() < 1e-6, "{name}: got {got}, want {want}");
        }
    }

    /// Gradient of the sum: each active negative adds +1 at itself and −1 at its positive. A hinge at or below zero
    /// adds nothing.
    #[test]
    fn golden_gradient() {
        // Margin 0.25; row 0: hinges 0.125 and exactly 0; row 1: −0.5 and 0.5; row 2: both negative.
        #[rustfmt::skip]
        let s = [
            0.5,  0.375, 0.25,
            -0.5, 0.25,  0.5,
            0.0,  0.0,   1.0,
        ];
        let s = square(&s, &Device::flex().autodiff()).require_grad();
        let loss = triplet(&Block::in_batch(s.clone()), &mut AllNegatives, 0.25).sum();
        let grads = loss.backward();
        let got = s.grad(&grads).unwrap().into_data().try_to_vec::<f32>().unwrap();
        assert_eq!(got, [-1., 1., 0., 0., -1., 1., 0., 0., 0.]);
    }

    /// An excluded score that is infinite reaches neither the loss nor the gradient.
    #[test]
    fn excluded_scores_do_not_matter() {
        let device = Device::flex().autodiff();
        let scores = Tensor::<2>::from_floats([[0.5, f32::INFINITY]], &device).require_grad();
        let excluded = Tensor::<2, Bool>::from_data([[false, true]], &device);
        let block = Block::new(Tensor::from_floats([[0.6]], &device), scores.clone(), excluded);
        for loss in [
            triplet(&block, &mut AllNegatives, 0.2).sum(),
            triplet(&block, &mut Hardest, 0.2).sum(),
        ] {
            assert!((loss.clone().into_scalar::<f32>() - 0.1).abs() < 1e-6);
            let d = scores.grad(&loss.backward()).unwrap().into_data().try_to_vec::<f32>().unwrap();
            assert_eq!(d, [1., 0.]);
        }
    }

    struct Narrow;

    impl NegativeSampler for Narrow {
        fn select(&mut self, block: &Block) -> Tensor<2, Bool> {
            block.excluded.clone().narrow(1, 0, 1)
        }
    }

    #[test]
    #[should_panic(expected = "negatives of shape [2, 1] for scores of shape [2, 2]")]
    fn negatives_of_another_shape_are_refused() {
        let scores = Tensor::zeros([2, 2], &Device::flex());
        triplet(&Block::in_batch(scores), &mut Narrow, 0.2);
    }

    proptest! {
        /// MAX keeps one of SUM's terms per anchor: 0 ≤ MAX ≤ SUM ≤ (b − 1) · MAX.
        #[test]
        fn hardest_bounds_the_sum(s in vec(-1.0f32..1.0, 16), margin in 0.0..1.0) {
            let (max, sum) = (total(&s, &mut Hardest, margin), total(&s, &mut AllNegatives, margin));
            prop_assert!(0.0 <= max && max <= sum + 1e-5 && sum <= 3.0 * max + 1e-4);
        }

        /// Only differences of scores count.
        #[test]
        fn a_shift_changes_nothing(s in vec(-1.0f32..1.0, 16), shift in -1.0f32..1.0) {
            let moved: Vec<f32> = s.iter().map(|s| s + shift).collect();
            let (a, b) = (total(&s, &mut AllNegatives, 0.2), total(&moved, &mut AllNegatives, 0.2));
            prop_assert!((a - b).abs() < 1e-4);
        }
    }
}

//! A low-rank change of a linear map.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::{matmul, uniform};

/// LoRA: a change of rank r of some columns of a weight, of the queries in `[queries, keys, values]` for instance.
///
/// ```text
/// W′ = W + γ A B
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | W | the weight of a [`Linear`](super::Linear) | `[i, o]` |
/// | A, B | `a`, `b`, beside columns of zeros | `[i, r]`, `[r, columns]` |
/// | γ = α/r | `factor` | |
///
/// W′ is made before the product with the input, so every operation that takes a weight takes W′. That costs one more weight in memory and no
/// second pass over the input. The paper writes B A, because it multiplies from the left. Source: Hu et al. 2022 (arXiv 2106.09685).
#[derive(Module, Debug)]
pub struct LowRank {
    /// `[i, r]`
    pub a: Param<Tensor<2>>,
    /// `[r, columns]`
    pub b: Param<Tensor<2>>,
    /// α/r
    #[module(skip)]
    pub factor: f64,
    /// The first column of the weight that changes.
    #[module(skip)]
    pub first: usize,
}

impl LowRank {
    /// A uniform in ±1/√i, which is Kaiming's bound for a slope of √5, as in PEFT; B is 0, so W′ = W.
    ///
    /// # Panics
    /// If a size is 0, or memory cannot hold A.
    pub fn seeded(
        [i, rank, columns]: [usize; 3],
        first: usize,
        factor: f64,
        seed: u64,
        device: &Device,
    ) -> Self {
        assert!(i > 0 && rank > 0 && columns > 0, "rank {rank} from {i} to {columns} values");
        let a = uniform([i, rank], 1.0 / (i as f32).sqrt(), seed, device);
        let b = Tensor::zeros([rank, columns], device);
        Self { a: Param::from_tensor(a), b: Param::from_tensor(b), factor, first }
    }

    /// W′
    ///
    /// # Panics
    /// If the weight does not have these columns.
    pub(super) fn added(&self, weight: Tensor<2>) -> Tensor<2> {
        let ([i, all], device) = (weight.dims(), weight.device());
        let change = matmul(self.a.val(), self.b.val()) * self.factor; // [i, columns]
        let columns = change.dims()[1];
        let fits = self.first <= all && columns <= all - self.first;
        assert!(fits, "a change of {columns} columns from {} on, in {all}", self.first);
        let behind = all - self.first - columns;
        let zeros = |columns| Tensor::<2>::zeros([i, columns], &device);
        let mut parts = vec![change];
        if self.first > 0 {
            parts.insert(0, zeros(self.first));
        }
        if behind > 0 {
            parts.push(zeros(behind));
        }
        weight + Tensor::cat(parts, 1)
    }
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use super::*;
    use crate::tests::values;

    /// By hand: A B = (1, 2)ᵀ (3, 5), a factor of ½, added to the second and third column of zeros.
    #[test]
    fn golden_change_of_two_columns() {
        let device = Device::flex();
        let of = |value: Tensor<2>| Param::from_tensor(value);
        let a = of(Tensor::from_floats([[1.0], [2.0]], &device));
        let b = of(Tensor::from_floats([[3.0, 5.0]], &device));
        let change = LowRank { a, b, factor: 0.5, first: 1 };
        let w = Tensor::<2>::zeros([2, 4], &device) + 1.0;
        assert_eq!(values(change.added(w)), [1.0, 2.5, 3.5, 1.0, 1.0, 4.0, 6.0, 1.0]);
    }

    #[test]
    #[should_panic(expected = "a change of 3 columns from 2 on, in 4")]
    fn columns_beyond_the_weight_are_refused() {
        let device = Device::flex();
        let w = uniform([6, 4], 1.0, 1, &device);
        LowRank::seeded([6, 2, 3], 2, 4.0, 2, &device).added(w);
    }

    /// A law: before the first step the map is the plain one, to the bit, and A already has a scale.
    #[test]
    fn a_new_change_changes_nothing() {
        let device = Device::flex();
        let w = uniform([6, 9], 1.0, 1, &device);
        let change = LowRank::seeded([6, 2, 3], 3, 4.0, 2, &device);
        assert_eq!(values(change.added(w.clone())), values(w));
        let a = values(change.a.val());
        let most = a.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        assert!((0.3..=0.409).contains(&most), "{most}, but 1/√6 is 0.408");
    }
}

//! Recurrent units.

use burn::backend::Dispatch;
use burn::backend::tensor::FloatTensor;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::{check_lengths, uniform};
use crate::ops::{GruOps, Tensors};
use crate::random;

/// A gated recurrent unit over whole sequences: one operation forward, one backward. Equations: [`crate::gru`].
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Distribution, Tensor};
/// use itm_kernels::Gru;
///
/// let device = Device::flex();
/// let gru = Gru::seeded(3, 4, 7, &device);
/// let x = Tensor::<3>::random([2, 5, 3], Distribution::Default, &device);
/// let states = gru.forward(x, &[5, 2]); // the second sequence has two real steps
/// assert_eq!(states.dims(), [2, 5, 4]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct Gru {
    /// `[input, 3·hidden]`, gates r, z, n.
    pub w_ih: Param<Tensor<2>>,
    /// `[hidden, 3·hidden]`
    pub w_hh: Param<Tensor<2>>,
    /// `[3·hidden]`
    pub b_ih: Param<Tensor<1>>,
    /// `[3·hidden]`
    pub b_hh: Param<Tensor<1>>,
}

impl Gru {
    /// Weights and biases uniform in ±1/√hidden, as in PyTorch; they depend only on the seed.
    ///
    /// # Panics
    /// If a width is 0, or memory cannot hold the weights.
    pub fn seeded(input: usize, hidden: usize, seed: u64, device: &Device) -> Self {
        let some = input > 0 && hidden > 0 && hidden <= usize::MAX / 3;
        assert!(some, "a recurrent unit from {input} to {hidden} values");
        let bound = 1.0 / (hidden as f32).sqrt();
        let seed = |part| random::derive(seed, part);
        Self {
            w_ih: Param::from_tensor(uniform([input, 3 * hidden], bound, seed(0), device)),
            w_hh: Param::from_tensor(uniform([hidden, 3 * hidden], bound, seed(1), device)),
            b_ih: Param::from_tensor(uniform([3 * hidden], bound, seed(2), device)),
            b_hh: Param::from_tensor(uniform([3 * hidden], bound, seed(3), device)),
        }
    }

    /// States of every step, `[b, l, i]` to `[b, l, h]`; the first state is zero.
    ///
    /// A padded step repeats the state of the last real step, so the last step holds the final state of every
    /// sequence. The gradient of the input is zero on padded steps.
    ///
    /// # Panics
    /// If there is no sequence, a length is 0 or more than `l`, or `x` is not `[lengths.len(), l, input]`.
    pub fn forward(&self, x: Tensor<3>, lengths: &[usize]) -> Tensor<3> {
        states(&[self], x, lengths)
    }

    /// The weights as primitives.
    fn weights(&self) -> [FloatTensor<Dispatch>; 4] {
        [
            self.w_ih.val().into_dispatch(),
            self.w_hh.val().into_dispatch(),
            self.b_ih.val().into_dispatch(),
            self.b_hh.val().into_dispatch(),
        ]
    }
}

/// A forward and a reverse [`Gru`] over the same sequences, side by side: one operation forward, one backward.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Distribution, Tensor};
/// use itm_kernels::BiGru;
///
/// let device = Device::flex();
/// let gru = BiGru::seeded(3, 4, 7, &device);
/// let x = Tensor::<3>::random([2, 5, 3], Distribution::Default, &device);
/// let states = gru.forward(x, &[5, 2]); // the second sequence has two real steps
/// assert_eq!(states.dims(), [2, 5, 8]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct BiGru {
    /// Reads from the first step on.
    pub ahead: Gru,
    /// Reads from each sequence's last real step back to its first.
    pub reverse: Gru,
}

impl BiGru {
    /// Weights and biases uniform in ±1/√hidden, as in PyTorch; they depend only on the seed.
    ///
    /// # Panics
    /// As [`Gru::seeded`].
    pub fn seeded(input: usize, hidden: usize, seed: u64, device: &Device) -> Self {
        let [ahead, reverse] =
            [4, 5].map(|part| Gru::seeded(input, hidden, random::derive(seed, part), device));
        Self { ahead, reverse }
    }

    /// States of every step, `[b, l, i]` to `[b, l, 2h]`: first of the forward unit, then of the reverse unit.
    ///
    /// Real steps are as in PyTorch on packed sequences. A padded step changes no state. The forward half repeats the
    /// last real state; the reverse half is zero, because the reverse unit begins later. The gradient of the input is
    /// zero on padded steps.
    ///
    /// # Panics
    /// If there is no sequence, a length is 0 or more than `l`, `x` is not `[lengths.len(), l, input]`, or the units differ in
    /// shape.
    pub fn forward(&self, x: Tensor<3>, lengths: &[usize]) -> Tensor<3> {
        let (ahead, reverse) = (self.ahead.w_ih.dims(), self.reverse.w_ih.dims());
        assert_eq!(ahead, reverse, "input weights of the two units");
        states(&[&self.ahead, &self.reverse], x, lengths)
    }
}

/// The states of one or two units of one shape, side by side.
fn states(units: &[&Gru], x: Tensor<3>, lengths: &[usize]) -> Tensor<3> {
    let (dims, [input, _]) = (x.dims(), units[0].w_ih.dims());
    check_lengths(dims, lengths);
    assert_eq!(dims[2], input, "input of shape {dims:?} for a unit of width {input}");
    let weights = Tensors(units.iter().flat_map(|unit| unit.weights()).collect());
    let (x, lengths) = (x.into_dispatch(), lengths.to_vec());
    Tensor::from_dispatch(<Dispatch as GruOps>::gru(x, weights, lengths))
}

#[cfg(test)]
#[cfg(feature = "flex")]
#[path = "gru_tests.rs"]
mod tests;
